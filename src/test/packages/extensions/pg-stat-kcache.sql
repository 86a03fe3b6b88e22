-- preload: pg_stat_statements, pg_stat_kcache
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
SELECT count(*) FROM t;
SELECT calls, rows, query FROM pg_stat_statements WHERE query LIKE '%t%' ORDER BY query;
SELECT s.query, k.exec_user_time >= 0 FROM pg_stat_kcache() k JOIN pg_stat_statements s USING (queryid, userid, dbid) WHERE s.query LIKE 'INSERT%';
SELECT pg_stat_kcache_reset();
