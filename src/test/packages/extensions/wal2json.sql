-- set: output_plugin_libraries = 'wal2json'
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
CREATE INDEX ON t (length(v), i);
SELECT 1 FROM pg_create_logical_replication_slot('s', 'wal2json');
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
\copy (SELECT i + 3000, v FROM t) TO 'rows'
\copy t FROM 'rows'
UPDATE t SET v = 'x' WHERE i % 100 = 0;
DELETE FROM t WHERE i % 1000 = 0;
SELECT count(*), md5(string_agg(data, '')) FROM pg_logical_slot_peek_changes('s', NULL, NULL, 'format-version', '2');
SELECT md5(string_agg(data, '')) FROM pg_logical_slot_peek_changes('s', NULL, NULL, 'pretty-print', '1');
SELECT data FROM pg_logical_slot_get_changes('s', NULL, NULL, 'format-version', '2', 'actions', 'delete');
