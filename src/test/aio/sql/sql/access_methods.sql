-- Every access method: build up from an empty index, insert into pages that
-- must be read, update; then compare index and table.
\getenv abs_builddir PG_ABS_BUILDDIR
\set rows :abs_builddir '/results/access_methods.data'

CREATE TABLE source AS
SELECT n AS id,
       hashint4(n) AS a,
       md5(n::text) AS b,
       ARRAY[n % 50, n % 33, (n * 7) % 1000] AS c,
       point(hashint4(n) % 10000, hashint4(n + 1) % 10000) AS p,
       int4range(n, n + n % 10 + 1) AS r,
       n / 100 AS block
  FROM generate_series(1, 12000) n;
COPY source TO :'rows';

CREATE TABLE t (LIKE source);
CREATE INDEX t_btree ON t (a);
CREATE INDEX t_btree_text ON t (b COLLATE "C", a);
CREATE INDEX t_btree_duplicates ON t (block);
CREATE INDEX t_hash ON t USING hash (b);
CREATE INDEX t_gin ON t USING gin (c) WITH (fastupdate = off);
CREATE INDEX t_gin_pending ON t USING gin (c) WITH (fastupdate = on, gin_pending_list_limit = 64);
CREATE INDEX t_gist ON t USING gist (p);
CREATE INDEX t_gist_range ON t USING gist (r);
CREATE INDEX t_spgist ON t USING spgist (p);
CREATE INDEX t_spgist_text ON t USING spgist (b);
CREATE INDEX t_brin ON t USING brin (id) WITH (pages_per_range = 2, autosummarize = off);
CREATE INDEX t_brin_multi ON t USING brin (a int4_minmax_multi_ops) WITH (pages_per_range = 2);
CREATE INDEX t_bloom ON t USING bloom (a, block);

CREATE TABLE conditions (n serial, idx text, condition text);
INSERT INTO conditions (idx, condition) VALUES
    ('t_btree', 'a BETWEEN -2000000000 AND 2100000000'),
    ('t_btree_text', 'b COLLATE "C" >= ''0'''),
    ('t_btree_duplicates', 'block >= 0'),
    ('t_hash', 'b = ANY ((SELECT array_agg(b) FROM t WHERE id % 50 = 0)::text[])'),
    ('t_gin', 'c && ARRAY(SELECT generate_series(0, 49))'),
    ('t_gin_pending', 'c && ARRAY(SELECT generate_series(0, 49))'),
    ('t_gist', 'p <@ box ''(-20000,-20000),(20000,20000)'''),
    ('t_gist_range', 'r && int4range(1, 100000)'),
    ('t_spgist', 'p <@ box ''(-20000,-20000),(5000,20000)'''),
    ('t_spgist_text', 'b >= ''0'''),
    ('t_brin', 'id BETWEEN 500 AND 20000'),
    ('t_brin_multi', 'a BETWEEN -1000000000 AND 1000000000'),
    ('t_bloom', 'block = 17');

-- empty indexes grow
SELECT aio_session_stats_reset();
COPY t FROM :'rows';
SELECT concurrency();
SELECT complaints('t');
SELECT idx, same_by_index(idx::regclass, condition) FROM conditions ORDER BY n;

-- pages must be read
SELECT forget_indexes('t');
INSERT INTO t SELECT * FROM source WHERE id % 6 = 0;
SELECT concurrency();
SELECT complaints('t');
SELECT idx, same_by_index(idx::regclass, condition) FROM conditions ORDER BY n;

-- updates that are not HOT, and room that VACUUM makes for new entries
SELECT forget_indexes('t');
UPDATE t SET a = a / 2, b = md5(b), p = point(p[1], p[0]), block = block + 1 WHERE id % 5 = 0;
SELECT concurrency();
VACUUM t;
DELETE FROM t WHERE id % 3 = 0;
VACUUM t;
SELECT forget_indexes('t');
COPY t FROM :'rows';
SELECT concurrency();
SELECT complaints('t');
SELECT idx, same_by_index(idx::regclass, condition) FROM conditions ORDER BY n;
SELECT count(*), sum(hashtext(t::text)::bigint) FROM t;

-- BRIN summarizes page ranges on its own account, too
CREATE TABLE summarized (id int, x int);
CREATE INDEX summarized_brin ON summarized USING brin (id) WITH (pages_per_range = 1, autosummarize = on);
CREATE INDEX summarized_btree ON summarized (x);
INSERT INTO summarized SELECT n, -n FROM generate_series(1, 5000) n;
SELECT concurrency();
SELECT brin_summarize_new_values('summarized_brin') > 0 AS summarized;
INSERT INTO summarized SELECT n % 100, -n FROM generate_series(1, 5000) n;
SELECT complaints('summarized');
SELECT same_by_index('summarized_brin', 'id BETWEEN 10 AND 20');

-- one index only: the rows of a batch overlap
CREATE TABLE single (x text);
CREATE INDEX single_btree ON single (x);
SELECT aio_session_stats_reset();
INSERT INTO single SELECT b FROM source WHERE id <= 100;
SELECT concurrency(false);
COPY single FROM PROGRAM 'seq 1 5000';
SELECT concurrency();
SELECT complaints('single');
SELECT same_by_index('single_btree', 'x >= ''''');

DROP TABLE source, t, conditions, summarized, single;
