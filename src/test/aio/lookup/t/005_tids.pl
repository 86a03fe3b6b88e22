
# Copyright (c) 2026, the pgawait authors

# Rows that are looked up by their TIDs: pages are read ahead where somebody
# would wait for them, and rows and errors are those of a server that looks up
# nothing ahead.

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

my $rest = 'SELECT count(*), sum(hashtext(t::text)) FROM wide t;';
my $refresh = "SET enable_hashjoin = on; SET enable_mergejoin = on; UPDATE source SET n = n + 1 WHERE id % 20 = 0; REFRESH MATERIALIZED VIEW CONCURRENTLY view; SELECT count(*), sum(hashtext(v::text)) FROM view v; SELECT sum(v.n) FROM source s JOIN view v USING (id)";

# Each is executed in a transaction that is rolled back; those in 'cold' look up
# what is not in memory.
my @cold = (
	[ 'join', 'SELECT k.n, t.id, hashtext(t::text) FROM tids k JOIN wide t ON t.ctid = k.tid' ],
	[ 'outer join', 'SELECT k.n, t.id FROM tids k LEFT JOIN wide t ON k.tid = t.ctid AND t.id % 3 = 0' ],
	[ 'delete', "DELETE FROM wide WHERE ctid = ANY (SELECT tid FROM tids); $rest" ],
	[ 'update', "UPDATE wide t SET n = k.n FROM tids k WHERE t.ctid = k.tid RETURNING t.id, t.n; $rest" ],
	[ 'subquery', 'SELECT n, (SELECT id FROM wide t WHERE t.ctid = k.tid) FROM tids k' ],
	[ 'array', 'SELECT id, hashtext(t::text) FROM wide t WHERE ctid = ANY (ARRAY(SELECT tid FROM tids))' ],
	[ 'delete by an array', "DELETE FROM wide WHERE ctid = ANY (ARRAY(SELECT tid FROM tids)) RETURNING id; $rest" ],
	[ 'refresh', $refresh ],
);
my @others = (
	[ 'limit', 'SELECT id FROM wide t WHERE ctid = ANY (ARRAY(SELECT tid FROM tids)) LIMIT 300; SELECT t.id FROM tids k JOIN wide t ON t.ctid = k.tid LIMIT 300' ],
	[ 'cursor', 'DECLARE c SCROLL CURSOR FOR SELECT id FROM wide t WHERE ctid = ANY (ARRAY(SELECT tid FROM tids)); FETCH 50 FROM c; FETCH BACKWARD 20 FROM c; FETCH LAST FROM c; FETCH BACKWARD 5 FROM c; FETCH ABSOLUTE 10 FROM c; FETCH 70 FROM c' ],
	[ 'current row', 'DECLARE c CURSOR FOR SELECT id FROM wide t WHERE ctid = ANY (ARRAY(SELECT tid FROM tids)) FOR UPDATE; FETCH 50 FROM c; UPDATE wide SET n = -1 WHERE CURRENT OF c RETURNING id; MOVE 100 FROM c; DELETE FROM wide WHERE CURRENT OF c RETURNING id' ],
	[ 'past the end', q{SELECT n, id FROM (VALUES (1, '(1,1)'::tid), (2, '(99999999,1)'), (3, NULL), (4, '(0,500)'), (5, '(4294967295,65535)'), (6, '(2,2)')) k(n, tid) LEFT JOIN wide t ON t.ctid = k.tid; SELECT id FROM wide WHERE ctid = ANY ('{"(99999999,1)","(1,1)",NULL,"(0,0)","(4294967295,0)"}')} ],
	[ 'arrays of outer rows', 'SELECT k.n, t.id FROM (SELECT n, ARRAY[tid, other, NULL] AS a FROM tids WHERE n < 300) k JOIN wide t ON t.ctid = ANY (k.a)' ],
	[ 'rescanned array', 'SELECT k.n, (SELECT sum(t.id) FROM wide t WHERE ctid = ANY (ARRAY(SELECT x.tid FROM tids x WHERE x.n BETWEEN k.n AND k.n + 30))) FROM tids k WHERE n < 50' ],
	[ 'partitions', 'SELECT k.n, p.id FROM tids k JOIN parts p ON p.ctid = k.tid WHERE k.n < 200' ],
	[ 'catalog', "SELECT count(*) FROM (SELECT ctid AS tid FROM pg_proc OFFSET 0) k JOIN pg_proc p ON p.ctid = k.tid" ],
	[ 'temporary', 'CREATE TEMP TABLE t AS SELECT i FROM generate_series(1, 1000) i; SELECT count(*), sum(t.i) FROM (SELECT ctid AS tid FROM t OFFSET 0) k JOIN t ON t.ctid = k.tid; SELECT sum(i) FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t))' ],
	[ 'error', 'SELECT k.n, t.id, 1 / (k.n - 700) FROM tids k JOIN wide t ON t.ctid = k.tid' ],
);

