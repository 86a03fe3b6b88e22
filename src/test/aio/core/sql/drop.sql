-- Tasks that are suspended when their scope fails: they never run again,
-- what they held is released, their stacks are used again.
SELECT use_table('pages');

CREATE VIEW pinned AS
SELECT count(*) AS pinned_pages FROM pg_buffercache
 WHERE relfilenode = pg_relation_filenode('pages') AND pinning_backends > 0;

-- in a transaction of its own
SELECT run('spawn 1; spawn 2; spawn 1; fail XX000', 'pin 1; await 1; unpin 1', 'pin 2; pin 3; await 1; unpin 2; unpin 3');
SELECT tasks, suspended, reads_in_flight FROM held();
SELECT * FROM pinned;

-- in a savepoint
BEGIN;
SAVEPOINT s;
SELECT run('spawn 1; spawn 2; spawn 1; fail XX000', 'pin 1; await 1; unpin 1', 'pin 2; pin 3; await 1; unpin 2; unpin 3');
ROLLBACK TO s;
SELECT tasks, suspended, reads_in_flight FROM held();
SELECT * FROM pinned;
SELECT run('spawn 1; spawn 1; spawn 1; set 1', 'pin 1; await 1; unpin 1; log a');
SELECT tasks, suspended, reads_in_flight FROM held();
COMMIT;

-- with reads in flight
BEGIN;
SAVEPOINT s;
SELECT buffers_evicted > 0 AS evicted FROM pg_buffercache_evict_relation('pages');
SELECT run('spawn 1; spawn 2; spawn 3; fail XX000', 'read 11', 'read 12', 'read 13');
ROLLBACK TO s;
SELECT tasks, suspended, reads_in_flight FROM held();
SELECT aios_left();
SELECT run('spawn 1; spawn 2; spawn 3; log done', 'read 11', 'read 12', 'read 13');
COMMIT;

-- scopes within tasks, at each of which somebody waits; all pages are cached
SELECT count(*) FROM pages;
BEGIN;
SAVEPOINT s;
SELECT run('spawn 1; spawn 1; spawn 4; fail XX000', 'nest 2 2', 'pin 5; nest 3', 'pin 6; await 1', 'nest f1');
ROLLBACK TO s;
SELECT tasks, suspended, reads_in_flight FROM held();
SELECT * FROM pinned;
SELECT run('spawn 1; spawn 1; set 1', 'nest 2 2', 'nest 3; log a', 'await 1; log b');
SELECT run('spawn 1; log body; set 1', 'nest f1 2; log a', 'log b');
COMMIT;

-- the statement times out while tasks are suspended, or one blocks
SELECT run('spawn 1; spawn 2; log body; timeout 10', 'pin 1; latch; unpin 1', 'pin 2; latch; unpin 2');
SELECT logged();
SELECT run('spawn 1; spawn 2; log body; timeout 10', 'nest 3; log a', 'pin 2; latch; unpin 2', 'pin 1; latch');
SELECT run('timeout 10; spawn 1; spawn 2; log body', 'pin 1; latch; unpin 1', 'pin 2; block');
SELECT logged();
SELECT suspended, reads_in_flight FROM held();
SELECT * FROM pinned;

-- a thousand times
DO $$
DECLARE
    before record;
    since record;
    failures int := 0;
BEGIN
    SELECT * INTO before FROM held();
    FOR i IN 1..1000 LOOP
        BEGIN
            PERFORM run('spawn 1; spawn 2; spawn 3; spawn 4; fail XX000',
                        'pin 1; await 1', 'nest 1 1; await 2', 'read 20; await 3', 'nest f1');
        EXCEPTION WHEN internal_error THEN
            failures := failures + 1;
        END;
    END LOOP;
    SELECT * INTO since FROM held();
    RAISE NOTICE '% failures, % more tasks, % suspended, % more bytes', failures,
        since.tasks - before.tasks, since.suspended,
        CASE WHEN since.top_memory - before.top_memory < 64 * 1024 THEN 'no' ELSE (since.top_memory - before.top_memory)::text END;
END $$;
SELECT * FROM pinned;
SELECT aios_left();
DROP VIEW pinned;
