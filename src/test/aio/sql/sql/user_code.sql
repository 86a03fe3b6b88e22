-- Code of users that indexes call never runs in a task: it may look at the
-- table, write to it, raise and catch errors.
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/user_code.data'
COPY (SELECT n, 'x' || n FROM generate_series(1, 1500) n) TO :'file';
CREATE SEQUENCE calls;

-- an index expression; such a table is left alone as a whole
CREATE FUNCTION expression(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('calls');
    RETURN 1000 / (x - 700);
EXCEPTION WHEN division_by_zero THEN
    RETURN 0;
END $$;
CREATE TABLE by_expression (a int, b text);
CREATE INDEX by_expression_b ON by_expression (b);
CREATE INDEX by_expression_f ON by_expression (expression(a));
SELECT aio_session_stats_reset();
COPY by_expression FROM :'file';
INSERT INTO by_expression SELECT a + 1, b FROM by_expression;
SELECT concurrency(false);
SELECT complaints('by_expression');
SELECT nextval('calls') - 1;

-- a predicate, and what it does to an error's place in the order of rows
CREATE FUNCTION predicate(x int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF x = 1000 THEN
        RAISE EXCEPTION 'no % please', x USING HINT = 'Use another one.', ERRCODE = '23P99';
    END IF;
    RETURN x % 2 = 0;
END $$;
CREATE TABLE by_predicate (a int, b text);
CREATE UNIQUE INDEX by_predicate_b ON by_predicate (b);
CREATE INDEX by_predicate_a ON by_predicate (a) WHERE predicate(a);
SELECT * FROM error_of(format('COPY by_predicate FROM %L', :'file'));
INSERT INTO by_predicate VALUES (0, 'x999');
SELECT * FROM error_of(format('COPY by_predicate FROM %L', :'file'));
SELECT concurrency(false);

-- a support function: the index is left alone, its siblings are not
-- (It may not catch errors, as it is called with a page locked.)
CREATE FUNCTION compare_backwards(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF a = 666666 THEN
        RAISE EXCEPTION 'devilish' USING ERRCODE = '22P99';
    END IF;
    PERFORM 1 FROM pg_class WHERE oid = 'pg_class'::regclass;
    RETURN CASE WHEN a > b THEN -1 WHEN a < b THEN 1 ELSE 0 END;
END $$;
CREATE OPERATOR CLASS backwards FOR TYPE int USING btree AS
    OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <,
    FUNCTION 1 compare_backwards(int, int);
CREATE TABLE by_opclass (a int, b text, c int);
CREATE INDEX by_opclass_b ON by_opclass (b);
CREATE UNIQUE INDEX by_opclass_a ON by_opclass (a backwards);
CREATE INDEX by_opclass_c ON by_opclass USING hash (c);
COPY by_opclass (a, b) FROM :'file';
INSERT INTO by_opclass SELECT a + 1500, b || 'y', a FROM by_opclass;
SELECT concurrency();
SELECT * FROM error_of('INSERT INTO by_opclass SELECT 1400 - n, ''z'', n FROM generate_series(1, 10) n');
SELECT * FROM error_of(format('COPY by_opclass (a, b) FROM %L', :'file'));
SELECT * FROM error_of('INSERT INTO by_opclass SELECT 666640 + n, ''z'', n FROM generate_series(1, 50) n');
SELECT complaints('by_opclass');
SELECT same_by_index('by_opclass_c', 'c = ANY ((SELECT array_agg(c) FROM by_opclass WHERE a % 50 = 0)::int[])');

-- arrays and ranges of a type with such a support function
CREATE TYPE odd_range AS RANGE (SUBTYPE = int, SUBTYPE_OPCLASS = backwards);
CREATE TABLE by_range (r odd_range, n int);
CREATE INDEX by_range_gist ON by_range USING gist (r);
CREATE INDEX by_range_btree ON by_range (r);
SELECT aio_session_stats_reset();
INSERT INTO by_range SELECT odd_range(n + 5, n), n FROM generate_series(1, 500) n;
SELECT concurrency(false);
SELECT same_by_index('by_range_gist', 'r && odd_range(40, 20)');

-- and multiranges, which a GiST index keeps as ranges of any type
CREATE TABLE by_multirange (m odd_multirange, n int);
CREATE INDEX by_multirange_gist ON by_multirange USING gist (m);
CREATE INDEX by_multirange_sum ON by_multirange USING gist ((m + m));
INSERT INTO by_multirange SELECT odd_multirange(odd_range(n + 5, n)), n FROM generate_series(1, 500) n;
SELECT concurrency(false);
SELECT same_by_index('by_multirange_gist', 'm && odd_range(40, 20)');

-- elements of arrays of a type of PostgreSQL that somebody has made an operator
-- class of, which a GIN index keeps
CREATE FUNCTION compare_boxes(a box, b box) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM pg_class WHERE oid = 'pg_class'::regclass;
    RETURN sign(area(a) - area(b))::int;
END $$;
CREATE OPERATOR CLASS boxes DEFAULT FOR TYPE box USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 compare_boxes(box, box);
CREATE TABLE by_element (x box[], n int);
CREATE INDEX by_element_gin ON by_element USING gin (x) WITH (fastupdate = off);
INSERT INTO by_element SELECT ARRAY[box(point(0, 0), point(n, n))], n FROM generate_series(1, 2000) n;
SELECT concurrency(false);

-- operators, which BRIN calls
CREATE FUNCTION smaller(a box, b box) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN compare_boxes(a, b) < 0;
END $$;
CREATE OPERATOR <<<< (LEFTARG = box, RIGHTARG = box, FUNCTION = smaller);
CREATE OPERATOR CLASS box_minmax FOR TYPE box USING brin AS
    OPERATOR 1 <<<<, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 brin_minmax_opcinfo(internal),
    FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
    FUNCTION 3 brin_minmax_consistent(internal, internal, internal),
    FUNCTION 4 brin_minmax_union(internal, internal, internal);
CREATE TABLE by_operator (x box, n int);
CREATE INDEX by_operator_brin ON by_operator USING brin (x box_minmax) WITH (pages_per_range = 1);
INSERT INTO by_operator SELECT box(point(0, 0), point(n, n)), n FROM generate_series(1, 2000) n;
SELECT concurrency(false);

-- what an index expression compares, or makes JSON of
CREATE FUNCTION as_json(odd_range) RETURNS json IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT '1' FROM pg_class WHERE oid = 'pg_class'::regclass);
END $$;
CREATE CAST (odd_range AS json) WITH FUNCTION as_json(odd_range);
CREATE TABLE by_unnamed (x box[], r odd_range, n int);
CREATE INDEX by_unnamed_n ON by_unnamed (n);
CREATE INDEX by_unnamed_m ON by_unnamed ((n % 10));
CREATE INDEX by_unnamed_x ON by_unnamed ((x < ARRAY[box '((0,0),(7,7))']));
INSERT INTO by_unnamed SELECT ARRAY[box(point(0, 0), point(n, n))], NULL, n FROM generate_series(1, 500) n;
SELECT concurrency(false);
DROP INDEX by_unnamed_x;
INSERT INTO by_unnamed SELECT NULL, NULL, n FROM generate_series(1, 500) n;
SELECT concurrency();
CREATE INDEX by_unnamed_r ON by_unnamed (n) WHERE JSON_ARRAY(r RETURNING text) <> '[2]';
INSERT INTO by_unnamed SELECT NULL, odd_range(n + 5, n), n FROM generate_series(1, 500) n;
SELECT concurrency(false);

-- a row that fails is the last one for which partitions are pruned
CREATE FUNCTION count_call(a int, b int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('calls');
    RETURN sign(a - b);
END $$;
CREATE OPERATOR ==== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq, COMMUTATOR = ====);
CREATE OPERATOR CLASS counted FOR TYPE int USING btree AS
    OPERATOR 3 ====, FUNCTION 1 count_call(int, int);
CREATE TABLE pruned (k int, v int) PARTITION BY RANGE (k counted);
CREATE TABLE pruned_1 PARTITION OF pruned FOR VALUES FROM (MINVALUE) TO (2);
CREATE TABLE pruned_2 PARTITION OF pruned FOR VALUES FROM (2) TO (MAXVALUE);
INSERT INTO pruned VALUES (1, 0), (2, 0);
CREATE TABLE by_pruning (a int UNIQUE, v int);
ALTER SEQUENCE calls RESTART;
SELECT * FROM error_of('INSERT INTO by_pruning SELECT CASE n WHEN 1500 THEN 7 ELSE n END, v
    FROM generate_series(1, 3000) n, LATERAL (SELECT v FROM pruned WHERE k ==== n % 2 + 1 OFFSET 0) p');
SELECT nextval('calls') - 1;

-- a domain's check, in a cast that is part of an index expression: it finds
-- the row in the indexes before its own
CREATE FUNCTION check_it(x int) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM by_domain WHERE a = x) = 1;
END $$;
CREATE DOMAIN checked AS int CHECK (check_it(VALUE));
CREATE TABLE by_domain (a int, b text);
CREATE INDEX by_domain_b ON by_domain (b);
CREATE INDEX by_domain_a ON by_domain (a);
CREATE INDEX by_domain_cast ON by_domain ((a::checked));
SET enable_seqscan = off;
COPY by_domain FROM :'file';
RESET enable_seqscan;
SELECT concurrency(false);
SELECT complaints('by_domain');

-- types that users define in C are no obstacle
CREATE TABLE by_enum (a int, m text);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TABLE by_enum ALTER m TYPE mood USING m::mood;
CREATE INDEX by_enum_m ON by_enum (m);
CREATE INDEX by_enum_a ON by_enum (a);
ALTER TYPE mood ADD VALUE 'sadder' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'happier' AFTER 'happy';
INSERT INTO by_enum SELECT n, (enum_range(NULL::mood))[n % 5 + 1] FROM generate_series(1, 2000) n;
SELECT concurrency();
SELECT complaints('by_enum');

-- a function becomes user code, and stops being it
CREATE FUNCTION changing(int) RETURNS int IMMUTABLE LANGUAGE internal AS 'int4um';
CREATE TABLE by_changing (a int, b int);
CREATE INDEX ON by_changing (changing(a));
CREATE INDEX ON by_changing (b);
INSERT INTO by_changing VALUES (1, 1);
SELECT concurrency();
CREATE OR REPLACE FUNCTION changing(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN -$1; END';
INSERT INTO by_changing VALUES (2, 2);
SELECT concurrency(false);
CREATE OR REPLACE FUNCTION changing(int) RETURNS int IMMUTABLE LANGUAGE internal AS 'int4um' SET search_path = '';
INSERT INTO by_changing VALUES (3, 3);
SELECT concurrency(false);
CREATE OR REPLACE FUNCTION changing(int) RETURNS int IMMUTABLE LANGUAGE internal AS 'int4um';
INSERT INTO by_changing VALUES (4, 4);
SELECT concurrency();
SELECT complaints('by_changing');

DROP TABLE by_expression, by_predicate, by_opclass, by_range, by_multirange, by_element, by_operator, by_unnamed, pruned, by_pruning, by_domain, by_enum, by_changing;
DROP DOMAIN checked;
DROP CAST (odd_range AS json);
DROP FUNCTION as_json;
DROP TYPE odd_range, mood;
DROP OPERATOR FAMILY backwards USING btree;
DROP OPERATOR FAMILY boxes USING btree;
DROP OPERATOR FAMILY box_minmax USING brin;
DROP OPERATOR <<<< (box, box);
DROP OPERATOR FAMILY counted USING btree;
DROP OPERATOR ==== (int, int);
DROP FUNCTION expression, predicate, compare_backwards, compare_boxes, smaller, count_call, check_it, changing;
DROP SEQUENCE calls;
