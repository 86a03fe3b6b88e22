CREATE TABLE measured (i int, u unit);
CREATE INDEX ON measured (u);
INSERT INTO measured SELECT i, (i * 7919 % 1000 || CASE i % 3 WHEN 0 THEN ' m' WHEN 1 THEN ' km' ELSE ' cm' END)::unit FROM generate_series(1, 3000) i;
SET enable_seqscan = off;
SELECT count(*), max(u), min(u), sum(u) FROM measured WHERE u > '500 m';
SELECT '100 kB/s'::unit * '8 s', '1 kg'::unit * '9.81 m/s^2', '5 km'::unit / '100 s';
