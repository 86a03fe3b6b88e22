-- preload: pgextwlist
-- set: extwlist.extensions = 'citext'
CREATE ROLE other;
GRANT CREATE ON DATABASE postgres TO other;
GRANT CREATE ON SCHEMA public TO other;
SET ROLE other;
CREATE EXTENSION citext;
SELECT 'A'::citext = 'a';
DO $$ BEGIN CREATE EXTENSION file_fdw; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', SQLERRM; END $$;
RESET ROLE;
