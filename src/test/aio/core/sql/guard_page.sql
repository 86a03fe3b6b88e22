-- A stack that overflows where nobody checks its depth ends in a signal, and
-- never in somebody else's memory.
SELECT overflow_in_child();
SELECT overflow_in_child();
-- this process is not affected
SELECT run('spawn 1; spawn 1', 'yield; log a');
