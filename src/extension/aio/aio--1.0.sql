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
    OUT before_query bigint,
    OUT leaf_visits bigint,
    OUT bytes_spilled bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_batches() IS
'statistics of index entries that statements of this session have inserted in batches, in index order';

CREATE FUNCTION aio_session_checks(
    OUT direct bigint,
    OUT queries bigint,
    OUT ahead bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_checks() IS
'statistics of foreign keys that this session has checked, with and without queries, and of keys looked up ahead of their checks';

CREATE FUNCTION aio_session_preallocation(
    OUT extensions bigint,
    OUT waits bigint,
    OUT requests bigint)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_session_preallocation() IS
'statistics of preallocated space that this session has used to extend files';

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

CREATE FUNCTION aio_stat_futures(
    OUT backend_type text,
    OUT kind text,
    OUT started bigint,
    OUT completed_inline bigint,
    OUT suspended bigint,
    OUT waited bigint,
    OUT failed bigint,
    OUT cancelled bigint,
    OUT bytes bigint,
    OUT wait_time double precision,
    OUT batches bigint,
    OUT avg_batch double precision,
    OUT max_batch bigint,
    OUT avg_in_flight double precision,
    OUT max_in_flight bigint,
    OUT stats_reset timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STABLE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_aio AS
    SELECT * FROM aio_stat_futures();

COMMENT ON VIEW pg_stat_aio IS
'what was started without waiting for it, by type of process and kind of future';

CREATE FUNCTION aio_stat_latency(
    OUT kind text,
    OUT latency_from double precision,
    OUT latency_to double precision,
    OUT completed bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STABLE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_aio_latency AS
    SELECT * FROM aio_stat_latency();

COMMENT ON VIEW pg_stat_aio_latency IS
'histogram of the time from start to completion, in milliseconds, by kind of future';

CREATE FUNCTION aio_stat_depth(
    OUT kind text,
    OUT depth_from bigint,
    OUT depth_to bigint,
    OUT started bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STABLE PARALLEL RESTRICTED;

CREATE VIEW pg_stat_aio_depth AS
    SELECT * FROM aio_stat_depth();

COMMENT ON VIEW pg_stat_aio_depth IS
'histogram of the number that a process had in flight when it started one, by kind of future';

CREATE FUNCTION aio_stat_index(
    index oid,
    OUT entries bigint,
    OUT batches bigint,
    OUT leaf_visits bigint,
    OUT reads bigint,
    OUT suspensions bigint,
    OUT stats_reset timestamptz)
AS 'MODULE_PATHNAME'
LANGUAGE C STABLE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_stat_aio_relation AS
    SELECT i.indrelid AS relid,
           i.indexrelid,
           n.nspname AS schemaname,
           t.relname,
           x.relname AS indexrelname,
           s.entries,
           s.batches,
           s.leaf_visits,
           s.reads,
           s.suspensions,
           s.stats_reset
    FROM pg_index i
         JOIN pg_class t ON t.oid = i.indrelid
         JOIN pg_class x ON x.oid = i.indexrelid
         JOIN pg_namespace n ON n.oid = t.relnamespace,
         aio_stat_index(i.indexrelid) s
    WHERE s.entries IS NOT NULL;

COMMENT ON VIEW pg_stat_aio_relation IS
'inserts into indexes of the current database: entries that were collected, and pages that were awaited';

CREATE FUNCTION aio_tasks(
    OUT pid int,
    OUT datid oid,
    OUT scope bigint,
    OUT task bigint,
    OUT relid oid,
    OUT awaits text,
    OUT reltablespace oid,
    OUT relfilenode oid,
    OUT fork text,
    OUT block bigint,
    OUT blocks int,
    OUT lsn pg_lsn,
    OUT since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE VIEW pg_aio_tasks AS
    SELECT t.pid, t.datid, d.datname, t.scope, t.task,
           CASE WHEN d.datname = current_database() THEN t.relid::regclass END AS relation,
           t.relid, t.awaits,
           t.reltablespace, t.relfilenode, t.fork, t.block, t.blocks, t.lsn, t.since
    FROM aio_tasks() t LEFT JOIN pg_database d ON d.oid = t.datid;

COMMENT ON VIEW pg_aio_tasks IS
'tasks that are suspended, of all sessions, and what they await';

CREATE FUNCTION aio_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_stat_reset() IS
'reset pg_stat_aio and its histograms';

CREATE FUNCTION aio_stat_reset_index(index oid)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION aio_stat_reset_index(oid) IS
'reset the statistics of one index in pg_stat_aio_relation';

-- like upstream's functions that reset statistics
REVOKE ALL ON FUNCTION aio_stat_reset() FROM PUBLIC;
REVOKE ALL ON FUNCTION aio_stat_reset_index(oid) FROM PUBLIC;

-- like upstream's views of statistics
GRANT SELECT ON pg_stat_aio, pg_stat_aio_latency, pg_stat_aio_depth, pg_stat_aio_relation, pg_aio_tasks TO PUBLIC;
