CREATE TABLE t (i int);
CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ DECLARE unused int; BEGIN RETURN (SELECT j FROM t); END $$;
SELECT * FROM plpgsql_check_function('f()');
LOAD 'plpgsql_check';
SET plpgsql_check.profiler = on;
CREATE FUNCTION g() RETURNS int LANGUAGE plpgsql AS $$ DECLARE s int := 0; BEGIN FOR i IN 1 .. 10 LOOP s := s + i; END LOOP; RETURN s; END $$;
SELECT g();
SELECT lineno, exec_stmts, source FROM plpgsql_profiler_function_tb('g()') ORDER BY lineno;
