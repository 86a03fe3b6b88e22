-- preload: pg_cron
-- set: cron.use_background_workers = on
-- set: max_worker_processes = 20
CREATE TABLE ticks (i int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, t text);
SELECT cron.schedule('tick', '1 second', $$INSERT INTO ticks (t) SELECT md5(i::text) FROM generate_series(1, 2000) i$$);
DO $$ BEGIN
    FOR i IN 1 .. 300 LOOP
        PERFORM pg_sleep(0.1);
        EXIT WHEN EXISTS (SELECT FROM ticks);
        COMMIT;
    END LOOP;
END $$;
SELECT count(*) >= 2000, count(*) % 2000 FROM ticks;
SELECT cron.unschedule('tick');
SELECT jobid, status, return_message FROM cron.job_run_details WHERE status = 'succeeded' LIMIT 1;
