-- preload: pg_stat_log
DO $$ BEGIN RAISE WARNING 'counted'; END $$;
DO $$ BEGIN RAISE EXCEPTION 'failed'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
\dv pg_stat_log*
