CREATE TABLE versions (v debversion PRIMARY KEY, i int);
INSERT INTO versions SELECT format('%s:%s.%s~rc%s-%s', i % 3, i % 17, i % 23, i % 5, i), i FROM generate_series(1, 5000) i;
CREATE INDEX ON versions USING hash (v);
SET enable_seqscan = off;
SELECT min(v), max(v), count(*) FROM versions WHERE v > '1:3.4~rc2';
SELECT i FROM versions WHERE v = '1:1.1~rc1-1';
SELECT '1.0~rc1'::debversion < '1.0', '1.0-1'::debversion = '1.0-01';
