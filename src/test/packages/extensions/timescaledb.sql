-- preload: timescaledb
-- set: max_worker_processes = 20
-- set: timescaledb.telemetry_level = off
SET timezone = 'UTC';
CREATE TABLE measured (at timestamptz NOT NULL, device int, v double precision, t text);
SELECT create_hypertable('measured', by_range('at', interval '1 day'));
CREATE INDEX ON measured (device, at);
CREATE INDEX ON measured (t);
INSERT INTO measured SELECT timestamptz '2024-01-01' + i * interval '1 minute', i % 17, i % 101, md5(i::text) FROM generate_series(1, 8000) i;
\copy (SELECT at + interval '6 days', device, v, t FROM measured) TO 'rows'
\copy measured FROM 'rows'
UPDATE measured SET v = v + 1 WHERE device = 3;
DELETE FROM measured WHERE device = 4;
SELECT time_bucket('1 day', at) AS day, count(*), avg(v)::numeric(10, 3), first(v, at), last(v, at) FROM measured GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM show_chunks('measured');
SELECT count(*) FROM drop_chunks('measured', timestamptz '2024-01-04');
SELECT count(*), md5(string_agg(t, ',' ORDER BY at)) FROM measured;
