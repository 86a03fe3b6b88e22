/* src/test/aio/index_am/test_aio_index_am--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_aio_index_am" to load this file. \quit

-- The access methods of test_aio_index_am.c: one that says nothing, one whose
-- entries are collected, and one that allows one task at a time.
CREATE FUNCTION plain_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE FUNCTION batched_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE FUNCTION serial_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;

CREATE ACCESS METHOD plain TYPE INDEX HANDLER plain_handler;
CREATE ACCESS METHOD batched TYPE INDEX HANDLER batched_handler;
CREATE ACCESS METHOD serial TYPE INDEX HANDLER serial_handler;

DO $$
DECLARE
    am text;
BEGIN
    FOREACH am IN ARRAY ARRAY['plain', 'batched', 'serial'] LOOP
        EXECUTE format($sql$
            CREATE OPERATOR CLASS %1$s_points DEFAULT FOR TYPE point USING %1$I AS
                OPERATOR 28 <@ (point, box),
                FUNCTION 1 gist_point_consistent(internal, point, smallint, oid, internal),
                FUNCTION 2 gist_box_union(internal, internal),
                FUNCTION 3 gist_point_compress(internal),
                FUNCTION 5 gist_box_penalty(internal, internal, internal),
                FUNCTION 6 gist_box_picksplit(internal, internal),
                FUNCTION 7 gist_box_same(box, box, internal),
                FUNCTION 9 gist_point_fetch(internal),
                STORAGE box
            $sql$, am);
    END LOOP;
END $$;

-- Have "plain" run a query for each entry, with its value, or none any more; how
-- many rows have been counted so far?
CREATE FUNCTION plain_looks_for(query text) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C;

-- A heap for which only COPY may insert several rows at a time.
CREATE FUNCTION single_handler(internal) RETURNS table_am_handler
AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE ACCESS METHOD single TYPE TABLE HANDLER single_handler;

-- How many rows it has got.
CREATE FUNCTION single_rows() RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C;

-- Of a query whose first column is the setting test_aio.row, how many rows that
-- go to an extension have another value than when they are asked for?
CREATE FUNCTION values_of_another_time(query text, dest int) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Have the rows of all statements pass a receiver of the extension.
CREATE FUNCTION wrap_receivers(boolean) RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- COPY n numbers into a table, the last of which is the first, and say so each
-- thousand.
CREATE FUNCTION copy_numbers(t regclass, n int) RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- What has been called since this was asked last.
CREATE FUNCTION calls(am text,
    OUT inserts int, OUT in_tasks int, OUT tasks_at_a_time int, OUT pages int,
    OUT collected int, OUT drained int)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Register what must not be registered.
CREATE FUNCTION register_again() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C;
CREATE FUNCTION register_contradiction() RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C;

-- What indexes call: functions that run queries, and one with much on the stack.
CREATE FUNCTION querying_elements(anyarray, internal, internal) RETURNS internal
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION querying_hash(int) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION querying_compare(point, point) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;
CREATE FUNCTION deep_compare(int, int) RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;
CREATE OPERATOR CLASS querying_arrays FOR TYPE int[] USING gin AS
    OPERATOR 2 @> (anyarray, anyarray),
    FUNCTION 1 btint4cmp(int, int),
    FUNCTION 2 querying_elements(anyarray, internal, internal),
    FUNCTION 3 ginqueryarrayextract(anyarray, internal, smallint, internal, internal, internal, internal),
    FUNCTION 4 ginarrayconsistent(internal, smallint, anyarray, int, internal, internal, internal, internal),
    STORAGE int;
CREATE OPERATOR CLASS querying_ints FOR TYPE int USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 querying_hash(int);
CREATE OPERATOR CLASS deep_ints FOR TYPE int USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 deep_compare(int, int);
