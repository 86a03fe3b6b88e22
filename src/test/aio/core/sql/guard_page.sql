-- A stack that overflows where nobody checks its depth ends in a signal, and
-- never in somebody else's memory.
-- valgrind would report it
SELECT on_valgrind() AS skip_test \gset
\if :skip_test
\quit
\endif
SELECT overflow_in_child();
SELECT overflow_in_child();
-- this process is not affected
SELECT run('spawn 1; spawn 1', 'yield; log a');
