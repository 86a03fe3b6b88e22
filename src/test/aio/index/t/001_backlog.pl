# Copyright (c) 2026, the pgawait authors

# When index entries wait in a backlog and when they do not: each row of the
# manual's table of rules, in both directions.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', 'io_method = worker');
$node->start;

my $injection = ($ENV{enable_injection_points} // '') eq 'yes'
  && $node->check_extension('injection_points');
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if $injection;

$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION btree_gist;
	CREATE TABLE source AS
		SELECT n AS id, md5(n::text) AS a, (n * 7919) % 10007 AS b FROM generate_series(1, 5000) n;
	CREATE TABLE t (LIKE source);
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_b ON t (b DESC, a);
	CREATE INDEX t_hash ON t USING hash (a);

	-- what an index scan finds, and what it should find
	CREATE FUNCTION found(key text) RETURNS int LANGUAGE plpgsql VOLATILE
		SET enable_seqscan = off SET enable_bitmapscan = off AS
		$$BEGIN RETURN (SELECT count(*) FROM t WHERE a = key); END$$;
	CREATE FUNCTION stably_found(key text) RETURNS int LANGUAGE plpgsql STABLE AS
		$$BEGIN RETURN (SELECT count(*) FROM t WHERE a = key); END$$;
	CREATE FUNCTION complaints() RETURNS SETOF text LANGUAGE plpgsql AS $$
	DECLARE
		i regclass;
	BEGIN
		FOR i IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
			JOIN pg_am am ON am.oid = relam WHERE amname = 'btree' AND relnamespace = 'public'::regnamespace AND relkind = 'i'
		LOOP
			PERFORM bt_index_parent_check(i, true, true);
		END LOOP;
	END$$;
});

my $file = $node->basedir . '/rows';
$node->safe_psql('postgres', "COPY source TO '$file'");

my $errors = '';

# Run a script in a session of its own, and collect its errors.
sub run
{
	my ($script) = @_;
	my ($code, $stdout, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);
	$errors .= $stderr;
	return $stdout;
}

# The errors since this was asked last.
sub errors
{
	my $result = $errors;
	$errors = '';
	return $result;
}

# What a statement does: entries collected, batches, and why they were
# inserted.
sub batches
{
	my ($statement) = @_;
	my $said = run("$statement;\nSELECT entries, batches, memory_full, before_query FROM aio_session_batches();");
	my ($counts) = $said =~ /(\d+\|\d+\|\d+\|\d+)$/
	  or die "no counts: $said$errors";
	my %result;
	@result{qw(entries batches full looked)} = split /\|/, $counts;
	return \%result;
}

# Expect so many entries in a batch at the end of the statement.
sub collects
{
	my ($statement, $entries, $why) = @_;
	is_deeply(batches($statement),
		{ entries => $entries, batches => $entries ? 1 : 0, full => 0, looked => 0 }, $why);
}

my $insert = 'INSERT INTO t SELECT * FROM source';

