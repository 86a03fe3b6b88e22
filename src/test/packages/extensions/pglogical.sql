-- set: output_plugin_libraries = 'pglogical_output'
-- preload: pglogical
-- set: max_worker_processes = 20
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
CREATE INDEX ON t (length(v), v);
CREATE DATABASE other;
SELECT pglogical.create_node('provider', format('host=%s dbname=postgres', current_setting('unix_socket_directories'))) IS NOT NULL;
SELECT pglogical.replication_set_add_all_tables('default', ARRAY['public']);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
\c other
CREATE EXTENSION pglogical;
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
CREATE INDEX ON t (v, i);
SELECT pglogical.create_node('subscriber', format('host=%s dbname=other', current_setting('unix_socket_directories'))) IS NOT NULL;
SELECT pglogical.create_subscription('s', format('host=%s dbname=postgres', current_setting('unix_socket_directories'))) IS NOT NULL;
DO $$ BEGIN
    FOR i IN 1 .. 300 LOOP
        EXIT WHEN EXISTS (SELECT FROM pglogical.show_subscription_status('s') WHERE status = 'replicating');
        PERFORM pg_sleep(0.1);
        COMMIT;
    END LOOP;
END $$;
SELECT status FROM pglogical.show_subscription_status('s');
\c postgres
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(3001, 9000) i;
UPDATE t SET v = 'x' || v WHERE i % 5 = 0;
DELETE FROM t WHERE i % 7 = 0;
SELECT pglogical.wait_slot_confirm_lsn(NULL, NULL);
SELECT count(*), md5(string_agg(v, ',' ORDER BY i)) FROM t;
\c other
SELECT count(*), md5(string_agg(v, ',' ORDER BY i)) FROM t;
SELECT pglogical.drop_subscription('s');
