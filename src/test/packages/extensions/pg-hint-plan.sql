-- preload: pg_hint_plan
CREATE TABLE a AS SELECT i, i % 10 AS j FROM generate_series(1, 5000) i;
CREATE TABLE b AS SELECT i, i % 10 AS j FROM generate_series(1, 5000) i;
CREATE INDEX ON a (i);
CREATE INDEX ON b (i);
ANALYZE;
/*+ NestLoop(a b) IndexScan(b) */ EXPLAIN (COSTS OFF) SELECT * FROM a JOIN b USING (i);
/*+ MergeJoin(a b) Leading((b a)) */ EXPLAIN (COSTS OFF) SELECT * FROM a JOIN b USING (i);
/*+ HashJoin(a b) SeqScan(a) Set(enable_sort off) Rows(a b #10) */ EXPLAIN (COSTS OFF) SELECT * FROM a JOIN b USING (i) WHERE a.i < 5;
/*+ Parallel(a 2 hard) */ EXPLAIN (COSTS OFF) SELECT count(*) FROM a;
