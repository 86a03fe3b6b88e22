CREATE TABLE t (i int PRIMARY KEY, v text);
\! pg_catcheck postgres 2>&1
