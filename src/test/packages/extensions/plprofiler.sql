-- preload: plprofiler
CREATE FUNCTION f(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE s int := 0;
BEGIN
    FOR i IN 1 .. n LOOP
        s := s + i;
    END LOOP;
    RETURN s;
END $$;
SELECT pl_profiler_set_enabled_local(true);
SELECT f(100);
SELECT line_number, exec_count FROM pl_profiler_linestats_local() ORDER BY line_number;
