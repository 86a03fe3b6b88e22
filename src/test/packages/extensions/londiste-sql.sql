SELECT * FROM pgq_node.create_node('q', 'root', 'n1', 'w1', 'dbname=postgres', NULL, NULL);
CREATE TABLE t (i int PRIMARY KEY, v text);
SELECT * FROM londiste.local_add_table('q', 'public.t');
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 2000) i;
SELECT * FROM londiste.get_table_list('q');
SELECT count(*) FROM pgq.event_template;
