-- Where suspending is forbidden, awaiting returns at once without having
-- waited, and tells why.
SELECT use_table('pages');
SELECT aio_session_stats_reset();

SELECT run('verdict; await 1');
SELECT run('spawn 1', 'verdict; forbid; verdict; await 1; yield; log end');
SELECT run('spawn 1', 'lwlock; verdict; await 1; yield; unlwlock; verdict');
SELECT run('spawn 1', 'pin 1; lock 1; verdict; await 1; yield; unlock 1; verdict; unpin 1');
SELECT run('spawn 1', 'holdoff; verdict; await 1; yield; resume; verdict');
SELECT run('spawn 1', 'critical; verdict; await 1; yield; uncritical; verdict');
SELECT run('spawn 1', 'extension; verdict; await 1; yield; unextension; verdict');
SELECT run('spawn 1', 'handout; verdict; await 1; yield; unhandout; verdict');
-- several reasons, removed one after the other
SELECT run('spawn 1', 'pin 1; extension; holdoff; lwlock; lock 1; critical; verdict; uncritical; verdict; unlock 1; verdict; unlwlock; verdict; resume; verdict; unextension; verdict; unpin 1');
-- what a sibling or the scope's creator holds is no reason
SELECT run('holdoff; spawn 1; resume', 'verdict');
SELECT run('extension; nest 1; unextension', 'verdict; unextension; verdict; extension; verdict');
-- a task that must not suspend passes this on to nobody
SELECT run('spawn 1; spawn 2; spawn 2', 'forbid', 'verdict');
SELECT run('spawn 1', 'forbid; nest 2', 'verdict; yield; log a');
-- a flag that is complete is no question of suspending
SELECT run('set 1; spawn 1', 'lwlock; await 1; unlwlock; log end');
-- a turn cannot be had by blocking
SELECT run('spawn ordered 1; spawn ordered 2', 'await 1', 'lwlock; turn');
SELECT run('spawn ordered 1; spawn ordered 2', 'lwlock; turn; unlwlock; log a', 'turn; log b');

-- it is counted
SELECT * FROM aio_session_blocked() ORDER BY reason;

-- reads of pages that are not in memory block then, and happen
SELECT aio_session_stats_reset();
SELECT buffers_evicted > 0 AS evicted FROM pg_buffercache_evict_relation('pages');
SELECT run('spawn 1; spawn 2', 'lwlock; read 1; read 2; unlwlock', 'forbid; read 3');
SELECT suspensions FROM aio_session_stats();
SELECT * FROM aio_session_blocked() ORDER BY reason;
