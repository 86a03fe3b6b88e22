CREATE TABLE stars (id int PRIMARY KEY, ra double precision, dec double precision);
CREATE INDEX ON stars (q3c_ang2ipix(ra, dec));
INSERT INTO stars SELECT i, i * 7919 % 3600 / 10.0, i * 104729 % 1800 / 10.0 - 90 FROM generate_series(1, 20000) i;
CLUSTER stars USING stars_q3c_ang2ipix_idx;
ANALYZE stars;
SELECT count(*), sum(id) FROM stars WHERE q3c_radial_query(ra, dec, 120, 30, 5);
SELECT count(*) FROM stars WHERE q3c_poly_query(ra, dec, ARRAY[0, 0, 10, 0, 10, 10, 0, 10]);
SELECT q3c_dist(0, 0, 10, 10), q3c_version() IS NOT NULL;
