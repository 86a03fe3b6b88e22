-- preload: pg_stat_statements, pg_qualstats
-- set: pg_qualstats.sample_rate = 1
CREATE TABLE t AS SELECT i, i % 10 AS j FROM generate_series(1, 5000) i;
SELECT count(*) FROM t WHERE j = 5;
SELECT count(*) FROM t a JOIN t b USING (i) WHERE a.j > 7;
SELECT lrelid::regclass, lattnum, opno::regoper, sum(nbfiltered), sum(occurences) FROM pg_qualstats WHERE lrelid = 't'::regclass GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT v FROM json_array_elements(pg_qualstats_index_advisor(min_filter => 50) -> 'indexes') v ORDER BY v::text;
