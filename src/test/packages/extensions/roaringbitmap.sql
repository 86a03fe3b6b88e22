CREATE TABLE bitmaps (id int PRIMARY KEY, b roaringbitmap);
INSERT INTO bitmaps SELECT g, rb_build_agg(i) FROM generate_series(1, 200) g, LATERAL generate_series(g, 20000, g) i GROUP BY g;
SELECT rb_cardinality(rb_or_agg(b)), rb_cardinality(rb_and_agg(b)) FROM bitmaps WHERE id < 8;
SELECT rb_to_array(b) FROM bitmaps WHERE id = 199;
SELECT '{1,2,3}'::roaringbitmap & '{2,3,4}'::roaringbitmap, '{1,2}'::roaringbitmap <@ '{1,2,3}'::roaringbitmap, sum(rb_cardinality(b)) FROM bitmaps;