# statements
collects($insert, 12000, 'INSERT ... SELECT collects after 1000 rows');
my ($visits) = run("BEGIN; $insert; SELECT leaf_visits FROM aio_session_batches(); ROLLBACK") =~ /(\d+)$/;
# a hash index that grows is not sorted for
cmp_ok($visits, '>', 4000, 'pages that are visited are counted');
cmp_ok($visits, '<', 4000 + 8000 / 8, 'and are far fewer than entries');
collects("COPY t FROM '$file'", batches("COPY t FROM '$file'")->{entries}, 'COPY collects');
cmp_ok(batches("COPY t FROM '$file'")->{entries}, '>', 10000, 'COPY collects all but the first rows');
collects("$insert LIMIT 1000", 0, 'few rows do not wait');
collects("$insert RETURNING id", 12000, 'RETURNING collects');
collects("WITH i AS ($insert), j AS ($insert) SELECT", 0, 'parts of a statement that do not count its rows do not collect');
collects('INSERT INTO t VALUES ' . join(',', map { "($_, 'v$_', $_ % 17)" } (1 .. 1100)), 300, 'VALUES collects');
collects("PREPARE p AS INSERT INTO t SELECT * FROM source LIMIT \$1;\nEXECUTE p(1500)", 1500, 'a prepared statement collects');
collects("INSERT INTO t SELECT * FROM source LIMIT \$1 \\bind 1500 \\g\nSELECT", 1500, 'a statement with parameters collects');
run('CREATE TABLE base (LIKE source); CREATE MATERIALIZED VIEW m AS TABLE base; INSERT INTO base TABLE source;
	CREATE UNIQUE INDEX ON m (a); CREATE INDEX ON m (b)');
collects('REFRESH MATERIALIZED VIEW CONCURRENTLY m', 8000, 'REFRESH MATERIALIZED VIEW CONCURRENTLY collects what it adds, as nobody else may insert also unique keys');
collects('MERGE INTO t USING (SELECT -id AS id, a, b FROM source) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a, s.b)',
	12000, 'MERGE collects what it inserts');
cmp_ok(batches('UPDATE t SET b = b + 1 WHERE id > 0')->{entries}, '>', 10000, 'UPDATE collects');
cmp_ok(batches('MERGE INTO t USING source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET b = t.b + 1')->{entries}, '>', 3000, 'so does an UPDATE of MERGE');

# parameters
collects("SET aio.index_batch_memory = 0;\n$insert", 0, 'no memory, no backlog');
collects("SET aio.index_batch_memory = '64MB'; SET aio.await_index_inserts = off;\n$insert", 0, 'off is off');
my $tight = batches("SET aio.index_batch_memory = '100kB';\n$insert");
cmp_ok($tight->{full}, '>', 4, 'little memory: drained when it is used up');
is($tight->{entries}, 12000, 'little memory: all collected nevertheless');

# kinds of indexes
run(q{
	CREATE TABLE k (LIKE source);
	CREATE UNIQUE INDEX k_a ON k (a);});
collects('INSERT INTO k SELECT * FROM source', 4000, 'unique keys wait');
collects(q{UPDATE k SET a = a || 'x'}, 0, 'but not those of UPDATE');
collects(q{CREATE UNIQUE INDEX k_id ON k (id); INSERT INTO k SELECT id + 5000, a || 'y', b FROM source}, 8000, 'those of several indexes do so together, also if one is in order');
collects(q{DROP INDEX k_id; TRUNCATE k; ALTER TABLE k ADD CONSTRAINT k_id UNIQUE (id) DEFERRABLE; INSERT INTO k SELECT * FROM source}, 0, 'if they can');
collects('ALTER TABLE k DROP CONSTRAINT k_id; ALTER TABLE k ADD CONSTRAINT k_id EXCLUDE USING btree (id WITH =); TRUNCATE k; INSERT INTO k SELECT * FROM source', 0, 'an exclusion constraint cannot');
collects('SET aio.batch_unique_keys = on; TRUNCATE k; INSERT INTO k SELECT * FROM source', 4000, 'which does not matter if that is asked for');
run('ALTER TABLE k DROP CONSTRAINT k_id');
run(q{CREATE TABLE documents (j jsonb); CREATE INDEX ON documents (JSON_VALUE(j, '$.a' RETURNING int))});
collects(q{INSERT INTO documents SELECT jsonb_build_object('a', b) FROM source}, 4000, 'entries of JSON_VALUE() wait');
collects('SET aio.batch_unique_keys = off; TRUNCATE k; INSERT INTO k SELECT * FROM source', 0, 'they do not wait if that is not wanted');
collects('SET aio.batch_unique_keys = off; BEGIN; LOCK k IN SHARE MODE; TRUNCATE k; INSERT INTO k SELECT * FROM source; COMMIT', 4000, 'unless nobody else can insert');
$node->append_conf('postgresql.conf', 'aio.batch_unique_keys = true');
$node->reload;
collects(q{CREATE SEQUENCE q; INSERT INTO k SELECT nextval('q'), a || 'n', b FROM source}, 0, 'not if later rows advance a sequence');
collects(q{CREATE FUNCTION plain(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN i; END'; INSERT INTO k SELECT plain(id), a || 'u', b FROM source},
	0, 'nor if they call user code');
collects('INSERT INTO k SELECT id, a || id, b FROM source RETURNING id', 0, 'nor if they are returned');
collects(q{CREATE TABLE k2 (LIKE source, CHECK (plain(id) > 0)); CREATE UNIQUE INDEX ON k2 (a); INSERT INTO k2 SELECT * FROM source},
	0, 'nor if a constraint does');
run(q{
	DROP TABLE k, k2; CREATE TABLE k (LIKE source);
	ALTER TABLE k ADD UNIQUE (a) DEFERRABLE INITIALLY DEFERRED, ADD EXCLUDE USING gist (id WITH =);});
collects('INSERT INTO k SELECT * FROM source', 0, 'deferrable and exclusion constraints do not wait');
run(q{
	DROP TABLE k; CREATE TABLE k (LIKE source); CREATE INDEX ON k (a) WHERE b % 2 = 0;});
collects('INSERT INTO k SELECT * FROM source', $node->safe_psql('postgres', 'SELECT count(*) FROM source WHERE id > 1000 AND b % 2 = 0'),
	'a partial index collects its entries');
run(q{
	DROP TABLE k; CREATE TABLE k (LIKE source); CREATE INDEX ON k (id); CREATE INDEX ON k (a);});
collects('INSERT INTO k SELECT * FROM source', 8000, 'entries that come in order are collected, too');
run(q{
	DROP TABLE k; CREATE TABLE k (LIKE source); CREATE UNIQUE INDEX ON k (id); CREATE INDEX ON k (a);});
my $ordered = batches('INSERT INTO k SELECT * FROM source');
is($ordered->{entries}, 4000 + 512, 'unique keys that come in order stop waiting');
run(q{
	DROP TABLE k; CREATE TABLE k (LIKE source); CREATE INDEX ON k USING gist (to_tsvector('simple', a)); CREATE INDEX ON k USING brin (id);
	CREATE INDEX ON k USING spgist (box(point(id, b), point(id, b)));
});
collects('INSERT INTO k SELECT * FROM source', 0, 'BRIN does not collect, nor does what has no quick order');
run(q{
	DROP TABLE k; CREATE TABLE k (LIKE source);
	CREATE INDEX ON k USING gist (id); CREATE INDEX ON k USING gist (a, b); CREATE INDEX ON k USING gist (int4range(id, id + 1));
	CREATE INDEX ON k USING gist (box(point(id, b), point(id, b)), id); CREATE INDEX ON k USING gist (circle(point(id, b), 1));
	CREATE INDEX ON k USING gist (polygon(4, circle(point(id, b), 1)));});
collects('INSERT INTO k SELECT * FROM source', 24000, 'GiST collects what has sort support, and boxes');
is( run(q{
	SET enable_seqscan = off;
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE k.id = s.id) <> 1;
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE k.a = s.a AND k.b = s.b) <> 1;
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE int4range(k.id, k.id + 1) @> s.id) <> 1;
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE box(point(k.id, k.b), point(k.id, k.b)) <@ box(point(s.id, s.b), point(s.id, s.b)) AND k.id = s.id) <> 1;
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE circle(point(k.id, k.b), 1) @> circle(point(s.id, s.b), 0.1)) <> 1;
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE polygon(4, circle(point(k.id, k.b), 1)) @> polygon(4, circle(point(s.id, s.b), 0.1))) <> 1;}),
	join("\n", (0) x 6), 'and finds it');
