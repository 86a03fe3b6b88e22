CREATE TABLE t (i int PRIMARY KEY);
SELECT r FROM pg_background_launch_v2('INSERT INTO t SELECT generate_series(1, 3000)') l, LATERAL pg_background_result_v2(l.pid, l.cookie) AS (r text);
SELECT count(*) FROM t;
