-- set: output_plugin_libraries = 'decoderbufs'
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
SELECT 1 FROM pg_create_logical_replication_slot('s', 'decoderbufs');
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
UPDATE t SET v = 'x' WHERE i % 100 = 0;
DELETE FROM t WHERE i % 1000 = 0;
SELECT count(*), sum(length(data)) > 100000 FROM pg_logical_slot_peek_binary_changes('s', NULL, NULL);
SELECT regexp_replace(data, '(txid\[|commit_time\[|transaction_id: |commit_time: )\d+', '\1N', 'g') FROM pg_logical_slot_get_changes('s', NULL, NULL, 'debug-mode', '1') LIMIT 5;
