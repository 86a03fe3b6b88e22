-- The session's counters: what they count, and that they begin anew.
CREATE EXTENSION aio;

CREATE TABLE counted (a int, b text);
CREATE INDEX ON counted (a);
CREATE INDEX ON counted (b);

SELECT aio_session_stats_reset();
INSERT INTO counted VALUES (1, 'one');
-- without awaiting there are no tasks
SET aio.await_index_inserts = off;
INSERT INTO counted VALUES (2, 'two');
RESET aio.await_index_inserts;
-- with io_method=sync there is nothing to await
SELECT CASE WHEN current_setting('io_method') = 'sync'
            THEN tasks = 0 ELSE tasks = 2 AND scopes = 1 END AS counted,
       tasks = tasks_inline + tasks_suspended AS adds_up,
       tasks_failed, tasks_dropped
  FROM aio_session_stats();

SELECT aio_session_stats_reset();
SELECT scopes, tasks, suspensions, reads FROM aio_session_stats();
SELECT count(*) FROM aio_session_blocked();

-- parameters are described, and their prefix is reserved
SELECT name, vartype, context, boot_val, short_desc <> '' AS described
  FROM pg_settings WHERE name IN ('aio.await_index_inserts', 'aio.max_tasks')
  ORDER BY name;
SET aio.no_such_parameter = 1;
SET aio.max_tasks = 0;

DROP TABLE counted;
