CREATE EXTENSION postgis;
CREATE EXTENSION postgis_raster;
CREATE EXTENSION postgis_topology;
CREATE EXTENSION postgis_sfcgal;
CREATE EXTENSION postgis_tiger_geocoder CASCADE;
CREATE TABLE places (id int PRIMARY KEY, g geometry(Point, 4326), n text);
CREATE INDEX places_gist ON places USING gist (g);
CREATE INDEX places_spgist ON places USING spgist (g);
CREATE INDEX places_brin ON places USING brin (g);
CREATE INDEX places_geography ON places USING gist ((g::geography));
CREATE INDEX places_g ON places (g);
CREATE INDEX ON places (n);
INSERT INTO places SELECT i, ST_SetSRID(ST_MakePoint(i * 7919 % 360 - 180, i * 104729 % 170 - 85), 4326), md5(i::text)
    FROM generate_series(1, 4000) i;
\copy (SELECT id + 4000, ST_Translate(g, 0.3, 0.4), n FROM places) TO 'rows'
\copy places FROM 'rows'
UPDATE places SET g = ST_Translate(g, 0.1, 0.1) WHERE id % 4 = 0;
DELETE FROM places WHERE id % 9 = 0;
VACUUM ANALYZE places;
SELECT count(*), ST_AsText(ST_Extent(g)) FROM places;
SET enable_seqscan = off;
SELECT count(*), sum(id) FROM places WHERE g && ST_MakeEnvelope(0, 0, 20, 20, 4326);
DROP INDEX places_gist;
EXPLAIN (COSTS OFF) SELECT count(*), sum(id) FROM places WHERE g && ST_MakeEnvelope(0, 0, 20, 20, 4326);
SELECT count(*), sum(id) FROM places WHERE g && ST_MakeEnvelope(0, 0, 20, 20, 4326);
DROP INDEX places_spgist;
SELECT count(*), sum(id) FROM places WHERE g && ST_MakeEnvelope(0, 0, 20, 20, 4326);
SELECT id, ST_AsText(g) FROM places ORDER BY g::geography <-> 'SRID=4326;POINT(3 4)'::geography, id LIMIT 3;
SELECT count(*) FROM places WHERE ST_DWithin(g::geography, 'SRID=4326;POINT(3 4)'::geography, 500000);
SELECT ST_AsText(ST_Transform('SRID=4326;POINT(10 50)'::geometry, 3857), 2), ST_AsGeoJSON(ST_Buffer('POINT(0 0)', 1, 2), 3);
SELECT ST_Area(ST_Union(ST_Buffer(ST_MakePoint(i, 0), 1))) :: numeric(10, 6) FROM generate_series(1, 50) i;
SELECT cid, count(*) FROM (SELECT ST_ClusterDBSCAN(ST_MakePoint(i * 7 % 31, i * 11 % 29), 1.5, 3) OVER (ORDER BY i) AS cid FROM generate_series(1, 200) i) c
    GROUP BY cid ORDER BY cid NULLS LAST LIMIT 5;
SELECT ST_Width(r), ST_SummaryStats(r) FROM (SELECT ST_AddBand(ST_MakeEmptyRaster(10, 10, 0, 0, 1), '8BUI'::text, 7) AS r) s;
SELECT topology.CreateTopology('t', 4326);
SELECT topology.TopoGeo_AddLineString('t', 'SRID=4326;LINESTRING(0 0, 1 1)'), count(*) FROM t.node;
SELECT length(ST_AsMVT(q)) FROM (SELECT id, ST_AsMVTGeom(g, ST_MakeEnvelope(0, 0, 90, 80, 4326)) FROM places WHERE id < 100) q;
