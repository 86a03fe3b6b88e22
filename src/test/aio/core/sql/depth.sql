-- A task's recursion is checked against its own stack, the others' against
-- theirs.
SHOW max_stack_depth;
SELECT run('spawn 1; log body', 'log a; recurse; log b');
\echo :LAST_ERROR_SQLSTATE
SELECT logged();
-- it is an error like any other
SELECT run('spawn 1; spawn 2', 'yield; log a', 'recurse');
SELECT logged();
SELECT run('spawn 1; spawn 2; set 1', 'log a; await 1; recurse', 'log b');
SELECT logged();
-- a task has as much as index inserts ever need, and the body all that it had
SELECT run('recurse 1000; spawn 1; recurse 1000; spawn 2; recurse 1000; set 1; join; recurse 1000; log done',
           'recurse 400; log a', 'recurse 400; yield; recurse 400; await 1; recurse 400; log b');
SELECT run('spawn 1', 'recurse 600');
SELECT run('spawn 1; spawn 1', 'recurse 400; nest 2; recurse 400; log a', 'yield; recurse 400; log b');
-- a limit lower than that of tasks is theirs, too
SET max_stack_depth = '100kB';
SELECT run('spawn 1', 'recurse 120');
RESET max_stack_depth;
SELECT run('spawn 1; recurse 1000', 'recurse 120; log a');
SELECT tasks FROM held();
