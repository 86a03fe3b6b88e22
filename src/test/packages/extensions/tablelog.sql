CREATE TABLE t (id int PRIMARY KEY, v text);
SELECT table_log_init(5, 't');
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 2000) i;
UPDATE t SET v = v || '!' WHERE id % 2 = 0;
DELETE FROM t WHERE id % 5 = 0;
SELECT trigger_mode, trigger_tuple, count(*), min(v), max(v) FROM t_log GROUP BY 1, 2 ORDER BY 1, 2;