run('DROP TABLE k; CREATE TABLE k (LIKE source)');
run(q{CREATE INDEX ON k USING gin (string_to_array(a, '0'));});
collects('INSERT INTO k SELECT * FROM source', 4000, 'GIN with a pending list collects');
run(q{
	DROP TABLE k; CREATE TABLE k (LIKE source, p point);
	CREATE INDEX k_gist ON k USING gist (p) INCLUDE (id, a);
	CREATE INDEX k_gist2 ON k USING gist (point(id, b), p);
	CREATE INDEX k_quad ON k USING spgist (p);
	CREATE INDEX k_radix ON k USING spgist (a) INCLUDE (id);});
my $point = "CASE WHEN id % 10 > 0 THEN point(b % 100, b / 100) END";
collects("INSERT INTO k SELECT *, $point FROM source", 12000, 'GiST and SP-GiST collect what can be sorted, but a radix tree does not');
collects("INSERT INTO k SELECT id, CASE WHEN id % 1000 = 500 THEN (SELECT string_agg(md5((n * id)::text), '') FROM generate_series(1, 50) n) ELSE a END, b, $point FROM source", 12000 - 4, 'but not what is large');
collects("SET aio.max_tasks = 1; INSERT INTO k SELECT *, $point FROM source", 12000, 'also without tasks');
is( run(q{CREATE TEMP TABLE places AS SELECT x, y, count(k.ctid) FROM generate_series(0, 99) x CROSS JOIN generate_series(0, 100) y
		LEFT JOIN k ON p[0] = x AND p[1] = y GROUP BY 1, 2;
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	SELECT count(*), sum(count) FROM places;
	SELECT count(*) FROM places WHERE count <> (SELECT count(*) FROM k WHERE p <@ box(point(x, y), point(x, y)));
	SELECT count(*) FROM source s WHERE (SELECT count(*) FROM k WHERE point(k.id, k.b) <@ box(point(s.id, s.b), point(s.id, s.b))) <> 3;
	SELECT count(*) FROM source s WHERE s.id % 1000 <> 500 AND (SELECT count(*) FROM k WHERE k.a = s.a) <> 3;
	DROP INDEX k_gist;
	SELECT count(*) FROM places WHERE count <> (SELECT count(*) FROM k WHERE p <@ box(point(x, y), point(x, y)));}),
	"10100|13500\n0\n0\n0\n0", 'and find it');
