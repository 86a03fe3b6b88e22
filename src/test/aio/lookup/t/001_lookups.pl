
# Copyright (c) 2026, the pgawait authors

# Lookups ahead of need: rows are those of a server that does not look ahead,
# in the same order, and so are errors and what is left behind; pages are read
# ahead where somebody would wait for them, and not otherwise.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

# of one worker, though two are planned, so that its rows come in their order
my $worker = 'SET max_parallel_workers_per_gather = 2; SET max_parallel_workers = 1; SET parallel_leader_participation = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';

my @joins = (
	[ 'inner', 'SELECT k.n, i.id, i.pad FROM keys k JOIN items i ON i.a = k.a' ],
	[ 'left', 'SELECT k.n, i.id, i.pad FROM keys k LEFT JOIN items i ON i.a = k.a' ],
	[ 'semi', 'SELECT k.n FROM keys k WHERE EXISTS (SELECT FROM items i WHERE i.a = k.a AND length(i.pad) > 10)' ],
	[ 'anti', 'SELECT k.n FROM keys k WHERE NOT EXISTS (SELECT FROM items i WHERE i.a = k.a AND length(i.pad) > 10)' ],
	[ 'index-only', 'SELECT k.n, i.a FROM keys k JOIN items i ON i.a = k.a' ],
	[ 'two keys', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.b = k.b AND i.a > k.a - 100000' ],
	[ 'hash index', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.h = k.a' ],
	[ 'gist', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.p <@ k.x' ],
	[ 'spgist', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.q <@ k.x' ],
	[ 'two joins', 'SELECT k.n, i.id, j.id FROM keys k JOIN items i ON i.a = k.a JOIN items j ON j.b = i.b' ],
	[ 'partitions', 'SELECT k.n, i.id FROM keys k JOIN parts i ON i.a = k.a' ],
	[ 'lateral', 'SELECT k.n, i.id FROM keys k, LATERAL (SELECT id FROM items i WHERE i.a >= k.a ORDER BY i.a LIMIT 2) i' ],
	[ 'aggregate', 'SELECT k.n, i.s FROM keys k, LATERAL (SELECT sum(i.id) s FROM items i WHERE i.b = k.b) i' ],
	[ 'array', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = ANY (ARRAY[k.a, k.a + 1])' ],
	[ 'two searches', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = ANY (ARRAY[k.a, k.b])' ],
	[ 'skip scan', 'SELECT k.n, s.a, s.c FROM keys k JOIN skips s ON s.a = k.a', 'SET enable_seqscan = off' ],
	[ 'any', 'SELECT i.id, i.pad FROM items i WHERE i.a = ANY (ARRAY(SELECT a FROM keys WHERE a > 0))', 'SET enable_seqscan = off' ],
	[ 'any, backward', 'SELECT i.id, i.pad FROM items i WHERE i.a = ANY (ARRAY(SELECT a FROM keys WHERE a > 0)) ORDER BY i.a DESC', 'SET enable_seqscan = off; SET enable_sort = off' ],
	[ 'any, index-only', 'SELECT i.a FROM items i WHERE i.a = ANY (ARRAY(SELECT a FROM keys WHERE a > 0))', 'SET enable_seqscan = off' ],
	[ 'any, bitmap', 'SELECT i.id, i.pad FROM items i WHERE i.a = ANY (ARRAY(SELECT a FROM keys WHERE a > 0)) AND i.b >= 0', 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on' ],
	[ 'order by', 'SELECT i.id, i.pad FROM items i WHERE i.a BETWEEN 1000 AND 30000 ORDER BY i.a', 'SET enable_seqscan = off; SET enable_sort = off' ],
	[ 'backward', 'SELECT i.id, i.pad FROM items i WHERE i.a BETWEEN 1000 AND 30000 ORDER BY i.a DESC', 'SET enable_seqscan = off; SET enable_sort = off' ],
	[ 'merge join', 'SELECT i.id, j.id FROM items i JOIN items j ON i.a = j.a WHERE i.a < 20000', 'SET enable_nestloop = off; SET enable_mergejoin = on; SET enable_sort = off' ],
	[ 'memoize', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a', 'SET enable_memoize = on' ],
	[ 'bitmap', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a AND i.b >= 0', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = on' ],
	[ 'scalar', 'SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a LIMIT 1) FROM keys k' ],
	[ 'exists in the output', 'SELECT k.n, EXISTS (SELECT FROM items i WHERE i.a = k.a AND i.b <> k.n) FROM keys k' ],
	[ 'subquery of a join', 'SELECT k.n, (SELECT max(i.id) FROM items i WHERE i.a = k.a) FROM keys k JOIN keys j ON j.n = k.n', 'SET enable_hashjoin = on' ],
	[ 'where', 'SELECT k.n FROM keys k WHERE (SELECT max(i.id) FROM items i WHERE i.a = k.a) > 5000' ],
	[ 'where, whole rows', 'SELECT k.* FROM keys k WHERE (SELECT max(i.id) FROM items i WHERE i.a = k.a) > k.n' ],
	[ 'filter of a join', 'SELECT k.n FROM keys k JOIN keys j ON j.n = k.n AND j.n < (SELECT max(i.id) FROM items i WHERE i.a = k.a)', 'SET enable_hashjoin = on' ],
	[ 'limit', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a LIMIT 400' ],
	[ 'a worker', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a', $worker ],
	[ 'a worker, limit', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a LIMIT 400', $worker ],
	[ 'row values', 'SELECT k.n, i.id FROM keys k, LATERAL (SELECT id FROM items i WHERE (i.a, i.id) > (k.a, 0) ORDER BY i.a, i.id LIMIT 1) i' ],
);

my $plan = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;'
  . 'SET enable_bitmapscan = off; SET enable_seqscan = on; SET max_parallel_workers_per_gather = 0; SET enable_material = off;';

my ($first) = grep { !$methods{$_} } qw(io_uring libaio worker);

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("lookup_$method", $method, conf => 'shared_buffers = 2MB');
	$node->safe_psql('postgres', q{
		CREATE EXTENSION amcheck;
		CREATE TABLE items (id int, a int, b int, h int, p point, q point, pad text);
		INSERT INTO items SELECT i, n, n / 3, n, point(n, n), point(n, n), repeat('x', 60) || i
			FROM (SELECT i, hashint4(i) & 131071 AS n FROM generate_series(1, 40000) i) x;
		CREATE INDEX items_a ON items (a);
		CREATE INDEX items_b ON items (b);
		CREATE INDEX items_h ON items USING hash (h);
		CREATE INDEX items_p ON items USING gist (p);
		CREATE INDEX items_q ON items USING spgist (q);
		CREATE TABLE skips AS SELECT id & 3 AS c, a FROM items;
		CREATE INDEX skips_c_a ON skips (c, a) WITH (fillfactor = 10);
		CREATE TABLE parts (id int, a int) PARTITION BY RANGE (a);
		SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)', i, i * 32768, (i + 1) * 32768)
			FROM generate_series(0, 3) i \gexec
		INSERT INTO parts SELECT id, a FROM items;
		CREATE INDEX parts_a ON parts (a);
		CREATE TABLE keys AS SELECT n, box(point(a, a), point(a + 3, a + 3)) AS x, CASE WHEN n % 50 = 0 THEN NULL WHEN n % 7 = 0 THEN -n ELSE a END AS a, b
			FROM (SELECT row_number() OVER (ORDER BY hashint4(id + 7)) AS n, a, b FROM items WHERE id % 20 = 0) x;
		VACUUM (FREEZE, ANALYZE);
		UPDATE items SET pad = pad || 'y' WHERE id % 97 = 0;
		CHECKPOINT});

	# A leaf that is not in memory is read while nobody waits for it.
	is($node->safe_psql('postgres', q{
			CREATE EXTENSION test_aio_lookup;
			SELECT FROM pg_buffercache_evict_all();
			SELECT probe_steps('items_a', 60000, 3::int2), probe_steps('items_a', 60000, 3::int2), probe_steps('items_h', 60000, 1::int2)}),
		'2|1|1', "$method: a probe of a btree takes two steps, if its leaf is not in memory");

	# A statement's rows, and what the session counted meanwhile; cold.
	my $run = sub {
		my ($statement, $ahead, $settings) = @_;
		my ($rows, $errors);
		$node->psql('postgres', qq{
			CHECKPOINT;
			SELECT FROM pg_buffercache_evict_all();
			$plan $settings;
			SET aio.lookup_ahead = $ahead;
			$statement}, stdout => \$rows, stderr => \$errors);
		return { rows => $rows, errors => $errors =~ s/^psql:<stdin>:\d+: //mgr };
	};

	# What all sessions have counted.
	my $lookups = sub {
		my $counts = $node->safe_psql('postgres', q{
			SELECT sum(started), sum(completed_inline), sum(cancelled), sum(waited) FROM pg_stat_aio
				WHERE backend_type IN ('client backend', 'background worker') AND kind = 'lookup'});
		my ($started, $inline, $cancelled, $waited) = split /\|/, $counts || '0|0|0|0';
		return { started => $started, inline => $inline, cancelled => $cancelled, waited => $waited };
	};

	# all with one method
	foreach my $join ($method eq $first ? @joins : @joins[0 .. 5])
	{
		my ($what, $statement, $settings) = @$join;
		my $without = $run->($statement, 0, $settings // '');
		is($without->{errors}, '', "$method, $what: no error");
		cmp_ok(length($without->{rows}), '>', 100, "$method, $what: there are rows");
		like($run->("EXPLAIN $statement", 0, $settings)->{rows}, qr/Gather/, "$method, $what: the plan is parallel") if $what =~ /worker/;
		foreach my $ahead (1, 7, 64)
		{
			my $with = $run->($statement, $ahead, $settings // '');
			is($with->{rows}, $without->{rows}, "$method, $what: the same rows, $ahead ahead");
		}
		my $before = $lookups->();
		$run->($statement, 64, $settings // '');
		my $after = $lookups->();
		my $started = $after->{started} - $before->{started};
		if ($what =~ /^(row values|.*limit)$/)
		{
			cmp_ok($after->{cancelled} - $before->{cancelled}, '<=', 0.05 * 400, "$method, $what: little is looked up in vain");
		}
		else
		{
			cmp_ok($started, '>', 100, "$method, $what: lookups are made ahead");
			# one at a time would have the worker wait for nearly all
			cmp_ok($after->{waited} - $before->{waited}, '<', $started, "$method, $what: most before they are needed") if $what eq 'a worker';
		}
	}

	# a row that fails, after others: all rows before it have been joined
	$node->safe_psql('postgres', 'CREATE TABLE joined (n int); CREATE SEQUENCE s');
	my $failing = q{CREATE FUNCTION note(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'joined %', $1; RETURN $1; END $$};
	$node->safe_psql('postgres', $failing);
	my $error = 'SELECT note(k.n::int) FROM (SELECT n, a, 1 / (n - 900) AS x FROM keys OFFSET 0) k JOIN items i ON i.a = k.a WHERE k.x IS NOT NULL';
	my $without = $run->($error, 0, '');
	like($without->{errors}, qr/division by zero/, "$method: a row fails");
	is($run->($error, 64, '')->{errors}, $without->{errors}, "$method: it fails after the same rows have been joined");
	$without = $run->("$error LIMIT 500", 0, '');
	is_deeply($run->("$error LIMIT 500", 64, ''), $without, "$method: a row that is not needed does not fail");

	# functions that leave something are called when it is their turn
	my $volatile = q{SELECT k.s, k.n, i.id FROM (SELECT nextval('s') - currval('s') AS s, n, a FROM keys OFFSET 0) k JOIN items i ON i.a = k.a LIMIT 700};
	$node->safe_psql('postgres', "SELECT setval('s', 1)");
	$run->($volatile, 0, '');
	my $value = $node->safe_psql('postgres', "SELECT last_value, setval('s', 1) FROM s");
	$run->($volatile, 64, '');
	is($node->safe_psql('postgres', "SELECT last_value, setval('s', 1) FROM s"), $value, "$method: no row calls nextval() ahead");

	# a probe is not a scan
	my $scans = sub {
		my ($ahead) = @_;
		my $before = $node->safe_psql('postgres', "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'items_a'");
		$run->($joins[0][1], $ahead, '');
		return $node->safe_psql('postgres', "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'items_a'") - $before;
	};
	is($scans->(64), $scans->(0), "$method: probes are not counted as scans");

	# a cursor that stops, goes on, and is closed
	my $cursor = 'BEGIN; DECLARE c CURSOR FOR SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a; FETCH 100 FROM c; FETCH 900 FROM c; MOVE 100 FROM c; FETCH 1 FROM c; COMMIT';
	is_deeply($run->($cursor, 64, ''), $run->($cursor, 0, ''), "$method: a cursor");

	# the rest differs in nothing between methods
	if ($method ne $first)
	{
		$node->stop;
		next;
	}

	# CLUSTER in the order of an index that cannot be sorted by
	my $before = $lookups->();
	my @clustered = map { $run->('BEGIN; CLUSTER items USING items_p; SELECT md5(string_agg(id::text, \',\' ORDER BY ctid)) FROM items; ROLLBACK', $_, '') } (0, 64);
	is_deeply($clustered[1], $clustered[0], "$method: CLUSTER");
	cmp_ok($lookups->()->{started} - $before->{started}, '>', 100, "$method: CLUSTER looks ahead");

	# joins that stop at the first match do not read all ten rows of a key
	$node->safe_psql('postgres', q{
		CREATE TABLE many AS SELECT i % 2000 AS key, repeat('x', 1000) AS pad FROM generate_series(1::bigint, 20000) i ORDER BY hashint8(i);
		CREATE INDEX ON many (key);
		VACUUM (FREEZE, ANALYZE) many});
	foreach my $exists ('EXISTS', 'NOT EXISTS')
	{
		my ($few, $ahead) = map {
			$run->(qq{SELECT count(*) FROM keys k WHERE $exists (SELECT FROM many m WHERE m.key = k.n AND m.pad IS NOT NULL);
				SELECT FROM pg_stat_force_next_flush();
				SELECT sum(reads) FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'relation'}, $_, '')->{rows} =~ s/.*\n//sr
		} (0, 64);
		cmp_ok($ahead, '<', 2 * $few, "$method: $exists does not read all rows");
		cmp_ok($few, '>', 1000, "$method: $exists reads");
	}

	# statements that change what they read
	foreach my $statement (
		'UPDATE items i SET b = i.b + 1 FROM keys k WHERE i.a = k.a',
		'UPDATE items i SET a = i.a + 1 FROM keys k WHERE i.a = k.a',
		'DELETE FROM items i USING keys k WHERE i.a = k.a AND k.n % 3 = 0')
	{
		my @results = map {
			my $result = $run->("BEGIN; $statement; SELECT md5(string_agg(i::text, ',' ORDER BY id, a)) FROM items i; "
				  . "SELECT bt_index_check('items_a', true), bt_index_check('items_b', true); ROLLBACK", $_, '');
			$result;
		} (0, 64);
		is_deeply($results[1], $results[0], "$method: $statement");
	}
	$node->stop;
}
done_testing();
