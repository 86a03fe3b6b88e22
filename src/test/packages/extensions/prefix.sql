CREATE TABLE prefixes (p prefix_range PRIMARY KEY, n int);
CREATE INDEX prefixes_gist ON prefixes USING gist (p);
INSERT INTO prefixes SELECT (i * 37)::text, i FROM generate_series(1, 10000) i;
DELETE FROM prefixes WHERE n % 3 = 0;
VACUUM prefixes;
SET enable_seqscan = off;
SELECT * FROM prefixes WHERE p @> '3700123' ORDER BY length(p) DESC, n;
SELECT count(*) FROM prefixes WHERE p <@ '37';
SELECT '123'::prefix_range & '124', '12[3-5]'::prefix_range | '128';
