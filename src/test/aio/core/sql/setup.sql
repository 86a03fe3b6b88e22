CREATE EXTENSION test_aio_core;
CREATE EXTENSION aio;
CREATE EXTENSION pg_buffercache;

-- a table of 100 pages
CREATE TABLE pages (x text) WITH (fillfactor = 10);
ALTER TABLE pages ALTER x SET STORAGE PLAIN;
INSERT INTO pages SELECT repeat('x', 5000) FROM generate_series(1, 100);
SELECT pg_relation_size('pages') / current_setting('block_size')::int AS pages;

-- How many AIOs are not complete yet, after a while in which they may end.  What
-- is complete but not yet noticed by its owner does not count.
CREATE FUNCTION aios_left() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..10000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM pg_aios WHERE state NOT LIKE 'COMPLETED%');
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN (SELECT count(*) FROM pg_aios WHERE state NOT LIKE 'COMPLETED%');
END $$;
