-- preload: pg_wait_sampling
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
SELECT pg_sleep(0.2);
SELECT event_type, event FROM pg_wait_sampling_profile WHERE pid = pg_backend_pid() AND event = 'PgSleep' GROUP BY 1, 2;
SELECT count(*) > 0 FROM pg_wait_sampling_history;
SELECT count(*) > 0 FROM pg_wait_sampling_current;
SELECT pg_wait_sampling_reset_profile();
