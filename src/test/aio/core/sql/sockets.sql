-- Tasks that await sockets, with others that await reads, in one wait.
SELECT use_table('pages');
SELECT aio_session_stats_reset();

-- one that is ready is found to be so
SELECT run('spawn 1; write 1; log body', 'socket 1; log a');
SELECT run('spawn 1; spawn 2; log body; write 2; join 2; log joined; write 1', 'socket 1; log a', 'socket 2; log b');

-- It is not waited for alone: what makes it ready is behind a read.
SELECT buffers_evicted > 0 AS evicted FROM pg_buffercache_evict_relation('pages');
SELECT run('spawn 1; spawn 2', 'socket 1; log a', 'read 21; log b; read 22; write 1; log c');
SELECT run('spawn 1; spawn 2; spawn 3', 'socket 1; log a; write 2', 'read 31; log b; write 1', 'socket 2; log c');
-- nor within a nested scope
SELECT buffers_evicted > 0 AS evicted FROM pg_buffercache_evict_relation('pages');
SELECT run('spawn 1; spawn 2', 'nest 3; log a', 'read 41; write 1; log b', 'socket 1; log c');
SELECT run('spawn 1; spawn 2', 'nest 3 4; log a', 'await 1; write 1; log b', 'socket 1; log c', 'read 42; read 43; read 44; set 1; log d');
SELECT run('spawn 1; nest 2', 'socket 1; log a', 'write 1; log b');

-- it can be cancelled, and two may await the same one
SELECT run('timeout 100; spawn 1; spawn 2', 'socket 1', 'socket 1');
SELECT run('spawn 1; spawn 1; write 1; write 1', 'socket 1; log a');
-- as can one that may not suspend
SELECT run('spawn 1; spawn 2', 'socket 1; log a', 'forbid; write 1; log b');
-- each for its own reason
SELECT run('spawn 1; spawn 2', 'socket 1; log a', 'writable 1; log b; write 1');
-- those that await one another are found out
SELECT run('spawn 1; spawn 2', 'socket 1; await 1; set 2', 'write 1; await 2; set 1');
SELECT suspended FROM held();
SELECT aios_left();
