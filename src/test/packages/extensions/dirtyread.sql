CREATE TABLE t (i int, v text) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 1000) i;
DELETE FROM t WHERE i % 10 = 0;
SELECT count(*), sum(i) FROM pg_dirtyread('t') AS d(i int, v text, dead boolean) WHERE dead;
VACUUM t;
SELECT count(*) FROM pg_dirtyread('t') AS d(i int, v text);
