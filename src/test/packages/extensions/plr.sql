CREATE FUNCTION r_sum(a float8[]) RETURNS float8 LANGUAGE plr AS 'sum(a)';
SELECT r_sum(array_agg(i::float8)) FROM generate_series(1, 1000) i;
CREATE FUNCTION r_load() RETURNS int LANGUAGE plr AS $$
pg.spi.exec('CREATE TABLE t (i int PRIMARY KEY, v text UNIQUE)')
pg.spi.exec('INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i')
nrow(pg.spi.exec('SELECT * FROM t'))
$$;
SELECT r_load();
