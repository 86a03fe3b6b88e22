CREATE TABLE t (i int);
SELECT pgpool_regclass('t');
