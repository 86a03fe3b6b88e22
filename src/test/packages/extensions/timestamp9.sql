CREATE TABLE moments (t timestamp9 PRIMARY KEY, i int);
CREATE INDEX ON moments USING hash (t);
INSERT INTO moments SELECT (i::bigint * 7919000001)::timestamp9, i FROM generate_series(1, 5000) i;
SET timezone = 'UTC';
SET enable_seqscan = off;
SELECT min(t), max(t), count(*) FROM moments WHERE t > '1970-01-01 01:00:00.000000001+0';
SELECT '2019-09-19 09:00:00.123456789+0'::timestamp9 + interval '1 day';
