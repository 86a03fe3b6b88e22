-- preload: pg_textsearch
CREATE TABLE documents (id int PRIMARY KEY, content text);
CREATE INDEX by_words ON documents USING bm25 (content) WITH (text_config = 'english');
CREATE INDEX ON documents (content);
INSERT INTO documents SELECT i, concat_ws(' ', 'word' || i % 13, 'database' || i % 101, 'system' || i % 7, substr(md5(i::text), 1, 4)) FROM generate_series(1, 5000) i;
\copy (SELECT id + 5000, content FROM documents) TO 'rows'
\copy documents FROM 'rows'
DELETE FROM documents WHERE id % 5 = 0;
VACUUM documents;
SELECT id, (content <@> to_bm25query('word3 database5', 'by_words'))::numeric(10, 4) AS score FROM documents ORDER BY content <@> to_bm25query('word3 database5', 'by_words'), id LIMIT 5;
