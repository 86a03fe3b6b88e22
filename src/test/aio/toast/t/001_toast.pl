
# Copyright (c) 2026, the pgawait authors

# Values stored out of line: with values of rows to come looked up ahead of
# need, rows, errors and locks are those of a server that does not; and pages
# are read ahead where somebody would wait for them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($first) = grep { !$methods{$_} } qw(io_uring libaio worker);
my $file = PostgreSQL::Test::Utils::tempdir() . '/copied';
my $sums = 'count(*), sum(hashtextextended(a, 0)), sum(hashtextextended(b, 0))';

# Each is executed in a transaction that is rolled back, with nothing in memory.
# FILE is compared, too.
my @cold = (
	[ 'COPY', q{COPY items TO 'FILE'} ],
	[ 'COPY (query)', q{COPY (SELECT * FROM items) TO 'FILE'} ],
	[ 'CREATE TABLE AS', "CREATE TABLE made AS SELECT * FROM items; SET enable_seqscan = on; SELECT $sums FROM made" ],
	[ 'aggregate', "SELECT $sums FROM items" ],
	[ 'COPY, csv', q{COPY items TO 'FILE' (FORMAT csv, HEADER)} ],
	[ 'COPY, binary', q{COPY items TO 'FILE' (FORMAT binary)} ],
	[ 'COPY, some columns', q{COPY items (n, b, id) TO 'FILE'} ],
	[ 'COPY to the client', q{COPY items TO STDOUT} ],
	[ 'COPY of a materialized view', q{COPY viewed TO 'FILE'} ],
	[ 'COPY of a partitioned table', q{COPY (SELECT * FROM parts) TO 'FILE'} ],
	[ 'COPY of an inherited table', q{COPY items TO 'FILE'; COPY (SELECT * FROM base) TO 'FILE'} ],
	[ 'COPY twice', q{COPY items TO 'FILE'; COPY parts_1 TO STDOUT; COPY items TO STDOUT} ],
	[ 'index order', 'SELECT * FROM items ORDER BY id' ],
	[ 'INSERT ... SELECT', "INSERT INTO empty SELECT * FROM items; SELECT $sums FROM empty" ],
	[ 'INSERT into the same table', "INSERT INTO items SELECT -id, a, n, b, c FROM items; SELECT $sums FROM items" ],
	[ 'REFRESH', "REFRESH MATERIALIZED VIEW viewed; SELECT $sums FROM viewed" ],
	[ 'join', 'SELECT i.a, j.b FROM items i JOIN items j ON j.id = i.n WHERE i.id < 700' ],
	[ 'sort', 'SELECT id FROM items ORDER BY a COLLATE "C", id' ],
	[ 'groups', 'SET enable_sort = off; SELECT n % 10, sum(hashtext(b)), max(length(a)) FROM items GROUP BY n % 10' ],
	[ 'UNION', 'SELECT id, a FROM items WHERE id < 200 UNION ALL SELECT id, b FROM items WHERE id > 300' ],
	[ 'target list', 'SELECT id, length(a), md5(b), n FROM items' ],
	[ 'condition', q{SELECT id, length(a), b IS NULL FROM items WHERE a LIKE '%00%' AND b > 'a' ORDER BY id} ],
	[ 'condition of an update', q{UPDATE items SET n = -n WHERE a LIKE '%000%' RETURNING id; DELETE FROM items WHERE hashtext(a) % 10 = 0; SELECT count(*), sum(n) FROM items} ],
	[ 'a large value', 'SELECT md5(v) FROM large' ],
	[ 'slices', 'SELECT md5(substr(v, 1000, 500000)), substr(v, 700000, 20) FROM large' ],
	[ 'all columns of several tables', 'SELECT * FROM items i JOIN parts p USING (id) WHERE id < 300' ],
	[ 'error in a value', q{COPY damaged TO 'FILE'} ],
	[ 'error in a value, query', q{SELECT * FROM damaged} ],
	[ 'error in a row, later', q{SELECT id, a, 1 / (id - 500) FROM items} ],
	[ 'error in a row, after that in a value', q{COPY (SELECT id, a, 1 / (id - 520) FROM damaged) TO 'FILE'} ],
);

