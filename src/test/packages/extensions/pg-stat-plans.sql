-- preload: pg_stat_plans
CREATE TABLE t AS SELECT i FROM generate_series(1, 5000) i;
SELECT count(*) FROM t WHERE i < 50;
SELECT sum(calls) >= 1 FROM pg_stat_plans(true) WHERE plan LIKE '%Seq Scan on t%';
