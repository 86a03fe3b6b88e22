-- preload: pgautofailover
CREATE TABLE t AS SELECT 1;
SELECT formationid, kind FROM pgautofailover.formation;
SELECT pgautofailover.formation_settings('default');
