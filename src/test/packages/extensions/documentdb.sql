-- preload: pg_cron, pg_documentdb_core, pg_documentdb_extended_rum, pg_documentdb
-- set: max_worker_processes = 20
CREATE TABLE documents (id int PRIMARY KEY, d documentdb_core.bson);
CREATE INDEX ON documents (d);
INSERT INTO documents SELECT i, format('{"a": %s, "b": {"c": "%s"}}', i % 100, md5(i::text))::documentdb_core.bson FROM generate_series(1, 4000) i;
SELECT id FROM documents ORDER BY d, id LIMIT 5;
SELECT documentdb_core.bson_to_json_string(d) FROM documents WHERE id = 7;
