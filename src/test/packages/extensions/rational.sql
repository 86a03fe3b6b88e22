CREATE TABLE fractions (i int, r rational PRIMARY KEY);
CREATE INDEX ON fractions USING hash (r);
INSERT INTO fractions SELECT i, (i::text || '/7919')::rational FROM generate_series(1, 5000) i;
SELECT max(r), min(r) FROM fractions;
SELECT '1/3'::rational + '1/6', rational_simplify('36/12'), rational_intermediate('1/3', '1/2');
