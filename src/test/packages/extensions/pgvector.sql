-- Loads by COPY and INSERT into tables with indexes of both access methods, beside B-trees.
CREATE TABLE made AS
    SELECT i AS id, ARRAY[hashint4(i) % 1000, hashint4(i + 1000000) % 1000, i % 97]::vector(3) AS v, md5(i::text) AS t
    FROM generate_series(1, 6000) i;
CREATE TABLE near (id int PRIMARY KEY, v vector(3), t text);
CREATE INDEX ON near USING hnsw (v vector_l2_ops) WITH (m = 4, ef_construction = 10);
CREATE INDEX ON near USING hnsw ((v::halfvec(3)) halfvec_cosine_ops) WITH (m = 4, ef_construction = 10);
CREATE INDEX near_t ON near (t);
\copy (SELECT * FROM made ORDER BY id LIMIT 3000) TO 'rows'
\copy near FROM 'rows'
CREATE TABLE lists AS SELECT * FROM made WHERE id <= 1000;
CREATE INDEX ON lists USING ivfflat (v vector_l2_ops) WITH (lists = 10);
CREATE INDEX ON lists (t);
INSERT INTO lists SELECT * FROM made WHERE id > 1000;
UPDATE near SET v = v + '[1,1,1]' WHERE id % 3 = 0;
DELETE FROM near WHERE id % 7 = 0;
VACUUM near, lists;
SELECT count(*), sum(v), avg(v) FROM near;
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT id FROM lists ORDER BY v <-> '[1,2,3]' LIMIT 5;
SET ivfflat.probes = 10;
SELECT id, v FROM lists ORDER BY v <-> '[1,2,3]', id LIMIT 5;
EXPLAIN (COSTS OFF) SELECT id FROM near ORDER BY v <-> '[100,200,30]' LIMIT 5;
-- The graph is random, what it finds is good rather than exact.
SET hnsw.ef_search = 400;
SELECT count(*) = 20 FROM (SELECT id FROM near ORDER BY v <-> '[100,200,30]' LIMIT 20) f;
SELECT count(*) >= 15 FROM (SELECT id FROM near ORDER BY v <-> '[100,200,30]' LIMIT 20) f
    WHERE id IN (SELECT id FROM near ORDER BY (v <-> '[100,200,30]') + 0 LIMIT 20);
SELECT '[1,2,3]'::vector <=> '[3,2,1]', '{1:1,3:2}/5'::sparsevec <#> '{1:2,3:1}/5', B'1011' <~> B'1110', l2_normalize('[3,4]'::vector);
