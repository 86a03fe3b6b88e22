-- preload: pg_crash
-- set: crash.signals = ''
SHOW crash.signals;
