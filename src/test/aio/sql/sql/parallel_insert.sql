-- Workers of a parallel plan insert the rows of a new table.

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE TYPE pair AS (a int, b text);
CREATE TABLE source (i int, t text, p pair, l int[]);
INSERT INTO source SELECT i, md5(i::text), ROW(i, 'b' || i)::pair, ARRAY[i, -i] FROM generate_series(1, 20000) i;
ALTER TABLE source ALTER t SET STORAGE EXTERNAL;
INSERT INTO source SELECT -i, repeat(md5(i::text), 200), NULL, NULL FROM generate_series(1, 50) i;
ANALYZE source;

-- which plans, and which not
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT * FROM source;
EXPLAIN (COSTS OFF) SELECT i INTO UNLOGGED c FROM source WHERE i % 2 = 0;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT i + 1 AS i, t || 'x' AS t FROM source;
EXPLAIN (COSTS OFF) CREATE TEMP TABLE c AS SELECT i FROM source WHERE i % 2 = 0;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT i, random() FROM source WHERE i % 2 = 0;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT i FROM source WHERE i % 2 = 0 ORDER BY i;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT i FROM source LIMIT 10;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT i % 10, count(*) FROM source GROUP BY 1;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT i FROM source WITH NO DATA;
SET aio.parallel_insert = off;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT * FROM source;
RESET aio.parallel_insert;

-- all rows come from workers
SET parallel_leader_participation = off;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) CREATE TABLE explained AS SELECT i FROM source;
SELECT count(*) FROM explained;
CREATE FUNCTION differs(a text, b text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM ((TABLE %1$s EXCEPT ALL TABLE %2$s) UNION ALL (TABLE %2$s EXCEPT ALL TABLE %1$s)) d', a, b) INTO n;
    RETURN n;
END $$;
CREATE TABLE logged AS SELECT * FROM source;
\echo :ROW_COUNT
SELECT differs('source', 'logged');
-- one transaction and one command has inserted them, as always
SELECT count(DISTINCT xmin::text), count(DISTINCT cmin::text), count(*) FROM logged;
SELECT * INTO UNLOGGED unlogged FROM source;
\echo :ROW_COUNT
SELECT differs('source', 'unlogged');
CREATE TABLE empty AS SELECT * FROM source WHERE i = 0;
\echo :ROW_COUNT
CREATE TABLE columnless AS SELECT FROM source;
\echo :ROW_COUNT
SELECT count(*) FROM columnless;
SET parallel_leader_participation = on;
CREATE TABLE both_do (i, t, p, l) AS SELECT * FROM source;
\echo :ROW_COUNT
SELECT differs('source', 'both_do');
PREPARE first_rows(int) AS SELECT * FROM source WHERE i <= $1;
CREATE TABLE executed AS EXECUTE first_rows(10000);
\echo :ROW_COUNT
SELECT count(*), sum(i) FROM executed;

-- in a transaction that sees its own rows, and a subtransaction that fails
SET parallel_leader_participation = off;
BEGIN;
INSERT INTO source SELECT i, 'new' FROM generate_series(30001, 30010) i;
SAVEPOINT s;
CREATE TABLE gone AS SELECT i, 1 / (i - 20000) AS q FROM source;
ROLLBACK TO s;
CREATE TABLE own AS SELECT * FROM source;
\echo :ROW_COUNT
DELETE FROM own WHERE i > 30000;
SELECT count(*) FROM own;
COMMIT;
SELECT count(*) FROM own;
SELECT to_regclass('gone');
DELETE FROM source WHERE i > 30000;

-- materialized views
CREATE MATERIALIZED VIEW view AS SELECT * FROM source;
SELECT differs('source', 'view');
INSERT INTO source SELECT i, 'new' FROM generate_series(30001, 31000) i;
REFRESH MATERIALIZED VIEW view;
SELECT differs('source', 'view');
DELETE FROM source WHERE i > 30000;
CREATE UNIQUE INDEX ON view (i);
REFRESH MATERIALIZED VIEW CONCURRENTLY view;
SELECT differs('source', 'view');

-- an error of a worker
CREATE TABLE failing AS SELECT 1 / (i - 15000) AS q FROM source;
SELECT to_regclass('failing');

-- planned once, and as if rows were sent
RESET parallel_tuple_cost;
EXPLAIN (COSTS OFF) CREATE TABLE c AS SELECT * FROM source;
CREATE TABLE planned AS SELECT i FROM source WHERE i < numnode(to_tsquery('english', 'the'));

-- functions that run queries, and tables, while workers insert
CREATE FUNCTION looks(int) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT count(*) + $1 FROM empty';
CREATE TABLE looked AS SELECT looks(i) AS n FROM source WHERE i > 0;
SELECT count(*), sum(n) FROM looked;

-- and that catch errors, which a leader that writes cannot
CREATE FUNCTION forgives(n int) RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN n + (SELECT count(*) / (n % 5) FROM empty);
EXCEPTION WHEN division_by_zero THEN
    RETURN -n;
END $$;
CREATE TABLE forgave AS SELECT forgives(i) AS i FROM source WHERE i > 0;
\echo :ROW_COUNT
SELECT count(*), sum(i) FROM forgave;
