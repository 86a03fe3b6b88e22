CREATE TABLE documents (id int PRIMARY KEY, type text, at timestamptz, tags text[]);
INSERT INTO documents SELECT i, 'type' || i % 5, timestamptz '2024-01-01 00:00+0' + i * interval '1 hour', ARRAY['a' || i % 3, 'b' || i % 7] FROM generate_series(1, 3000) i;
SELECT faceting.add_faceting_to_table('documents', key => 'id', facets => ARRAY[faceting.datetrunc_facet('at', 'month'), faceting.plain_facet('type'), faceting.array_facet('tags')]);
INSERT INTO documents SELECT i, 'new', timestamptz '2024-06-01 00:00+0', ARRAY['c'] FROM generate_series(3001, 4000) i;
DELETE FROM documents WHERE id % 10 = 0;
SELECT faceting.merge_deltas('documents'::regclass);
SELECT * FROM faceting.top_values('documents'::regclass, n => 4) ORDER BY facet_name, cardinality DESC, facet_value;
SELECT * FROM faceting.count_results('documents'::regclass, filters => array[row('type', 'type1')]::faceting.facet_filter[]) ORDER BY 1, 2;
