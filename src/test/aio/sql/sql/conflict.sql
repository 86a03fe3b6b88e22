-- ON CONFLICT and MERGE: speculative insertion into several unique indexes.
CREATE TABLE t (
    id int PRIMARY KEY,
    u int UNIQUE,
    v text,
    hits int NOT NULL DEFAULT 0,
    span int4range,
    EXCLUDE USING gist (span WITH &&) WHERE (hits = 0)
);
CREATE UNIQUE INDEX t_lower ON t (lower(v)) INCLUDE (hits);
CREATE INDEX t_hash ON t USING hash (v);
CREATE INDEX t_hits ON t (hits);

SELECT aio_session_stats_reset();
INSERT INTO t SELECT n, -n, 'v' || n, 0, int4range(n, n + 1) FROM generate_series(1, 2000) n
    ON CONFLICT DO NOTHING;
SELECT concurrency();
SELECT forget_indexes('t');
-- half of them exist
INSERT INTO t SELECT n, -n, 'v' || n, 0, int4range(n, n + 1) FROM generate_series(1001, 3000) n
    ON CONFLICT DO NOTHING;
INSERT INTO t SELECT n, -n, 'v' || n, 0, int4range(n, n + 1) FROM generate_series(2001, 4000) n
    ON CONFLICT (id) DO UPDATE SET hits = t.hits + 1 WHERE t.id % 2 = 0;
SELECT concurrency();
INSERT INTO t SELECT n, -n, 'V' || n, 0, int4range(n, n + 1) FROM generate_series(3001, 5000) n
    ON CONFLICT (lower(v)) DO UPDATE SET hits = t.hits + 10, v = excluded.v
    RETURNING id \g /dev/null
-- conflicts within the statement
INSERT INTO t SELECT 10000 + n % 10, -10000 - n, 'w' || n, 0 FROM generate_series(1, 100) n
    ON CONFLICT DO NOTHING;
SELECT * FROM error_of($$INSERT INTO t SELECT 20000 + n % 10, -20000 - n, 'x' || n, 0 FROM generate_series(1, 100) n
    ON CONFLICT (id) DO UPDATE SET hits = t.hits + 1$$);
-- another index than the arbiter
SELECT * FROM error_of($$INSERT INTO t VALUES (30000, -17, 'y', 0) ON CONFLICT (id) DO NOTHING$$);
SELECT * FROM error_of($$INSERT INTO t VALUES (30000, -30000, 'y', 0, '[17,18)') ON CONFLICT (id) DO NOTHING$$);
SELECT * FROM error_of($$INSERT INTO t VALUES (17, -17, 'V17', 0) ON CONFLICT (id) DO UPDATE SET u = -18$$);
INSERT INTO t VALUES (30000, -30000, 'y', 0, '[17,18)') ON CONFLICT DO NOTHING RETURNING id;
SELECT complaints('t');
SELECT same_by_index('t_hash', 'v = ANY ((SELECT array_agg(v) FROM t WHERE id % 50 = 0)::text[])');
SELECT count(*), sum(hits), sum(hashtext(t::text)::bigint) FROM t;

MERGE INTO t USING generate_series(1, 6000, 3) n ON t.id = n
    WHEN MATCHED AND n % 2 = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET hits = hits + 100, u = u - 100000
    WHEN NOT MATCHED THEN INSERT (id, u, v) VALUES (n, -n, 'm' || n);
SELECT concurrency();
SELECT complaints('t');
SELECT count(*), sum(hits), sum(hashtext(t::text)::bigint) FROM t;

-- a row twice in one command
SELECT * FROM error_of($$INSERT INTO t (id, u, v) VALUES (40001, -40001, 'a'), (40002, -40002, 'b'), (40001, -40003, 'c')$$);
INSERT INTO t (id, u, v) VALUES (40001, -40001, 'a'), (40002, -40002, 'b'), (40001, -40003, 'c')
    ON CONFLICT DO NOTHING RETURNING id, v;
DROP TABLE t;
