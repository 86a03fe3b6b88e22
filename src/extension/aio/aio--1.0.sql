/* src/extension/aio/aio--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION aio" to load this file. \quit

CREATE FUNCTION aio_session_stats(
    OUT scopes bigint,
    OUT tasks bigint,
    OUT tasks_inline bigint,
    OUT tasks_suspended bigint,
    OUT tasks_failed bigint,
    OUT tasks_dropped bigint,
    OUT suspensions bigint,
    OUT blocked bigint,
    OUT reads bigint,
    OUT max_reads_in_flight int,
    OUT avg_reads_in_flight double precision,
    OUT wait_time double precision)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_stats() IS
'statistics of this session''s tasks and awaited reads';

CREATE FUNCTION aio_session_blocked(
    OUT reason text,
    OUT awaits bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_blocked() IS
'how often tasks of this session blocked instead of suspending, by reason';

CREATE FUNCTION aio_session_batches(
    OUT entries bigint,
    OUT batches bigint,
    OUT memory_full bigint,
    OUT looked_at bigint,
    OUT leaf_visits bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_batches() IS
'statistics of index entries that statements of this session have inserted in batches, in index order';

CREATE FUNCTION aio_session_space(
    OUT extensions_in_reserve bigint,
    OUT waits bigint,
    OUT requests bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_space() IS
'statistics of space that was allocated before this session needed it to extend files';

CREATE FUNCTION aio_session_wal(
    OUT writes_started bigint,
    OUT flushes_awaited bigint,
    OUT commits_held bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_wal() IS
'statistics of WAL that this session has written, and of commits, without waiting for them';

CREATE FUNCTION aio_session_stats_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_stats_reset() IS
'reset the statistics of this session''s tasks and awaited reads';
