-- set: output_plugin_libraries = 'pg_rewrite'
-- preload: pg_rewrite
-- set: max_replication_slots = 10
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
CREATE TABLE parts (i int PRIMARY KEY, v text) PARTITION BY RANGE (i);
CREATE TABLE p1 PARTITION OF parts FOR VALUES FROM (0) TO (3000);
CREATE TABLE p2 PARTITION OF parts FOR VALUES FROM (3000) TO (10000);
CREATE INDEX ON parts (v);
SELECT rewrite_table('t', 'parts', 't_old');
SELECT tableoid::regclass, count(*), min(v) FROM t GROUP BY 1 ORDER BY 1;
