CREATE TABLE daily (day int PRIMARY KEY, users hll);
INSERT INTO daily SELECT d, hll_add_agg(hll_hash_integer(i * (d % 7 + 1))) FROM generate_series(1, 30) d, generate_series(1, 3000) i GROUP BY d;
SELECT day, hll_cardinality(users) FROM daily ORDER BY day LIMIT 10;
SELECT # hll_union_agg(users) FROM daily;
SELECT hll_empty() || hll_hash_text('a') || hll_hash_text('b');
