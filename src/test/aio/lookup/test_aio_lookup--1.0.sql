/* src/test/aio/lookup/test_aio_lookup--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_aio_lookup" to load this file. \quit

-- The distances that a window takes.  Each letter of 'events' is something that
-- happens: r, lookups ahead have begun reads; m, they have found everything in
-- memory; R, M, the same, for a single lookup; n, something is needed; v, something
-- turns out to have been in vain.
CREATE FUNCTION window_distances(events text, distance_max int, wanted bigint, needed int DEFAULT 0, in_vain int DEFAULT 0)
RETURNS int[]
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The steps in which an index of integers is probed for a key.
CREATE FUNCTION probe_steps(index regclass, key int, strategy int2)
RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Have as many pages of an index read ahead by tasks, and those of its table
-- besides; returns how often tasks have been suspended.
CREATE FUNCTION read_ahead_in_tasks(index regclass, nblocks int)
RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The argument; fails, with more than an error to be cleaned up, if 7 divides it.
CREATE FUNCTION fail_in_spi(int)
RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;

-- The number of calls so far, by one place in a statement.
CREATE FUNCTION count_calls()
RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;
