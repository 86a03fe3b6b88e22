CREATE TABLE t AS SELECT i, i % 100 AS j FROM generate_series(1, 10000) i;
ANALYZE t;
SELECT (hypopg_create_index('CREATE INDEX ON t (i)')).indexname IS NOT NULL;
EXPLAIN SELECT * FROM t WHERE i = 5 \g | sed 's/<[0-9]*>/<N>/'
SELECT hypopg_relation_size(indexrelid) FROM hypopg_list_indexes;
SELECT hypopg_reset();
EXPLAIN (COSTS OFF) SELECT * FROM t WHERE i = 5;