run('DROP TABLE k');
run(q{
	CREATE TABLE k (LIKE source, keys text[], more text[]);
	CREATE INDEX k_gin ON k USING gin (keys, more, string_to_array(a, '0')) WITH (fastupdate = off);});
my $keys = "ARRAY['one', 'of ' || b % 50, NULL], CASE WHEN id % 3 > 0 THEN ARRAY['b' || b] WHEN id % 2 > 0 THEN '{}'::text[] END";
collects("INSERT INTO k SELECT *, $keys FROM source", 4000, 'GIN without one collects');
collects("INSERT INTO k SELECT id, a, b, CASE WHEN id = 1700 THEN ARRAY[repeat('large', 1000)] WHEN id % 500 = 0 THEN ARRAY[(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 60) n)] END FROM source",
	4000 - 9, 'but not keys that may be too large');
run(q{INSERT INTO k SELECT id, a, b, CASE WHEN id = 1700 THEN ARRAY[(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 600) n)] ELSE ARRAY[a] END FROM source});
like(errors(), qr/index row requires \d+ bytes, maximum size is \d+/, 'of which one that is');
$tight = batches("SET aio.index_batch_memory = '100kB'; INSERT INTO k SELECT *, $keys FROM source");
cmp_ok($tight->{full}, '>', 4, 'GIN: drained when the memory is used up');
run('SELECT gin_index_check($$k_gin$$)');
is( run(q{CREATE TABLE counted AS SELECT key, count(DISTINCT k.ctid) FROM k, unnest(keys) key WHERE key IS NOT NULL GROUP BY key;
	SET enable_seqscan = off;
	SELECT count(*), count(*) FILTER (WHERE count <> (SELECT count(*) FROM k WHERE keys @> ARRAY[key])) FROM counted;
	SELECT count(*) FROM k WHERE string_to_array(a, '0') @> '{}'; DROP TABLE counted;}),
	"53|0\n15000", 'every key is found, and every row');
collects('CREATE TEMP TABLE temporary (LIKE source); CREATE INDEX ON temporary (a); INSERT INTO temporary SELECT * FROM source', 0, 'temporary tables do not collect');
run(q{DROP TABLE k; CREATE TABLE k (a text, big text); CREATE INDEX ON k (big);
	ALTER TABLE k ALTER big SET STORAGE plain;});
run(q{INSERT INTO k SELECT n, CASE WHEN n = 1500 THEN repeat('x', 3000) ELSE 'y' || n END FROM generate_series(1, 3000) n});
like(errors(), qr/index row size 3016 exceeds/, 'what is too large is found when it is inserted');
is(run('SELECT count(*) FROM k'), '0', 'and nothing of that statement is left');

# ON CONFLICT
run(q{DROP TABLE k; CREATE TABLE k (LIKE source); CREATE UNIQUE INDEX k_id ON k (id); CREATE INDEX ON k (a);});
collects('INSERT INTO k SELECT * FROM source ON CONFLICT DO NOTHING', 4000, 'ON CONFLICT collects what is not unique');
collects('INSERT INTO k SELECT -id, a, b FROM source', 8000, 'the same without it does');
collects(q{LOAD 'auto_explain'; INSERT INTO k SELECT -10000 - id, a, b FROM source}, 8000, 'so it does where a library runs plans by its own hook');

# A row that dies, because another session has been faster to insert its key,
# has its entries before that: VACUUM could give its place to another row.
SKIP:
{
	skip 'server is built without injection points', 2 unless $injection;

	my $slow = $node->background_psql('postgres');
	$slow->query_safe('SET aio.debug_rows_before_batch = 0; SELECT aio_session_stats_reset();');
	$node->safe_psql('postgres', q{SELECT injection_points_attach('aio-speculative-insert', 'wait')});
	$slow->query_until(qr/begun/, "\\echo begun\nINSERT INTO k SELECT -30000 - id, a, b FROM source WHERE id <= 100 ON CONFLICT (id) DO NOTHING;\n");
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'aio-speculative-insert'})
	  or die 'nobody inserts';
	$node->safe_psql('postgres', q{
		INSERT INTO k SELECT -30000 - id, 'faster', b FROM source WHERE id <= 100 ORDER BY id LIMIT 1;
		SELECT injection_points_detach('aio-speculative-insert');
		SELECT injection_points_wakeup('aio-speculative-insert')});
	is($slow->query_safe('SELECT entries, batches FROM aio_session_batches()'), '100|2', 'entries of a row that dies are inserted before');
	$slow->quit;
	is(run("SELECT count(*), count(*) FILTER (WHERE a = 'faster') FROM k WHERE id BETWEEN -30100 AND -30001"), '100|1', 'and the other row is there');
}

