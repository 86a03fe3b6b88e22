-- The error context of a task is that of its scope and its own.  What the
-- scope's body has added is gone by the time the task goes on.
SELECT run('context body; spawn 1', 'context task; fail 23505');
SELECT run('context body; spawn 1; set 1', 'context task; await 1; fail 23505');
SELECT run('context body; spawn 1; context more; join', 'context task; yield; fail 23505');
SELECT run('spawn 1; set 1', 'context outer; nest 2', 'context inner; await 1; fail 23505');
