CREATE TABLE numbers (i int, z mpz PRIMARY KEY, q mpq);
CREATE INDEX ON numbers USING hash (z);
CREATE INDEX ON numbers (q);
INSERT INTO numbers SELECT i, '12345678901234567890'::mpz * i::mpz, i::mpq / 7::mpq FROM generate_series(1, 5000) i;
SET enable_seqscan = off;
SELECT i, q FROM numbers WHERE z = '12345678901234567890'::mpz * 77;
SELECT sum(z), sum(q), max(q) FROM numbers;
SELECT pow(2::mpz, 200), fac(30), gcd(84::mpz, 36::mpz), probab_prime('1000000007'::mpz, 10);
