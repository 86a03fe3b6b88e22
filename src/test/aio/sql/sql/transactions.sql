-- Savepoints, cursors, changes of the table and settings in mid-transaction.
CREATE TABLE t (id int PRIMARY KEY, a text UNIQUE, b int);
CREATE INDEX t_b ON t (b);
CREATE INDEX t_hash ON t USING hash (b);
CREATE INDEX t_gin ON t USING gin (string_to_array(a, ' '));
SELECT aio_session_stats_reset();

-- rows that fail, one by one
CREATE FUNCTION insert_each() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    failed int := 0;
BEGIN
    FOR n IN 1..1000 LOOP
        BEGIN
            INSERT INTO t SELECT m / 2, 'a ' || m / 3, m FROM generate_series(n, n + n % 3) m;
        EXCEPTION WHEN unique_violation THEN
            failed := failed + 1;
        END;
    END LOOP;
    RETURN failed || ' failed';
END $$;
SELECT insert_each();
SELECT concurrency();
SELECT complaints('t');
SELECT count(*), sum(hashtext(t::text)::bigint) FROM t;
SELECT aios_left();

BEGIN;
INSERT INTO t VALUES (2001, 'x 1', 1), (2002, 'x 2', 2);
SAVEPOINT s;
INSERT INTO t VALUES (2003, 'x 3', 3), (2001, 'x 4', 4);
ROLLBACK TO s;
INSERT INTO t VALUES (2003, 'x 3', 3);
SAVEPOINT s;
INSERT INTO t SELECT n, 'y ' || n, n FROM generate_series(3000, 3500) n;
ROLLBACK TO s;
INSERT INTO t SELECT n, 'y ' || n, n FROM generate_series(3000, 3500) n;
RELEASE s;
COMMIT;
SELECT complaints('t');

-- a cursor that modifies, and one that is open while others insert
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t WHERE id >= 3000 ORDER BY id;
FETCH 2 FROM c;
WITH inserted AS (INSERT INTO t SELECT n, 'z ' || n, n FROM generate_series(4000, 4500) n RETURNING id)
SELECT count(*) FROM inserted;
FETCH 2 FROM c;
UPDATE t SET b = -b, a = 'w' || a WHERE CURRENT OF c;
COMMIT;

-- structure changes between statements, and within a transaction
BEGIN;
INSERT INTO t VALUES (5001, 'v 1', 1);
CREATE UNIQUE INDEX t_late ON t ((-id), b);
INSERT INTO t VALUES (5002, 'v 2', 2);
DROP INDEX t_gin;
INSERT INTO t VALUES (5003, 'v 3', 3);
ALTER TABLE t ADD c int DEFAULT 7;
CREATE INDEX t_c ON t (c);
INSERT INTO t VALUES (5004, 'v 4', 4);
TRUNCATE t;
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(1, 1000) n;
COMMIT;
SELECT complaints('t');
REINDEX TABLE t;
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(1001, 2000) n;
CLUSTER t USING t_b;
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(2001, 3000) n;
VACUUM FULL t;
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(3001, 4000) n;
SELECT concurrency();
SELECT complaints('t');
SELECT same_by_index('t_hash', 'b = ANY ((SELECT array_agg(b) FROM t WHERE id % 50 = 0)::int[])');

-- few tasks, and as many as there may be
SET aio.max_tasks = 1;
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(4001, 4100) n;
SELECT concurrency(false);
SET aio.max_tasks = 2;
SELECT forget_indexes('t');
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(4101, 4200) n;
SELECT concurrency();
SET aio.max_tasks = 1024;
SELECT forget_indexes('t');
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(4201, 4300) n;
SELECT concurrency();
RESET aio.max_tasks;

-- serializable transactions note what they read
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO t SELECT n, 'u ' || n, n, n FROM generate_series(4301, 4400) n;
SELECT count(*) FROM t WHERE b > 4000;
COMMIT;

-- prepared, and in parallel-capable plans
PREPARE p AS INSERT INTO t VALUES ($1, $2, $3, $4);
EXECUTE p (6001, 'prepared 1', 1, 1);
EXECUTE p (6001, 'prepared 2', 2, 2);
EXECUTE p (6002, 'prepared 2', 2, 2);
CREATE TABLE copied AS TABLE t;
ALTER TABLE copied ADD PRIMARY KEY (id);
CREATE INDEX ON copied (a);
INSERT INTO copied SELECT id + 10000, a, b, c FROM t;
SELECT concurrency();
SELECT complaints('copied'), complaints('t');
SELECT count(*), sum(hashtext(t::text)::bigint) FROM t;
DROP TABLE t, copied;
DROP FUNCTION insert_each;