# errors of keys that wait: the first row that fails is reported
sub reports
{
	my ($statement, $error, $why) = @_;
	my $before = run('SELECT count(*) FROM k');
	run($statement);
	like(errors(), $error, $why);
	is(run('SELECT count(*) FROM k'), $before, "$why: and nothing is left");
}

run(q{DROP TABLE k; CREATE TABLE k (LIKE source); CREATE UNIQUE INDEX k_a ON k (a); CREATE UNIQUE INDEX k_b ON k (b); CREATE INDEX ON k (b, a);
	INSERT INTO k VALUES (0, 'taken', -1), (0, md5('3000'), -2), (0, md5('2500'), -3);});
reports('INSERT INTO k SELECT * FROM source', qr/Key \(a\)=\(@{[ run(q{SELECT md5('2500')}) ]}\) already exists/, 'the first of two duplicates');
reports("COPY k FROM '$file'", qr/duplicate key value violates unique constraint "k_a".*\(a\)=.*COPY k, line 2500\s*$/s, 'COPY, with its line');
reports("INSERT INTO k SELECT id, a, CASE WHEN id = 2400 THEN -1 ELSE b END FROM source", qr/Key \(b\)=\(-1\) already exists/, 'by row, not by index');
reports("INSERT INTO k SELECT id, a, b + 0 / (2700 - id) FROM source", qr/Key \(a\)=.*already exists/, 'before the error of a later row');
reports("INSERT INTO k SELECT id, a, b + 0 / (2300 - id) FROM source", qr/division by zero/, 'not before that of an earlier row');
reports("INSERT INTO k SELECT id, CASE WHEN id IN (1400, 2200) THEN 'new' ELSE a END, b FROM source", qr/Key \(a\)=\(new\) already exists/, 'within the batch');
run("COPY (SELECT id, CASE WHEN id IN (1400, 2200) THEN 'new' ELSE a END, CASE WHEN id = 4000 THEN 'x' ELSE b::text END FROM source) TO '$file.flawed'");
reports("COPY k FROM '$file.flawed'", qr/Key \(a\)=\(new\) already exists.*\nCONTEXT:  COPY k, line 2200\s*$/s, 'COPY: before a later line that cannot be read');
run("COPY (SELECT id, CASE WHEN id IN (1400, 2200) THEN 'new' ELSE a END, CASE WHEN id = 2100 THEN 'x' ELSE b::text END FROM source) TO '$file.flawed'");
reports("COPY k FROM '$file.flawed'", qr/invalid input syntax for type integer: "x".*COPY k, line 2100, column b/s, 'COPY: after an earlier one');

# Memory for so few entries that collecting ends in the middle of a batch of COPY.
run('CREATE TABLE few (u uuid UNIQUE)');
run("COPY (SELECT md5((CASE n WHEN 3500 THEN 1950 ELSE n END)::text) FROM generate_series(1, 4000) n) TO '$file.flawed'");
run("SET aio.index_batch_memory = '16kB'; COPY few FROM '$file.flawed'");
like(errors(), qr/duplicate key.*COPY few, line 3500\s*$/s, 'the later of two lines, also if no more entries are collected');

# a row that fails on its way into the heap, and one on its way into an index
# that collects
run(q{CREATE TABLE w (id int UNIQUE, a text); ALTER TABLE w ALTER a SET STORAGE PLAIN;
	INSERT INTO w SELECT CASE n WHEN 1500 THEN 1 ELSE n END, repeat('x', CASE n WHEN 1600 THEN 9000 ELSE 1 END) FROM generate_series(1, 3000) n});
like(errors(), qr/Key \(id\)=\(1\) already exists/, 'before the error of a later row that is too large');
run(q{CREATE TABLE compressed AS SELECT point(n, n) p, repeat('x', CASE n WHEN 1500 THEN 20000 ELSE 1 END) x FROM generate_series(1, 3000) n;
	CREATE TABLE radix (p point, x text, y int);
	CREATE INDEX radix_p ON radix USING spgist (p) INCLUDE (x);
	INSERT INTO radix SELECT p, x, 1 / ((p[0] <> 2500)::int) FROM compressed});
like(errors(), qr/index row size \d+ exceeds maximum \d+ for index "radix_p"/, 'SP-GiST: what is large when it is not compressed');

