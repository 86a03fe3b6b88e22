-- preload: pg_stat_statements, pgsentinel
SELECT pg_sleep(2.5);
SELECT count(*) > 0 FROM pg_active_session_history WHERE wait_event = 'PgSleep';
