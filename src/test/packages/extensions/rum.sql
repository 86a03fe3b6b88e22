CREATE TABLE texts (id int PRIMARY KEY, t text, at timestamp, v tsvector);
CREATE INDEX texts_rum ON texts USING rum (v rum_tsvector_ops);
CREATE INDEX texts_at ON texts USING rum (v rum_tsvector_addon_ops, at) WITH (attach = 'at', to = 'v');
CREATE INDEX ON texts (at);
INSERT INTO texts SELECT i, t, timestamp '2024-01-01' + i * interval '1 minute', to_tsvector('simple', t)
    FROM (SELECT i, concat_ws(' ', 'w' || i % 13, 'w' || i % 101, 'w' || i % 7, substr(md5(i::text), 1, 3)) AS t
          FROM generate_series(1, 5000) i) s;
\copy (SELECT id + 5000, t, at, v FROM texts) TO 'rows'
\copy texts FROM 'rows'
UPDATE texts SET t = 'none' WHERE id % 11 = 0;
DELETE FROM texts WHERE id % 5 = 0;
VACUUM texts;
SET enable_seqscan = off;
SELECT count(*) FROM texts WHERE v @@ 'w3 & w5';
EXPLAIN (COSTS OFF) SELECT id FROM texts WHERE v @@ to_tsquery('simple', 'w3 & w5') ORDER BY v <=> to_tsquery('simple', 'w3 & w5') LIMIT 5;
SELECT id, (v <=> 'w3 & w5'::tsquery)::numeric(10, 4) FROM texts WHERE v @@ 'w3 & w5' ORDER BY v <=> 'w3 & w5'::tsquery, id LIMIT 5;
SELECT id, at FROM texts WHERE v @@ 'w3' ORDER BY at <=> timestamp '2024-01-02', id LIMIT 5;
SELECT id FROM texts WHERE v @@ 'w3 <-> w16' ORDER BY id LIMIT 5;
CREATE TABLE arrays AS SELECT i, ARRAY[i % 10, i % 17, i % 23] AS a FROM generate_series(1, 3000) i;
CREATE INDEX ON arrays USING rum (a rum_anyarray_ops);
INSERT INTO arrays SELECT i, ARRAY[i % 10, i % 17] FROM generate_series(3001, 6000) i;
SELECT count(*), sum(i) FROM arrays WHERE a && '{3,4}';
SELECT count(*), sum(i) FROM arrays WHERE a @> '{3,4}';
