/* src/test/aio/core/test_aio_core--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_aio_core" to load this file. \quit

-- Run a scope: its body, and the tasks that may be spawned, are programs in
-- the language that test_aio_core.c describes.  Returns what they logged.
CREATE FUNCTION run(body text, VARIADIC tasks text[] DEFAULT '{}')
RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- What the last run() logged, also if it failed.
CREATE FUNCTION logged()
RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The table whose pages programs read.
CREATE FUNCTION use_table(regclass)
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- What this backend holds, besides what it is doing now.
CREATE FUNCTION held(
    OUT tasks int,
    OUT suspended int,
    OUT reads_in_flight int,
    OUT top_memory bigint)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Spawn many tasks that do nothing, in one scope.  Returns by how many bytes
-- memory has grown.
CREATE FUNCTION spawn_empty(tasks int)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Overflow a task's stack in a child process; tells how the child ended.
CREATE FUNCTION overflow_in_child()
RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Execute a statement until it has returned so many rows, and no further.
CREATE FUNCTION execute_some(command text, row_count bigint)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- How many rows with this key does a scan of an index find that is made without
-- a query, through that snapshot: 'self', 'dirty', 'any', 'active' or 'later'?
-- The index is opened as the executor does, or else as anybody.
CREATE FUNCTION search_index(index regclass, key int, snapshot text, as_executor boolean)
RETURNS bigint
AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;

-- The same in a trigger before a row: if its first column is a multiple of so
-- many, expect to find one row for each number that is smaller, by the first
-- index of the table.
CREATE FUNCTION search_before_row()
RETURNS trigger
AS 'MODULE_PATHNAME' LANGUAGE C;

-- Have something in flight in the session's ring until somebody writes into a
-- pipe; the session may do nothing else then.
CREATE FUNCTION read_from_pipe(path text)
RETURNS int
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Damage what the session's ring has counted.
CREATE FUNCTION damage_ring()
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Is the server run by valgrind?
CREATE FUNCTION on_valgrind()
RETURNS bool
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Stage a read of a page, wait until that process waits for it, submit it, and
-- wait for the advisory lock 1 before looking at the page.
CREATE FUNCTION read_staged(rel regclass, block bigint, waiter int)
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Hold an AIO handle for ever.
CREATE FUNCTION hold_handle()
RETURNS void
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Have the replies that the session holds be due in a task, and while it holds
-- one; wait until they have been sent.  Returns where they were not.
CREATE FUNCTION hold_handle_and_replies()
RETURNS text
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
