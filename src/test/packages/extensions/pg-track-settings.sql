SELECT pg_track_settings_snapshot();
ALTER SYSTEM SET work_mem = '5MB';
SELECT pg_reload_conf();
SELECT count(*) > 300 FROM pg_track_settings(now());
