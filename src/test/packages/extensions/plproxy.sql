CREATE DATABASE part;
\c part
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE FUNCTION load(n int) RETURNS bigint LANGUAGE sql AS $$ INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, n) i; SELECT count(*) FROM t $$;
\c postgres
SELECT format($$CREATE FUNCTION load(n int) RETURNS bigint LANGUAGE plproxy AS 'CONNECT ''host=%s dbname=part'';'$$, current_setting('unix_socket_directories')) \gexec
SELECT load(3000);
