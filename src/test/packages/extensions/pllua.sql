CREATE FUNCTION fib(n int) RETURNS int LANGUAGE pllua AS $$ if n < 2 then return n end return fib(n - 1) + fib(n - 2) $$;
SELECT fib(15);
CREATE FUNCTION load(n int) RETURNS int LANGUAGE pllua AS $$
    spi.execute('CREATE TABLE t (i int PRIMARY KEY, v text UNIQUE)')
    spi.execute('INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, $1) i', n)
    local sum = 0
    for r in spi.rows('SELECT i FROM t') do sum = sum + r.i end
    return sum
$$;
SELECT load(3000);
