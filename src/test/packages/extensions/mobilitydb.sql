\c
CREATE TABLE trips (id int PRIMARY KEY, t tgeompoint);
CREATE INDEX trips_gist ON trips USING gist (t);
CREATE INDEX trips_spgist ON trips USING spgist (t);
INSERT INTO trips SELECT i, format('[Point(%s %s)@2024-01-01 00:00+0, Point(%s %s)@2024-01-01 01:00+0]', i % 100, i % 77, i % 50, i % 33)::tgeompoint
    FROM generate_series(1, 2000) i;
DELETE FROM trips WHERE id % 5 = 0;
VACUUM trips;
SET enable_seqscan = off;
SELECT count(*), sum(id) FROM trips WHERE t && stbox 'STBOX X((10,10),(20,20))';
DROP INDEX trips_gist;
SELECT count(*), sum(id) FROM trips WHERE t && stbox 'STBOX X((10,10),(20,20))';
SELECT sum(length(t))::numeric(12, 3), max(duration(t)) FROM trips;
SELECT asText(tint '[1@2024-01-01 00:00+0, 5@2024-01-02 00:00+0]'), intspan '[1, 5)' + intspan '[5, 9)';
