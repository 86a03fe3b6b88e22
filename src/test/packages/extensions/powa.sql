-- preload: pg_stat_statements, powa
-- set: powa.frequency = -1
CREATE TABLE t (i int PRIMARY KEY, v text UNIQUE);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
SELECT powa_take_snapshot();
SELECT count(*) > 0 FROM powa_statements;
