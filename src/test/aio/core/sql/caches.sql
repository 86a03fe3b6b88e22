-- What the relation cache forgets while tasks are suspended: whoever looks at
-- it goes on looking at it, and it is freed afterwards, once.
CREATE TABLE cached (a int PRIMARY KEY, b int);
CREATE INDEX cached_hash ON cached USING hash (b);
INSERT INTO cached SELECT n, n FROM generate_series(1, 1000) n;
CREATE TABLE unused (a int PRIMARY KEY);
INSERT INTO unused SELECT n FROM generate_series(1, 1000) n;
SELECT use_table('cached');

SELECT run('spawn 1; forget; set 1', 'amcache 1');
SELECT run('spawn 1; spawn 2', 'amcache 1', 'forget; set 1');
SELECT run('spawn 1; spawn 2; spawn 1', 'amcache 1', 'forget; yield; forget; set 1');
-- what nobody uses at the moment is cached, too, and may go altogether
SET enable_seqscan = off;
SELECT count(*) FROM unused WHERE a = 5;
SELECT run('spawn 1; spawn 2', 'amcache 1', 'forget; set 1');
SELECT count(*) FROM unused WHERE a = 5;
SELECT run('spawn 1; forget; set 1; join; forget', 'await 1; log a');
-- and the task that looks may be dropped
SELECT run('spawn 1; forget; fail XX000', 'amcache 1');
SELECT run('spawn 1; spawn 1; set 1', 'amcache 1');
BEGIN;
SAVEPOINT s;
SELECT run('spawn 1; forget; fail XX000', 'amcache 1');
ROLLBACK TO s;
SELECT run('spawn 1; spawn 2', 'amcache 1', 'forget; set 1');
COMMIT;
-- what was kept goes with the entry, as soon as nobody uses it
DO $$
DECLARE
    before bigint;
    bytes bigint;
BEGIN
    FOR i IN 1..300 LOOP
        BEGIN
            PERFORM run('spawn 1; spawn 2', 'amcache 1', 'forget; set 1');
            PERFORM run('spawn 1; spawn 2; fail 22000', 'amcache 1', 'forget');
        EXCEPTION WHEN data_exception THEN
            NULL;
        END;
        IF i IN (100, 300) THEN
            PERFORM run('forget');
            SELECT coalesce(sum(total_bytes), 0) INTO bytes
              FROM pg_backend_memory_contexts WHERE ident LIKE 'cached%';
            before := coalesce(before, bytes);
        END IF;
    END LOOP;
    RAISE NOTICE '% more', CASE WHEN bytes <= before THEN 'nothing' ELSE bytes - before || ' bytes' END;
END $$;
DROP TABLE cached, unused;
