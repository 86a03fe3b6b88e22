SELECT pgq.create_queue('q'), pgq.register_consumer('q', 'c');
SELECT sum(pgq.insert_event('q', 'kind', 'data ' || i)) > 0 FROM generate_series(1, 1000) i;
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE TRIGGER tr AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION pgq.logutriga('q');
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 1000) i;
SELECT pgq.force_tick('q') IS NOT NULL;
SELECT pgq.ticker('q') IS NOT NULL;
SELECT pgq.next_batch('q', 'c') AS batch \gset
SELECT ev_type, count(*), min(ev_data), max(ev_data) FROM pgq.get_batch_events(:batch) GROUP BY 1 ORDER BY 1;
SELECT pgq.finish_batch(:batch);
