-- An extension's access method says what may be done with its inserts, and that
-- is done; if it says nothing, its entries are inserted as ever.
CREATE EXTENSION test_aio_index_am;

CREATE TABLE points (id int, p point);
INSERT INTO points
    SELECT n, point((n * 7919) % 10007, (n * 104729) % 10009) FROM generate_series(1, 5000) n;

-- Of its two indexes, one is of the access method.
CREATE TABLE plain_table (id int, p point);
CREATE INDEX plain_id ON plain_table (id);
CREATE INDEX plain_p ON plain_table USING plain (p);
CREATE TABLE batched_table (LIKE plain_table);
CREATE INDEX batched_id ON batched_table (id);
CREATE INDEX batched_p ON batched_table USING batched (p);
CREATE TABLE serial_table (LIKE plain_table);
CREATE INDEX serial_id ON serial_table (id);
CREATE INDEX serial_p ON serial_table USING serial (p);

-- How many rows a query finds by the index, and how many there are.
CREATE FUNCTION found(t regclass, OUT by_index int, OUT there_are int) LANGUAGE plpgsql AS $$
DECLARE
    query text := format('SELECT count(*) FROM %s WHERE p <@ box ''(1000,1000),(6000,7000)''', t);
BEGIN
    SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_seqscan = off;
    EXECUTE query INTO by_index;
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_indexonlyscan = off;
    SET LOCAL enable_seqscan = on;
    EXECUTE query INTO there_are;
END $$;

-- few rows: tasks, unless reads are synchronous
SELECT setting <> 'sync' AS tasks FROM pg_settings WHERE name = 'io_method';
INSERT INTO plain_table SELECT * FROM points LIMIT 500;
INSERT INTO batched_table SELECT * FROM points LIMIT 500;
INSERT INTO serial_table SELECT * FROM points LIMIT 500;
SELECT inserts, in_tasks, pages, collected, drained FROM calls('plain');
SELECT inserts, in_tasks, pages > 0 AS pages, collected, drained FROM calls('batched');
SELECT inserts, in_tasks, tasks_at_a_time, pages, collected, drained FROM calls('serial');

-- many rows: all but the first 1000 are collected, where that is allowed
INSERT INTO plain_table SELECT * FROM points;
INSERT INTO batched_table SELECT * FROM points;
INSERT INTO serial_table SELECT * FROM points;
SELECT inserts, in_tasks, collected, drained FROM calls('plain');
SELECT inserts, in_tasks > 0 AS in_tasks, collected, drained FROM calls('batched');
SELECT inserts, tasks_at_a_time, collected, drained FROM calls('serial');

-- It finds each row by the indexes before its own, of a few rows or of many.
CREATE TABLE looked (id int, p point, q int);
CREATE INDEX looked_id ON looked (id);
CREATE INDEX looked_p ON looked USING plain (p);
CREATE INDEX looked_q ON looked (q);
INSERT INTO looked SELECT hashint4(n), point(hashint4(n), n), hashint4(-n) FROM generate_series(1, 2000) n;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT plain_looks_for('SELECT count(*) FROM looked WHERE id = $1[0]::int');
INSERT INTO looked SELECT hashint4(n), point(hashint4(n), n), hashint4(-n) FROM generate_series(3001, 3200) n;
SELECT plain_looks_for('SELECT count(*) FROM looked WHERE id = $1[0]::int');
INSERT INTO looked SELECT hashint4(n), point(hashint4(n), n), hashint4(-n) FROM generate_series(4001, 5200) n;
SELECT plain_looks_for(NULL);
RESET enable_seqscan;
RESET enable_bitmapscan;

-- entries that are declined are inserted at once, others wait
INSERT INTO batched_table
    SELECT id, CASE WHEN id % 4 = 0 THEN point(-1 - p[0], p[1]) ELSE p END FROM points;
SELECT inserts, collected, drained FROM calls('batched');

-- COPY, and an index that is wanted by a query before the statement has ended
\getenv abs_builddir PG_ABS_BUILDDIR
\set output :abs_builddir '/results/index_am.data'
COPY points TO :'output';
COPY batched_table FROM :'output';
SELECT inserts, collected, drained FROM calls('batched');
CREATE FUNCTION is_there(q point) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT FROM batched_table WHERE p ~= q);
END $$;
INSERT INTO batched_table SELECT id, p FROM points WHERE id % 700 > 0 OR is_there(p);
SELECT inserts, collected = drained AS all_drained FROM calls('batched');

-- what is rolled back, or fails, leaves no entry that anybody finds
BEGIN;
INSERT INTO batched_table SELECT id, point(p[0] + 0.5, p[1]) FROM points;
ROLLBACK;
INSERT INTO batched_table SELECT 10 / (4999 - id), p FROM points;

