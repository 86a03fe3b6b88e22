-- Without memory for stacks, tasks run on their creator's, and block.
-- valgrind needs memory, too
SELECT on_valgrind() AS skip_test \gset
\if :skip_test
\quit
\endif
\c
-- there is one task to begin with
SELECT run('spawn 1', 'log a');
SELECT tasks FROM held();
SELECT run('starve; spawn 1; spawn 2; feed; spawn 2; set 1', 'await 1; log a', 'verdict; await 1; log b; yield; log c');
\c
SELECT run('spawn 1', 'log a');
SELECT run('starve; spawn 1; spawn 2; log body; set 1; join; feed; spawn 2; set 2', 'log a; await 1; log b', 'verdict; await 2; log c');
-- one that is ordered waits for its elders first
\c
SELECT run('spawn 1', 'log a');
SELECT run('starve; spawn ordered 1; spawn ordered 2; feed', 'yield; turn; log a', 'turn; log b');
