-- preload: credcheck
-- set: credcheck.password_min_length = 8
CREATE ROLE good PASSWORD 'long enough';
DO $$ BEGIN CREATE ROLE bad PASSWORD 'short'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END $$;
SELECT count(*) FROM pg_password_history;