# user code in hiding, which begins a subtransaction that fails
run(q{CREATE FUNCTION checked(int) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF $1 = 1900 THEN
			BEGIN PERFORM count(*) FROM pg_class; RAISE division_by_zero;
			EXCEPTION WHEN division_by_zero THEN NULL; END;
		END IF;
		RETURN true;
	END $$;
	CREATE DOMAIN d AS int CHECK (checked(VALUE));
	CREATE TABLE arrays (a d[]);
	INSERT INTO arrays SELECT ('{' || n || '}')::d[] FROM generate_series(1, 3000) n;
	CREATE TYPE e AS ENUM ('x', 'y');
	CREATE FUNCTION e_json(e) RETURNS json LANGUAGE plpgsql AS $$BEGIN PERFORM checked(1900); RETURN '"e"'; END $$;
	CREATE CAST (e AS json) WITH FUNCTION e_json(e);
	CREATE TABLE jsons (a json);
	INSERT INTO jsons SELECT CASE WHEN n % 700 = 0 THEN to_json('x'::e) ELSE to_json(n) END FROM generate_series(1, 3000) n;
	INSERT INTO jsons SELECT json_build_object('n', n, 'e', CASE WHEN n % 700 = 0 THEN 'x'::e END) FROM generate_series(1, 3000) n;
	INSERT INTO jsons SELECT JSON_OBJECT('n': n, 'e': CASE WHEN n % 700 = 0 THEN 'x'::e END) FROM generate_series(1, 3000) n;});
is(run('SELECT count(*) FROM arrays; SELECT count(*) FROM jsons'), "3000\n9000", 'rows do not go with a subtransaction of a function that their types call');

