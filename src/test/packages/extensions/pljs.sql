CREATE FUNCTION twice(a int[]) RETURNS int[] LANGUAGE pljs AS $$ return a.map(x => x * 2); $$;
SELECT twice('{1,2,3}');
CREATE FUNCTION load(n int) RETURNS int LANGUAGE pljs AS $$
    pljs.execute('CREATE TABLE t (i int PRIMARY KEY, v text UNIQUE)');
    pljs.execute('INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, $1) i', [n]);
    return pljs.execute('SELECT count(*)::int AS n FROM t')[0].n;
$$;
SELECT load(3000);
DO LANGUAGE pljs $$ pljs.elog(NOTICE, JSON.stringify({a: [1, 2]})); $$;
