-- preload: pg_show_plans
SELECT level, plan FROM pg_show_plans WHERE pid = pg_backend_pid();
