-- Who runs when.
SELECT aio_session_stats_reset();

-- a task starts at once, and inline if it need not wait
SELECT run('log begin; spawn 1; log between; spawn 2; log end', 'log a', 'log b');
-- an empty scope, and one whose tasks need no join
SELECT run('');
SELECT run('spawn 1; spawn 1; spawn 1', 'log again');
SELECT tasks, tasks_inline, suspensions FROM aio_session_stats();
-- spawning costs no memory
SELECT spawn_empty(100000);
SELECT tasks FROM held();

-- a flag that is set need not be awaited
SELECT run('set 1; spawn 1; log body', 'await 1; log a');
SELECT suspensions FROM aio_session_stats();

-- tasks are resumed oldest first
SELECT run('spawn 1; spawn 2; spawn 3; log body; set 1; join; log joined',
           'log a; await 1; log b', 'log c; await 1; log d', 'log e; await 1; log f');
-- but only those that can go on
SELECT run('spawn 1; spawn 2; spawn 3; log body; set 1',
           'await 3; log a', 'await 2; log b; set 3', 'await 1; log c; set 2');
-- the end of the body joins
SELECT run('spawn 1; set 1; log body', 'await 1; log a');
-- a task joined by its number
SELECT run('spawn 1; spawn 2; set 1; join 1; log joined; set 2', 'await 1; log a', 'await 2; log b');
SELECT run('spawn 1; spawn 2; join 1; log joined; set 2', 'log a', 'await 2; log b');

-- yielding lets siblings go on, as long as there are any
SELECT run('spawn 1; spawn 2', 'log a; yield; log b; yield; log c', 'log d; yield; log e; yield; log f');
SELECT run('yield; log body; spawn 1', 'yield; log alone');

-- ordered tasks get their turns in order, others do not wait
SELECT run('spawn ordered 1; spawn ordered 2; spawn 3; spawn ordered 4; set 1',
           'log a; await 1; log b; turn; log c', 'log d; turn; log e', 'log f', 'log g; turn; log h');
SELECT run('spawn ordered 1; spawn ordered 2', 'turn; log a', 'turn; log b');

-- as many as there may be: the fourth waits for one of the others
SET aio.max_tasks = 3;
SELECT run('spawn 1; spawn 1; spawn 1; log full; spawn 2; log more',
           'log a; yield; log b', 'log c');
SELECT run('spawn 1; spawn 1; spawn 1; log full; spawn 2', 'await 1', 'set 1');
SET aio.max_tasks = 1;
SELECT run('spawn 1; spawn 1; spawn 1', 'log a; yield; log b');
RESET aio.max_tasks;

-- waiting for one another
SELECT run('spawn 1; spawn 2', 'await 1; set 2', 'await 2; set 1');
SELECT run('spawn ordered 1; spawn ordered 2', 'await 1', 'turn; set 1');
SELECT run('spawn 1', 'await 1');

-- scopes within tasks: while the inner ones wait, the outer ones run
SELECT run('spawn 1; spawn 2; log body; set 1',
           'log a; nest 3 4; log b', 'log c; yield; log d; set 2; log e',
           'log f; await 1; log g', 'log h; await 2; log i');
SELECT run('spawn 1; spawn 2', 'nest 3 3; log a', 'set 1; log b', 'nest 4 5; log c', 'await 1; log d', 'log e');
-- the outer scope's body is not a task: its inner scope blocks
SELECT run('spawn 1; nest 2', 'await 1; log a', 'await 1; log b');
-- several levels, all waiting for the innermost
SELECT run('spawn 1; log body; set 1', 'nest 2; log a', 'nest 3; log b', 'nest 4; log c', 'await 1; log d');

-- outside tasks awaiting does not wait
SELECT run('await 1; verdict');

-- real reads: pages not in memory are awaited, others are not
SELECT use_table('pages');
SELECT buffers_evicted > 0 AS evicted FROM pg_buffercache_evict_relation('pages');
SELECT aio_session_stats_reset();
SELECT run('spawn 1; spawn 2; spawn 3', 'read 1', 'read 2; read 3', 'read 4; read 5');
SELECT CASE WHEN current_setting('io_method') = 'sync' THEN reads = 0 ELSE reads = 5 END AS counted
  FROM aio_session_stats();
SELECT aio_session_stats_reset();
SELECT run('spawn 1; spawn 2; spawn 3', 'read 1', 'read 2; read 3', 'read 4; read 5');
SELECT suspensions, reads FROM aio_session_stats();

-- the creator is told of each page, but not of those that it asks for
SELECT run('spawn hooked 1; spawn 2', 'read 7; log a; read 9', 'read 10');

-- shuffled: a seed gives the same order each time, and another one another
DO $$
DECLARE
    orders text[] := '{}';
BEGIN
    IF EXISTS (SELECT FROM pg_settings WHERE name = 'aio.debug_seed') THEN
        SET aio.debug_suspend = on;
        FOR i IN 0..19 LOOP
            EXECUTE format('SET aio.debug_seed = %s', 1 + i % 10);
            orders := orders || run('spawn 1; spawn 2; spawn 3', 'yield; log a; yield; log b', 'yield; log c', 'yield; yield; log d');
        END LOOP;
        ASSERT orders[1:10] = orders[11:20], 'the same seed, another order';
        ASSERT (SELECT count(DISTINCT o) > 2 FROM unnest(orders) o), 'one order';
        RESET aio.debug_seed;
        RESET aio.debug_suspend;
    END IF;
END $$;
