SELECT pgstatviz.snapshot() IS NOT NULL;
SELECT count(*) FROM pgstatviz.snapshots;
