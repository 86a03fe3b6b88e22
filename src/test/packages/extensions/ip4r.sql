CREATE TABLE nets (id int PRIMARY KEY, r iprange, a ip4);
CREATE INDEX nets_gist ON nets USING gist (r);
CREATE INDEX ON nets USING hash (a);
CREATE INDEX ON nets (a);
INSERT INTO nets SELECT i, format('%s.%s.%s.0/24', i % 200 + 1, i % 255, i % 251)::iprange, format('10.%s.%s.%s', i % 3, i % 255, i % 251)::ip4
    FROM generate_series(1, 10000) i;
DELETE FROM nets WHERE id % 10 = 0;
VACUUM nets;
SET enable_seqscan = off;
SELECT id, r FROM nets WHERE r >>= '5.4.4.77' ORDER BY id;
SELECT count(*), sum(id) FROM nets WHERE r <<= '17.0.0.0/8';
SELECT ip6 '2001:db8::1' + 5, iprange '10.0.0.0-10.0.0.17', ip4r '10.0.0.0/8' && ip4r '10.1.0.0/16';