# what rows after a failing one must not do
sub leaves_nothing_more
{
	my ($statement, $why) = @_;
	my $expected;

	foreach my $memory ('0', '64MB')
	{
		run('ALTER SEQUENCE trace RESTART');
		errors();
		run("SET aio.index_batch_memory = '$memory'; $statement");
		my $outcome = (errors() =~ s/\s+LINE.*//sr) . run('SELECT last_value FROM trace');
		$expected //= $outcome;
		is($outcome, $expected, $why) if $memory ne '0';
	}
	like($expected, qr/duplicate key/, "$why: it fails");
	return;
}

run(q{CREATE SEQUENCE trace;
	CREATE FUNCTION traced(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('trace'); RETURN 0; END$$;
	CREATE TABLE keyed (a int) PARTITION BY LIST (traced(a));
	CREATE TABLE keyed_0 PARTITION OF keyed FOR VALUES IN (0);
	ALTER TABLE keyed_0 ADD PRIMARY KEY (a);
	CREATE TABLE limited (a int PRIMARY KEY, q tsquery)});
leaves_nothing_more('INSERT INTO keyed_0 SELECT CASE g WHEN 1500 THEN 1 ELSE g END FROM generate_series(1, 3000) g', 'a partition constraint calls user code');
leaves_nothing_more(q{SET enable_memoize = off; INSERT INTO limited SELECT x FROM generate_series(1, 3000) g,
	LATERAL (SELECT CASE WHEN g = 1500 THEN 1 ELSE g END AS x LIMIT nextval('trace')) q}, 'a limit advances a sequence');
leaves_nothing_more(q{INSERT INTO limited SELECT CASE g WHEN 1500 THEN 1 ELSE g END, to_tsquery('english', CASE WHEN g > 1500 THEN 'the' ELSE 'cat' END)
	FROM generate_series(1, 3000) g}, 'a function sends notices');
run(q{CREATE TABLE newer (a int);
	CREATE FUNCTION newest(x int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN x >= (SELECT max(a) FROM newer); END';
	CREATE DOMAIN newest AS int CHECK (newest(VALUE));
	CREATE INDEX ON newer ((a::newest));
	INSERT INTO newer SELECT generate_series(1, 3000);});
is(run('SELECT count(*) FROM newer'), '3000', 'an index expression sees the rows up to its own');
run('DROP TABLE newer');

# a statement that is not run to its end
run(q{CREATE EXTENSION test_aio_core;
	DROP TABLE k; CREATE TABLE k (LIKE source); CREATE INDEX k_a ON k (a);});
my $some = batches(q{SELECT execute_some('INSERT INTO k SELECT * FROM source RETURNING id', 3000)});
is($some->{entries}, 2000, 'a statement that is stopped before its end has collected');
is($some->{batches}, 1, 'and is drained');
is(run('SET effective_io_concurrency = 7; INSERT INTO k SELECT * FROM source; SHOW effective_io_concurrency'), '7',
	'how many reads may be in flight is as it was');

# an index with many pages above its leaves, each of which lists a few
run(q{
	CREATE TABLE wide (n int, w text);
	ALTER TABLE wide ALTER w SET STORAGE EXTERNAL;
	CREATE INDEX wide_w ON wide (w);
	INSERT INTO wide SELECT n, repeat('x', 1000) || lpad(n::text, 6, '0') FROM generate_series(1, 8000, 2) n});
$node->restart;
my $read_ahead = run(q{
	EXPLAIN (ANALYZE, AIO, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)
	INSERT INTO wide SELECT n, repeat('x', 1000) || lpad(n::text, 6, '0') FROM generate_series(2, 8000, 2) n ORDER BY hashint4(n)});
like($read_ahead, qr/Index wide_w: .*max in flight=(?:[2-9]\d|1[6-9])$/m, 'the leaves below all of them are read ahead');

# EXPLAIN
run('DROP TABLE IF EXISTS k; CREATE TABLE k (LIKE source); CREATE INDEX k_a ON k (a); CREATE UNIQUE INDEX k_id ON k (id); CREATE INDEX "K" ON k (b)');
my $explain = 'COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) INSERT INTO k SELECT * FROM source';
my $plan = run("EXPLAIN (ANALYZE, AIO, $explain");
like($plan, qr/^ *Index k_a: entries=4000 batches=2 leaves=[1-9]\d* suspended=\d+ max in flight=\d+$/m, 'EXPLAIN tells of collected entries');
like($plan, qr/^ *Index "K": entries=4000 /m, 'of each index');
like($plan, qr/^ *Index k_id: entries=512 /m, 'also of one that collects no more');
unlike(run("TRUNCATE k;\nEXPLAIN (ANALYZE, $explain"), qr/Index k/, 'only if asked to');
unlike(run("TRUNCATE k;\nEXPLAIN (ANALYZE, AIO off, $explain"), qr/Index k/, 'not if asked not to');
is(run("TRUNCATE k;\nEXPLAIN (ANALYZE, AIO, FORMAT json, $explain") =~ s/.*"Collected Indexes": \[\s*\{\s*"Index Name": "k_a",\s*"Entries": 4000,\s*"Batches": 2,\s*"Leaf Visits": \d+,\s*"Tasks Suspended": \d+,\s*"Max Reads In Flight": \d+,\s*"Spilled": 0\s*\}.*/found/sr,
	'found', 'also in JSON');
run("EXPLAIN (AIO) SELECT 1");
like(errors(), qr/EXPLAIN option AIO requires ANALYZE/, 'not without ANALYZE');

# rows that are kept back, to go into the heap together
sub wal_records
{
	my ($statement, $setup) = @_;
	my ($records) = run(($setup // '') . "\nEXPLAIN (ANALYZE, WAL, COSTS OFF, TIMING OFF) $statement;") =~ /WAL: records=(\d+)/;
	return $records;
}

run('DROP TABLE k; CREATE TABLE k (LIKE source); CREATE TABLE k2 (LIKE source, n int DEFAULT 0); CREATE SEQUENCE numbers;');
cmp_ok(wal_records('INSERT INTO k SELECT * FROM source'), '<', 1500, 'INSERT ... SELECT: one WAL record for the rows of a page');
cmp_ok(wal_records('INSERT INTO k SELECT * FROM source', 'SET aio.index_batch_memory = 0;'), '>=', 5000, 'not without memory for it');
cmp_ok(wal_records('INSERT INTO k SELECT * FROM source RETURNING id'), '>=', 5000, 'nor with RETURNING');
cmp_ok(wal_records('INSERT INTO k SELECT * FROM source ON CONFLICT DO NOTHING'), '>=', 5000, 'nor with ON CONFLICT');
cmp_ok(wal_records("INSERT INTO k SELECT nextval('numbers'), a, b FROM source"), '>=', 5000, 'nor if a sequence is advanced');
cmp_ok(wal_records('INSERT INTO k2 SELECT * FROM source'), '<', 1500, 'a default makes no difference');
is(run('SELECT count(*), count(DISTINCT ctid) FROM k'), '25000|25000', 'all rows are there');

# whoever looks
run(q{CREATE TABLE seen (id int, a text, n int);
	CREATE INDEX seen_a ON seen (a, md5(id::text));
	CREATE FUNCTION count_seen() RETURNS int LANGUAGE plpgsql VOLATILE
		SET enable_seqscan = off SET enable_bitmapscan = off AS
		$$BEGIN RETURN (SELECT count(*) FROM seen WHERE a = 'x'); END$$;});
my $looking = batches("INSERT INTO seen SELECT id, 'x', count_seen() FROM source WHERE id <= 2000");
is($looking->{looked}, 3, 'a volatile function that looks has it drained, and soon there is nothing to drain');
$looking = batches("TRUNCATE seen; INSERT INTO seen SELECT id, 'x', CASE WHEN id % 1000 = 500 THEN count_seen() ELSE id - 1 END FROM source");
is($looking->{looked}, 4, 'one that looks seldom is worth collecting for');
is(run('SELECT count(*), count(*) FILTER (WHERE n <> id - 1) FROM seen'), '5000|0', 'and it finds what it should');
collects('INSERT INTO t SELECT id, a, stably_found(a) FROM source LIMIT 2000', 3000, 'a stable function sees none of it and may look');
collects('INSERT INTO t SELECT id, a, random() * 100 FROM source LIMIT 2000', 3000, 'nor does one that cannot look');
run(q{CREATE FUNCTION seen_before() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN NEW.n := CASE WHEN NEW.id % 1000 = 500 THEN count_seen() ELSE NEW.id - 1 END; RETURN NEW; END$$;
	CREATE FUNCTION t_after() RETURNS trigger LANGUAGE plpgsql AS
	$$BEGIN IF found(NEW.a) = 0 THEN RAISE 'row % is not to be found', NEW.id; END IF; RETURN NULL; END$$;
	TRUNCATE seen;
	CREATE TRIGGER before BEFORE INSERT ON seen FOR EACH ROW EXECUTE FUNCTION seen_before();});
my $triggered = batches("INSERT INTO seen SELECT id, 'x', -1 FROM source");
is($triggered->{looked}, 4, 'a BEFORE ROW trigger that looks has it drained');
is(run('SELECT count(*), count(*) FILTER (WHERE n <> id - 1) FROM seen'), '5000|0', 'and sees all rows before its own');
run("TRUNCATE seen; COPY seen FROM PROGRAM 'seq -f \"%.0f\tx\t0\" 1 5000'");
is(run('SELECT count(*), count(*) FILTER (WHERE n <> id - 1) FROM seen'), '5000|0', 'also in COPY');
run('CREATE TRIGGER after AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION t_after();');
collects('INSERT INTO t SELECT * FROM source WHERE id <= 1500', 1500, 'AFTER ROW triggers look when all is in');
is(errors(), '', 'and find it');
run('DROP TRIGGER after ON t');

# an error in a drain that a function catches fails the statement
SKIP:
{
	skip 'server is built without injection points', 3 unless $injection;

	run(q{CREATE FUNCTION careless(key text) RETURNS int LANGUAGE plpgsql AS
		$$BEGIN RETURN found(key); EXCEPTION WHEN OTHERS THEN RETURN -1; END$$;
	});
	my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
	run(q{SELECT injection_points_set_local();
		SELECT injection_points_attach('aio-drain', 'error');
		INSERT INTO t SELECT id, a, CASE WHEN id = 1800 THEN careless(a) END FROM source WHERE id <= 2000;});
	like(errors(), qr/error triggered for injection point aio-drain/,
		'a failed drain is not forgiven');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), $rows, 'no row of that statement is left');
	collects('INSERT INTO t SELECT * FROM source LIMIT 2000', 3000, 'the next statement collects again');
}

# a statement that fails leaves nothing behind
collects(q{BEGIN; SAVEPOINT s; INSERT INTO t SELECT id, a, 1 / (4000 - id) FROM source; ROLLBACK TO s;
	SELECT aio_session_stats_reset(); INSERT INTO t SELECT * FROM source LIMIT 2000; COMMIT},
	3000, 'a statement after one that has been rolled back');
like(errors(), qr/division by zero/, 'which has failed');

# partitions share the memory
run(q{
	CREATE TABLE p (LIKE source) PARTITION BY HASH (id);
	SELECT format('CREATE TABLE p%s PARTITION OF p FOR VALUES WITH (MODULUS 20, REMAINDER %s)', n, n) FROM generate_series(0, 19) n \gexec
	CREATE INDEX ON p (a); CREATE INDEX ON p (b);});
collects('INSERT INTO p SELECT * FROM source', 8000, 'partitions collect');
my $parts = batches("SET aio.index_batch_memory = '150kB'; INSERT INTO p SELECT * FROM source");
cmp_ok($parts->{full}, '>', 2, 'and are drained together');
run("COPY p FROM '$file'") foreach 1 .. 5;
is(run('SELECT count(*) FROM p'), '35000', 'COPY into partitions');

is(errors(), '', 'no other error');
is($node->safe_psql('postgres', 'SELECT * FROM complaints()'), '', 'heap and indexes agree');
is( $node->safe_psql('postgres', q{
	CREATE TEMP TABLE counted AS SELECT a, count(*) FROM t GROUP BY a;
	DROP INDEX t_a;
	SET enable_seqscan = off;
	SELECT count(*) FROM counted c WHERE count <> (SELECT count(*) FROM t WHERE t.a = c.a)}),
	'0', 'the hash index finds every row');
$node->stop;
done_testing();
