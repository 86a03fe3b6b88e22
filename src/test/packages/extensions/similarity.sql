SELECT lev('context', 'contact'), jaro('dwayne', 'duane'), cosine('a b c', 'b c d'), soundex('robert', 'rupert'), needlemanwunsch('gattaca', 'gtcaa');
CREATE TABLE names AS SELECT i, substr(md5(i::text), 1, 6) AS n FROM generate_series(1, 300) i;
SELECT a.n, b.n FROM names a, names b WHERE a.i < b.i AND a.n ~== b.n ORDER BY 1, 2 LIMIT 10;
