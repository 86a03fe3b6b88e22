CREATE EXTENSION test_aio_core;
CREATE EXTENSION aio;
CREATE EXTENSION pg_buffercache;

-- a table of 100 pages
CREATE TABLE pages (x text) WITH (fillfactor = 10);
ALTER TABLE pages ALTER x SET STORAGE PLAIN;
INSERT INTO pages SELECT repeat('x', 5000) FROM generate_series(1, 100);
SELECT pg_relation_size('pages') / current_setting('block_size')::int AS pages;
