-- preload: pg_partman_bgw
-- set: pg_partman_bgw.interval = 3600
CREATE TABLE measured (id bigint NOT NULL, at timestamptz NOT NULL, v text) PARTITION BY RANGE (id);
CREATE INDEX ON measured (v);
CREATE INDEX ON measured (at);
SELECT create_parent('public.measured', 'id', '1000');
INSERT INTO measured SELECT i, timestamptz '2024-01-01 00:00+0' + i * interval '1 second', md5(i::text) FROM generate_series(1, 12000) i;
CALL run_maintenance_proc();
CALL partition_data_proc('public.measured');
SELECT check_default(false) IS NULL, partition_tablename FROM show_partitions('public.measured') ORDER BY 2;
SELECT tableoid::regclass, count(*) FROM measured GROUP BY 1 ORDER BY 1;
UPDATE part_config SET retention = '3000', retention_keep_table = false;
CALL run_maintenance_proc();
SELECT tableoid::regclass, count(*) FROM measured GROUP BY 1 ORDER BY 1;
