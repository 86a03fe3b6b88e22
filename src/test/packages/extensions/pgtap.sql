CREATE TABLE t (i int PRIMARY KEY, v text);
SELECT plan(6);
SELECT has_table('t');
SELECT has_pk('t');
SELECT col_type_is('t', 'v', 'text');
SELECT results_eq('SELECT 1', 'VALUES (1)');
SELECT throws_ok('SELECT 1 / 0', '22012');
SELECT set_eq('SELECT generate_series(1, 50)', 'SELECT generate_series(50, 1, -1)');
SELECT * FROM finish();
