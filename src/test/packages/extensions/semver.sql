CREATE TABLE versions (v semver PRIMARY KEY, i int);
INSERT INTO versions SELECT format('%s.%s.%s-b.%s', i % 3, i % 17, i % 23, i)::semver, i FROM generate_series(1, 5000) i;
CREATE INDEX ON versions USING hash (v);
SET enable_seqscan = off;
SELECT min(v), max(v), count(*) FROM versions WHERE v > '1.3.4';
SELECT i FROM versions WHERE v = '1.1.1-b.1';
SELECT '1.2.3-beta'::semver < '1.2.3', to_semver('1.02'), '[1.0.0,2.0.0)'::semverrange @> '1.5.0'::semver;
