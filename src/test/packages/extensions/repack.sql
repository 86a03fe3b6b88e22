CREATE TABLE t (i int PRIMARY KEY, v text, j int);
CREATE INDEX ON t (v);
CREATE INDEX ON t (j, v);
CREATE INDEX ON t USING gin (to_tsvector('simple', v));
INSERT INTO t SELECT i, md5(i::text), i % 10 FROM generate_series(1, 5000) i;
DELETE FROM t WHERE i % 3 = 0;
\! pg_repack -d postgres -t t 2>&1
\! pg_repack -d postgres -t t --only-indexes 2>&1
\! pg_repack -d postgres -t t -o v -j 2 2>&1
SELECT count(*), sum(i), md5(string_agg(v, ',' ORDER BY i)) FROM t;
\d t