-- equal results
SELECT * FROM found('plain_table');
SELECT * FROM found('batched_table');
SELECT * FROM found('serial_table');
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM batched_table WHERE p <@ box '(1,1),(2,2)';
RESET enable_seqscan;
RESET enable_bitmapscan;

-- off is off
SET aio.await_index_inserts = off;
SELECT inserts > 0 AS had_been_called FROM calls('batched');
INSERT INTO batched_table SELECT * FROM points;
SELECT inserts, in_tasks, collected FROM calls('batched');
RESET aio.await_index_inserts;

-- Rows of a table access method that may do anything are inserted one by one.
CREATE TABLE single_table (n int, m int) USING single;
INSERT INTO single_table SELECT n, n FROM generate_series(1, 3000) n;
SELECT count(*), sum(n) FROM single_table;
CREATE TABLE single_keys (n int) USING single;
CREATE UNIQUE INDEX ON single_keys (n);
INSERT INTO single_keys SELECT hashint4(n) FROM generate_series(100000, 130000) n;
SELECT single_rows();
INSERT INTO single_keys SELECT hashint4(CASE n WHEN 2500 THEN 5 ELSE n END) FROM generate_series(1, 8000) n;
SELECT single_rows();

-- Rows that go to an extension are produced when it asks for them.
SET test_aio.row = 0;
CREATE TABLE numbered (n int, k int, t text STORAGE EXTERNAL);
INSERT INTO numbered SELECT n, n * 7919 % 2003, repeat('x', 2500) FROM generate_series(1, 2000) n;
CREATE INDEX ON numbered (n);
ANALYZE numbered;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(set_config(name, '20', false)) <= 1 AS ahead FROM pg_settings WHERE name = 'aio.debug_lookups';
SELECT dest, values_of_another_time($$SELECT s.v, d.n FROM (SELECT current_setting('test_aio.row')::int AS v, k FROM numbered OFFSET 0) s
                                        JOIN numbered d ON d.n = s.k$$, dest) AS joined,
       values_of_another_time($$SELECT current_setting('test_aio.row')::int, t FROM numbered$$, dest) AS wide
  FROM unnest('{0, 8, 9}'::int[]) dest;
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(set_config(name, '0', false)) <= 1 AS as_ever FROM pg_settings WHERE name = 'aio.debug_lookups';

-- One that takes the place of CREATE TABLE AS gets all rows.
SELECT wrap_receivers(true);
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
CREATE TABLE made AS SELECT n, k FROM numbered;
SELECT wrap_receivers(false);
SELECT count(*) FROM made;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

-- The extension gives COPY its rows, and says so: not those long after the one
-- that fails.
CREATE TABLE numbers (n int PRIMARY KEY);
INSERT INTO numbers VALUES (3500 * 7919 % 1000003);
SELECT copy_numbers('numbers', 100000);
DELETE FROM numbers;
SELECT copy_numbers('numbers', 2500);

-- What indexes call may run queries, and have much on the stack.
CREATE TABLE called (id int, a int[], n int);
CREATE INDEX called_a ON called USING gin (a querying_arrays);
CREATE INDEX called_hash ON called USING hash (n querying_ints);
CREATE INDEX called_deep ON called (n deep_ints);
INSERT INTO called SELECT i, ARRAY[i % 10, i % 7], hashint4(i) FROM generate_series(1, 3000) i;
ANALYZE called;
SET enable_seqscan = off;
SELECT count(*) FROM called WHERE a @> '{3}';
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*), count(c.id) FROM generate_series(1, 3000) i LEFT JOIN called c ON c.n = hashint4(i);
DROP INDEX called_hash;
SELECT count(*), count(c.id) FROM generate_series(1, 3000) i LEFT JOIN called c ON c.n = hashint4(i);
RESET enable_seqscan;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- also where nothing names them: of the elements of arrays
CREATE OPERATOR CLASS querying_points DEFAULT FOR TYPE point USING btree AS
    OPERATOR 1 <<, OPERATOR 2 <<|, OPERATOR 3 ~=, OPERATOR 4 |>>, OPERATOR 5 >>,
    FUNCTION 1 querying_compare(point, point);
CREATE TABLE pointed (id int, p point[]);
CREATE INDEX ON pointed USING gin (p);
CREATE INDEX ON pointed (id);
INSERT INTO pointed SELECT i, ARRAY[point(i % 10, i % 7), point(i % 7, 1)] FROM generate_series(1, 1500) i;
SET enable_seqscan = off;
SELECT count(*) FROM pointed WHERE p @> ARRAY[point(3, 3)];
RESET enable_seqscan;

-- what is not accepted
SELECT register_again();
SELECT register_contradiction();
