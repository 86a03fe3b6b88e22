-- set: output_plugin_libraries = 'pg_squeeze'
-- preload: pg_squeeze
-- set: max_replication_slots = 10
CREATE TABLE t (i int PRIMARY KEY, v text, j int);
CREATE INDEX ON t (v);
CREATE INDEX ON t (j, v);
INSERT INTO t SELECT i, md5(i::text), i % 10 FROM generate_series(1, 5000) i;
DELETE FROM t WHERE i % 3 = 0;
SELECT squeeze.squeeze_table('public', 't');
SELECT count(*), sum(i), md5(string_agg(v, ',' ORDER BY i)) FROM t;
SELECT tabname, ins_initial, ins, upd, del FROM squeeze.log;