my $reference = 'SET aio.lookup_ahead = 0;';
my @settings = ('SET aio.lookup_ahead = 64;', 'SET aio.lookup_ahead = 7;');

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("tids_$method", $method);
	my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
	push @settings, 'SET aio.debug_lookups = 7;' if $can_force && @settings == 2;
	$node->safe_psql('postgres', q{
		CREATE TABLE wide (id int, n int, pad text);
		INSERT INTO wide SELECT i, i, repeat('x', 900) FROM generate_series(1, 12000) i;
		CREATE TABLE tids AS SELECT row_number() OVER (ORDER BY hashint4(id)) AS n, ctid AS tid, lag(ctid) OVER (ORDER BY id) AS other FROM wide WHERE id % 9 = 0 ORDER BY 1;
		CREATE TABLE parts (id int, pad text) PARTITION BY RANGE (id);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (4000);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (4000) TO (100000);
		INSERT INTO parts SELECT id, pad FROM wide;
		CREATE TABLE source AS SELECT * FROM wide ORDER BY hashint4(id);
		CREATE MATERIALIZED VIEW view AS TABLE source;
		CREATE UNIQUE INDEX ON view (id);
		CREATE INDEX ON view (n);
		VACUUM (FREEZE, ANALYZE);
		CHECKPOINT});

	# Output of a script.
	my $run = sub {
		my ($script, $settings) = @_;

		# rows whose deletion has been rolled back would keep pages in memory
		$node->safe_psql('postgres', 'VACUUM (FREEZE) view');
		return join "\n", run_cold($node, $script, before => qq{
			SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
			SET max_parallel_workers_per_gather = 0;
			$settings});
	};
	my $lookups = sub { return lookups_ahead($node, @_) };

	foreach my $case ($method eq $first ? @cold : @cold[0, 6])
	{
		my ($what, $script) = @$case;
		my ($wanted, $needed) = run_and_count($node, sub { $run->($script, $reference) });
		my $before = $lookups->('started');
		cmp_ok(length($wanted), '>', 10, "$what: something is seen");
		my ($result, $read) = run_and_count($node, sub { $run->($script, $settings[0]) });
		is($result, $wanted, "$method, $what: looked up ahead");
		$node->poll_query_until('postgres', qq{
			SELECT coalesce(sum(started), 0) >= $before + 100 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'})
		  or fail("$method, $what: something is looked up");
		is_needed("$method, $what: what is looked up is needed", $read, $needed, $lookups->('started') - $before);
		is($run->($script, $_), $wanted, "$method, $what: $_") foreach @settings[ 1 .. $#settings ];
	}
	next if $method ne $first;
	foreach my $case (@others)
	{
		my ($what, $script) = @$case;
		my $wanted = $run->($script, $reference);
		cmp_ok(length($wanted), '>', 3, "$what: something is seen");
		is($run->($script, $_), $wanted, "$method, $what: $_") foreach @settings;
	}
	$node->stop;
}

done_testing();
