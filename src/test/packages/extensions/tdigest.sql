CREATE TABLE digests AS SELECT i % 5 AS g, tdigest((i * 7919 % 10007)::double precision, 100) AS d FROM generate_series(1, 20000) i GROUP BY 1;
SELECT g, tdigest_percentile(d, 0.95) FROM digests GROUP BY g ORDER BY g;
SELECT tdigest_percentile(d, ARRAY[0.1, 0.5, 0.9]) FROM digests;
SELECT tdigest_percentile_of(i::double precision, 100, 50) FROM generate_series(1, 1000) i;