my @others = (
	[ 'cursor', q{DECLARE c SCROLL CURSOR FOR SELECT * FROM items; FETCH 300 FROM c; FETCH 1 FROM c; MOVE BACKWARD 40 FROM c; FETCH BACKWARD 3 FROM c;
		FETCH 300 FROM c; FETCH ALL FROM c; FETCH 3 FROM c; FETCH BACKWARD 3 FROM c; FETCH FIRST FROM c; FETCH 100 FROM c; MOVE ABSOLUTE 5 IN c; FETCH 50 FROM c} ],
	[ 'WHERE CURRENT OF', q{DECLARE c CURSOR FOR SELECT * FROM items; FETCH 300 FROM c; UPDATE items SET n = -n WHERE CURRENT OF c; FETCH 300 FROM c;
		DELETE FROM items WHERE CURRENT OF c; FETCH 5 FROM c; SELECT id, n FROM items WHERE n < 0; SELECT count(*) FROM items} ],
	[ 'held cursor', q{DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT * FROM items; FETCH 300 FROM c; COMMIT; BEGIN; FETCH 300 FROM c; FETCH BACKWARD 310 FROM c; CLOSE c} ],
	[ 'error in a condition', q{SELECT id FROM items WHERE 1000 / (id - 700) > length(a) - 4090; SELECT id FROM damaged WHERE a LIKE 'f%' AND 1 / (id - 600) IS NOT NULL} ],
	[ 'condition of a join', q{SELECT i.id, length(i.a), j.id FROM items i JOIN items j ON j.id = i.n WHERE i.id < 700 AND i.a || j.a LIKE '%000%'} ],
	[ 'conditions under a limit', q{SELECT id, md5(a) FROM items WHERE a LIKE '%0%' LIMIT 40; SELECT id FROM items WHERE EXISTS (SELECT FROM parts p WHERE p.id = items.n AND p.a LIKE '%00%') ORDER BY id LIMIT 20} ],
	[ 'functions of users', q{SELECT id, setval('counter', id), length(a) FROM items WHERE id < 40 ORDER BY id; SELECT CASE WHEN id > 20 THEN length(a) END, coalesce(b, a) FROM items WHERE id < 50 ORDER BY id} ],
	[ 'few rows', 'SELECT * FROM few; COPY few TO STDOUT; SELECT a FROM few LIMIT 2; SELECT (SELECT a FROM few f WHERE f.id = i.id) FROM few i' ],
	[ 'LIMIT', 'SELECT * FROM items LIMIT 30; SELECT * FROM items ORDER BY id LIMIT 30 OFFSET 7; SELECT * FROM (SELECT * FROM items LIMIT 20) i' ],
	[ 'subqueries', 'SELECT i.id, (SELECT j.a FROM items j WHERE j.id = i.n) FROM items i WHERE i.id < 90; SELECT 1 WHERE EXISTS (SELECT a FROM items); SELECT id FROM items i WHERE a IN (SELECT a FROM items WHERE id < 20)' ],
	[ 'functions with side effects', q{SELECT setval('counter', 1), setval('numbered_id_seq', 1); SELECT a, nextval('counter') FROM items WHERE id < 90; SELECT last_value FROM counter; INSERT INTO numbered (a) SELECT a FROM items WHERE id < 90; SELECT * FROM numbered} ],
	[ 'loop', q{DO $$ DECLARE r record; s bigint := 0; BEGIN FOR r IN SELECT * FROM items LOOP s := s + coalesce(hashtext(r.a), 0); EXIT WHEN r.id = 300; END LOOP; RAISE NOTICE '%', s; END $$} ],
	[ 'expanded values', q{SELECT array_append(x, id) FROM arrays; CREATE TABLE made AS SELECT id, x || 1 AS x FROM arrays; SELECT sum(cardinality(x)) FROM made;
		DO $$ DECLARE v int[]; BEGIN SELECT x INTO v FROM arrays WHERE id = 3; v[2] := 5; INSERT INTO arrays SELECT 100, v; END $$; SELECT md5(x::text) FROM arrays ORDER BY id} ],
	[ 'INSERT that returns', 'INSERT INTO empty SELECT * FROM items WHERE id < 300 RETURNING id, length(a); DO $$ DECLARE v int; BEGIN INSERT INTO empty SELECT * FROM items WHERE id < 3 RETURNING id INTO v; END $$' ],
	[ 'ON CONFLICT', 'CREATE UNIQUE INDEX ON empty (n); INSERT INTO empty SELECT id, a, n % 50, b, c FROM items WHERE id < 300 ON CONFLICT (n) DO UPDATE SET a = excluded.a || empty.a; SELECT id, n, length(a), md5(a) FROM empty ORDER BY n' ],
	[ 'CTE', 'WITH i AS (INSERT INTO empty SELECT * FROM items WHERE id < 300 RETURNING *) SELECT id, md5(a) FROM i WHERE id < 10; SELECT count(*) FROM empty' ],
	[ 'rows that change meanwhile', 'UPDATE items SET a = NULL WHERE id < 50; UPDATE items SET n = n + 1 WHERE id < 100; COPY (SELECT * FROM items ORDER BY id) TO STDOUT; DELETE FROM items WHERE id < 70; SELECT * FROM items WHERE id < 200 ORDER BY id' ],
	[ 'temporary', 'CREATE TEMP TABLE t AS SELECT * FROM items WHERE id < 300; COPY t TO STDOUT; SELECT * FROM t; CREATE TABLE made AS SELECT * FROM t; SELECT count(*) FROM made' ],
	[ 'locks', q{DECLARE c CURSOR FOR SELECT * FROM items; FETCH 200 FROM c; SELECT relation::regclass::text, mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384 ORDER BY 1, 2; COPY parts_1 TO STDOUT;
		SELECT relation::regclass::text, mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation >= 16384 ORDER BY 1, 2} ],
	[ 'savepoints', q{SAVEPOINT s; SELECT * FROM damaged; ROLLBACK TO s; COPY damaged TO STDOUT; ROLLBACK TO s; DO $$ BEGIN COPY damaged TO 'FILE'; EXCEPTION WHEN data_corrupted THEN RAISE NOTICE '%', SQLERRM; END $$; COPY items TO STDOUT} ],
	[ 'row security', 'GRANT SELECT ON items TO toast_user; ALTER TABLE items ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON items USING (id < 300); SET ROLE toast_user; COPY items TO STDOUT' ],
	[ 'parallel', "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 2; SELECT $sums FROM items; CREATE TABLE made AS SELECT * FROM items; SELECT $sums FROM made; SELECT sum(length(a)) FROM (SELECT a FROM items OFFSET 0) i" ],
	[ 'catalogs', 'SELECT rulename, length(ev_action::text) FROM pg_rewrite ORDER BY oid; COPY pg_rewrite (rulename, ev_action) TO STDOUT' ],
	[ 'REINDEX', q{SELECT reltoastrelid::regclass::text AS toast FROM pg_class WHERE relname = 'items' \gset
		REINDEX TABLE :toast; COPY items TO STDOUT; CLUSTER items USING items_id; COPY items TO STDOUT; TRUNCATE items; COPY items TO STDOUT} ],
);

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("toast_$method", $method, conf => q{
		enable_hashjoin = off
		enable_mergejoin = off
		enable_bitmapscan = off
		max_parallel_workers_per_gather = 0
	});
	my $lz4 = $node->safe_psql('postgres', "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'") eq 't' ? 'lz4' : 'pglz';
	$node->safe_psql('postgres', qq{
		CREATE EXTENSION pg_surgery;
		CREATE ROLE toast_user;
		CREATE FUNCTION noise(i int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS \$\$ SELECT string_agg(md5(i || ' ' || j), '') FROM generate_series(1, n) j \$\$;

		-- New versions of rows are on the page of the old ones, so that values
		-- are in another order than rows.
		CREATE TABLE items (id int, a text STORAGE EXTERNAL, n int, b text, c text COMPRESSION $lz4) WITH (fillfactor = 30);
		CREATE INDEX items_id ON items (id);
		INSERT INTO items SELECT i, NULL, 1 + i * 7 % 1200, NULL, NULL FROM generate_series(1, 1200) i;
		UPDATE items SET
			a = CASE items.id % 9 WHEN 0 THEN NULL WHEN 1 THEN 'inline' ELSE noise(items.id, 128) END,
			b = CASE items.id % 5 WHEN 0 THEN repeat('y', 9000) WHEN 1 THEN noise(items.id, 70) || repeat('z', 3000) ELSE 'short' END,
			c = CASE items.id % 11 WHEN 0 THEN noise(items.id, 80) || repeat('z', 2000) END
			FROM (SELECT id FROM items ORDER BY hashint4(id) OFFSET 0) i WHERE i.id = items.id;
		VACUUM items;
		UPDATE items SET n = n WHERE id % 4 = 0;
		CREATE TABLE empty (LIKE items INCLUDING STORAGE);
		CREATE TABLE numbered (id serial, a text);
		CREATE SEQUENCE counter;
		CREATE TABLE parts (id int, a text STORAGE EXTERNAL) PARTITION BY HASH (id);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		INSERT INTO parts SELECT id, noise(-id, 128) FROM items WHERE id < 600 ORDER BY hashint4(id);
		CREATE INDEX ON parts (id);
		CREATE TABLE base (id int, a text STORAGE EXTERNAL);
		INSERT INTO base SELECT id, noise(-id, 80) FROM items WHERE id < 200;
		CREATE TABLE derived () INHERITS (base);
		INSERT INTO derived SELECT id, noise(-id, 128) FROM items WHERE id < 300;
		CREATE MATERIALIZED VIEW viewed AS SELECT * FROM items;
		CREATE TABLE large (v text STORAGE EXTERNAL);
		INSERT INTO large SELECT noise(1, 40000);
		CREATE TABLE damaged (id int, a text STORAGE EXTERNAL);
		INSERT INTO damaged SELECT id, noise(-id, 128) FROM items ORDER BY hashint4(id);
		CREATE TABLE few AS SELECT id, a, b FROM items WHERE id < 20;
		CREATE TABLE arrays AS SELECT i AS id, (SELECT array_agg(j * i) FROM generate_series(1, 2000) j) AS x FROM generate_series(1, 50) i;
		SELECT reltoastrelid::regclass::text AS toast FROM pg_class WHERE relname = 'damaged' \\gset
		SELECT pg_column_toast_chunk_id(a) AS value FROM damaged WHERE id = 510 \\gset
		SELECT heap_force_kill(:'toast', array_agg(ctid)) FROM :toast WHERE chunk_id = :value AND chunk_seq = 1;
		VACUUM (ANALYZE);
		CHECKPOINT});

	# Output of a script, and what is looked up ahead, how often in vain, and how
	# many pages are read by somebody who waits.
	my $run = sub {
		my ($script, $settings) = @_;

		unlink $file;
		$script =~ s/FILE/$file/g;
		my ($output, $errors) = run_cold($node, $script,
			before => qq{
			\\set ON_ERROR_ROLLBACK off
			$settings;
			SELECT FROM pg_stat_force_next_flush();
			SELECT FROM aio_stat_reset()},
			after => q{
			SELECT FROM pg_stat_force_next_flush();
			SELECT 'counts', sum(started) FILTER (WHERE kind = 'lookup'), sum(completed_inline) FILTER (WHERE kind = 'read')
				FROM pg_stat_aio WHERE backend_type = 'client backend'});
		$output =~ s/^counts\|(\d*)\|(\d*)\n?\z//m or die "no counts: $output $errors";
		my ($lookups, $waits) = ($1 || 0, $2 || 0);
		return ($output . "\n" . $errors . "\n" . (-e $file ? slurp_file($file) : ''), $lookups, $waits);
	};

	# Thousands of values are too much to print if they differ.
	my $same = sub {
		my ($got, $wanted, $name) = @_;
		ok($got eq $wanted, $name) and return;
		my $i = 0;
		$i++ while $i < length $got && $i < length $wanted && substr($got, $i, 1) eq substr($wanted, $i, 1);
		diag("at $i: " . substr($got, $i, 300) . ' instead of ' . substr($wanted, $i, 300));
	};
	my $ahead = 'SET aio.lookup_ahead = 64';
	my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
	my @forced = $can_force ? ("$ahead; SET aio.debug_lookups = 7", "$ahead; SET aio.debug_lookups = 64") : ();

	foreach my $case ($method eq $first ? @cold : @cold[0 .. 3])
	{
		my ($what, $script) = @$case;
		my ($wanted, $lookups, $waits) = $run->($script, 'SET aio.lookup_ahead = 0');
		is($lookups, 0, "$method, $what: nothing is looked up ahead if that is switched off");
		my ($got, $ours, $left) = $run->($script, $ahead);
		$same->($got, $wanted, "$method, $what: looked up ahead");
		cmp_ok($ours, '>', 50, "$method, $what: something is looked up");
		cmp_ok(2 * $left, '<', $waits, "$method, $what: fewer pages are waited for");
		foreach my $settings ('SET aio.lookup_ahead = 1', 'SET aio.lookup_ahead = 7', 'SET aio.lookup_ahead = 1000', @forced)
		{
			($got) = $run->($script, $settings);
			$same->($got, $wanted, "$method, $what: $settings");
		}
	}

	next if $method ne $first;
	foreach my $case (@others)
	{
		my ($what, $script) = @$case;
		my ($wanted) = $run->($script, 'SET aio.lookup_ahead = 0');
		foreach my $settings ($ahead, 'SET aio.lookup_ahead = 3', @forced)
		{
			my ($got) = $run->($script, $settings);
			$same->($got, $wanted, "$method, $what: $settings");
		}
	}

	# What is in memory is not looked up.
	is($node->safe_psql('postgres', qq{
		SELECT count(*) FROM (SELECT a || b FROM few OFFSET 0) f;
		COPY few TO '$file';
		SELECT FROM pg_stat_force_next_flush();
			SELECT FROM aio_stat_reset();
		COPY few TO '$file';
		COPY (SELECT * FROM few) TO '$file';
		SELECT FROM pg_stat_force_next_flush();
		SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'}) =~ s/.*\n//sr, 0,
		"$method: nothing is looked up in memory");

	# A statement that is cancelled while it looks ahead, wherever that is.
	my ($wanted) = $run->(q{COPY items TO 'FILE'}, 'SET aio.lookup_ahead = 0');
	foreach my $timeout (1 .. 15)
	{
		$node->psql('postgres', qq{
			SELECT FROM pg_buffercache_evict_all();
			SET statement_timeout = ${\(2 * $timeout)};
			COPY items TO '$file';
			SELECT * FROM items}, on_error_stop => 0);
	}
	my ($got) = $run->(q{COPY items TO 'FILE'}, $ahead);
	$same->($got, $wanted, "$method: after statements that were cancelled");

	# A dump, and tables that go meanwhile.
	my $dump = sub {
		my ($settings) = @_;
		$node->safe_psql('postgres', 'SELECT FROM pg_buffercache_evict_all()');
		local $ENV{PGOPTIONS} = "-c aio.lookup_ahead=$settings";
		$node->command_ok([ 'pg_dump', '--restrict-key=test', '-f', $file, '-T', 'damaged', '-d', $node->connstr('postgres') ], "$method: dump, $settings");
		return slurp_file($file);
	};
	my $stock = $dump->(0);
	$same->($dump->($_), $stock, "$method: dump, equal, $_") foreach 7, 64;
	my $session = $node->background_psql('postgres');
	$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT * FROM items; SELECT FROM pg_buffercache_evict_all(); MOVE 10 IN c; COPY parts_1 TO STDOUT');
	$node->safe_psql('postgres', 'VACUUM FULL parts_2; DROP TABLE parts_2; VACUUM items');
	like($session->query(q{SELECT count(*) FROM parts_1}), qr/^\d+$/, "$method: other tables go meanwhile");
	$session->quit;

	# Catalogs that all databases share are locked as such.
	$node->safe_psql('postgres', q{
		DO $$
		BEGIN
			FOR i IN 1 .. 20 LOOP
				EXECUTE format('CREATE ROLE shared_%s', i);
				EXECUTE format('COMMENT ON ROLE shared_%s IS %L', i, (SELECT string_agg(md5(j::text), '') FROM generate_series(1, 250) j));
			END LOOP;
		END $$;
		SELECT FROM pg_buffercache_evict_all()});
	is( $node->safe_psql('postgres', "$_; SELECT count(*), min(length(description)) FROM pg_shdescription WHERE classoid = 'pg_authid'::regclass"),
		'20|8000', "$method: values of a shared catalog, $_")
	  foreach $ahead, @forced;
	$node->safe_psql('postgres', join ';', map { "DROP ROLE shared_$_" } 1 .. 20);
	check_log($node, $method);

	# Pages of a large value are read together, if there is memory for many of them.
	$node->append_conf('postgresql.conf', 'shared_buffers = 64MB');
	$node->restart;
	my ($ios) = $node->safe_psql('postgres', qq{
		SELECT FROM pg_buffercache_evict_all();
		SELECT md5(v) FROM large WHERE ctid = '(7,7)';
		SELECT FROM pg_stat_force_next_flush();
		SELECT FROM aio_stat_reset();
		SELECT md5(v) FROM large;
		SELECT FROM pg_stat_force_next_flush();
		SELECT sum(started) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'read'}) =~ /(\d+)$/;
	my $pages = $node->safe_psql('postgres', "SELECT pg_relation_size(reltoastrelid) / 8192 FROM pg_class WHERE relname = 'large'");
	cmp_ok(2 * $ios, '<', $pages, "$method: a large value is read by few I/Os");
	$node->stop;
}

done_testing();
