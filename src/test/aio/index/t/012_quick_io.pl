# Copyright (c) 2026, the pgawait authors

# Reads and writes that are quick are not awaited, and those that are not are.
# Limits are used that no read exceeds, or falls below, on any machine.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my $direct = direct_io_works();
my $has_debug = check_pg_config('#define USE_ASSERT_CHECKING 1');

# one whose I/O other processes complete, and one where this process does
my ($own) = grep { !defined $methods{$_} } qw(io_uring libaio);
my @tested = grep { defined } ($has_debug ? 'worker' : undef), $own;
plan skip_all => 'server is built without assertions, and so without aio.debug_queue' if !@tested;
foreach my $method (@tested)
{
	subtest $method => sub { check($method) };
}
done_testing();

sub check
{
	my ($method) = @_;
	my $node = PostgreSQL::Test::Cluster->new($method);

	$node->init;
	$node->append_conf('postgresql.conf', "io_method = $method\nshared_buffers = 8MB\nbgwriter_lru_maxpages = 0\ndebug_io_direct = '@{[ $direct ? 'data' : '' ]}'");
	# else who waits reads what no worker has begun to read
	$node->append_conf('postgresql.conf', 'aio.debug_queue = on') if $has_debug;
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION aio;
		CREATE TABLE t AS SELECT md5(n::text) AS a, md5((-n)::text) AS b FROM generate_series(1, 100000) n;
		CREATE INDEX t_a ON t (a);
		CREATE INDEX t_b ON t (b);
	});

	foreach my $memory (0, '64MB')
	{
		my $session = $node->background_psql('postgres');

		$session->query_safe("SET aio.index_batch_memory = '$memory'");
		# for the collected entries, pages are read by a stream
		my $what = $memory eq '0' ? 'tasks' : 'stream';

		$session->query_safe('SET aio.quick_io_time = 0');
		my ($read, $inline) = load($session, 1);
		cmp_ok($read, '>', 1000, "$what: pages are read");
		cmp_ok($inline, '<', $read / 4, "$what: and awaited, if no read is quick");

		# below any time that a read takes
		$session->query_safe("SET aio.quick_io_time = '0.0001us'");
		load($session, 2) for 1 .. 2;
		($read, $inline) = load($session, 3);
		cmp_ok($inline, '<', $read / 4, "$what: they are awaited if all are slow");

		# above; the first ones are tries
		$session->query_safe("SET aio.quick_io_time = '1s'");
		load($session, 4) for 1 .. 4;
		($read, $inline) = load($session, 5);
		cmp_ok($read, '>', 1000, "$what: pages are read");
		is($inline, $read, "$what: and none is awaited, if all are quick");
		is($session->query_safe('SELECT reads FROM aio_session_stats()'), 0, "$what: by no task");
		is($session->query_safe('SELECT tasks FROM aio_session_stats()'), 0, "$what: so there is none") if $what eq 'tasks';

		# there may be a time when they are not any more
		$session->query_safe("SET aio.quick_io_time = '0.0001us'");
		load($session, 6);
		($read, $inline) = load($session, 7);
		cmp_ok($inline, '<', $read / 4, "$what: they are awaited again once they are slow");
		$session->quit;

		# another one need not find out
		$session = $node->background_psql('postgres');
		$session->query_safe("SET aio.index_batch_memory = '$memory'; SET aio.quick_io_time = '1s'");
		($read, $inline) = load($session, 8);
		cmp_ok($read, '>', 1000, "$what: another session reads pages");
		is($inline, $read, "$what: and awaits none, where it is known that they are quick");
		$session->quit;
		$session = $node->background_psql('postgres');
		$session->query_safe("SET aio.index_batch_memory = '$memory'; SET aio.quick_io_time = '0.0001us'");
		($read, $inline) = load($session, 9);
		cmp_ok($inline, '<', $read / 4, "$what: but for it they are not");
		$session->quit;
	}

	# pages that are looked up ahead of need
	my $session = $node->background_psql('postgres');
	my $join = 'SELECT count(t.b) FROM k JOIN t USING (a)';

	$session->query_safe('CREATE TABLE k AS SELECT md5(n::text) AS a FROM generate_series(1, 100000, 7) n; ANALYZE k, t');
	$session->query_safe('SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_memoize = off; SET aio.quick_io_time = 0');
	my ($read, $inline) = reads_of($session, $join);
	cmp_ok($read, '>', 1000, 'lookups: pages are read');
	cmp_ok($inline, '<', $read * 0.7, 'lookups: most of them ahead of need, if no read is quick');
	$session->query_safe("SET aio.quick_io_time = '1s'");
	reads_of($session, $join) for 1 .. 2;
	($read, $inline) = reads_of($session, $join);
	cmp_ok($read, '>', 1000, 'lookups: pages are read again');
	# but for those of k, which a stream reads
	cmp_ok($inline, '>', $read * 0.9, 'lookups: when they are needed, if all reads are quick');
	$session->query_safe('SELECT aio_session_stats_reset()');
	reads_of($session, $join);
	my $any = "SELECT count(b) FROM t WHERE a = ANY (ARRAY(SELECT md5(n::text) FROM generate_series(1, 100000, 97) n))";
	reads_of($session, $any);
	is($session->query_safe('SELECT tasks FROM aio_session_stats()'), 0, 'lookups: and nobody searches in vain for what comes later');
	$session->query_safe('SET aio.quick_io_time = 0');
	reads_of($session, $any);
	cmp_ok($session->query_safe('SELECT tasks FROM aio_session_stats()'), '>', 100, 'lookups: as somebody does if no read is quick');
	$session->quit;

	# Indexes and tables in different tablespaces: what is always in memory in
	# one of them says nothing about the other, where no read is quick.  Nothing
	# else is in either, such as catalogs, whose pages are read.
	foreach my $name (qw(warm elsewhere))
	{
		$node->safe_psql('postgres', "CREATE TABLESPACE $name LOCATION '@{[ PostgreSQL::Test::Utils::tempdir() ]}'");
	}
	$node->safe_psql('postgres', q{
		CREATE TABLE mixed (n serial, a text, b text, PRIMARY KEY (n) USING INDEX TABLESPACE warm);
		INSERT INTO mixed (a, b) SELECT md5(n::text), md5((-n)::text) FROM generate_series(1, 50000) n;
		CREATE INDEX ON mixed (a) TABLESPACE elsewhere;
		CREATE INDEX ON mixed (b) TABLESPACE elsewhere;
		CREATE TABLE far TABLESPACE elsewhere AS SELECT n, repeat('x', 1000) AS filler FROM generate_series(1, 20000) n;
		CREATE INDEX ON far (n) TABLESPACE warm;
		VACUUM ANALYZE far;
	});
	my @rows = map { "INSERT INTO mixed (a, b) VALUES (md5('x$_'), md5('y$_'))" } 1 .. 220;
	$node->safe_psql('postgres', join(';', splice(@rows, 0, 20)));
	$session = $node->background_psql('postgres');
	$session->query_safe("SET aio.quick_io_time = '0.0001us'; SELECT aio_session_stats_reset()");
	$session->query_safe($_) foreach @rows;
	cmp_ok($session->query_safe('SELECT tasks FROM aio_session_stats()'), '>', 200, 'two tablespaces: rows have tasks, as some of their indexes are slow');
	$session->quit;

	my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off';
	$node->safe_psql('postgres', "$settings; SELECT count(*) FROM far WHERE n > 0");
	$session = $node->background_psql('postgres');
	$session->query_safe("$settings; SET aio.quick_io_time = '0.0001us'; SELECT aio_session_stats_reset()");
	$session->query_safe('SELECT count(filler) FROM far WHERE n = ANY (ARRAY(SELECT generate_series(1, 20000, 97)))');
	cmp_ok($session->query_safe('SELECT tasks FROM aio_session_stats()'), '>', 20, 'two tablespaces: keys are searched ahead, as the table is slow');
	$session->quit;

	if ($direct)
	{
		my $session = $node->background_psql('postgres');

		$session->query_safe("SET aio.quick_io_time = 0; SELECT aio_stat_reset()");
		load($session, 10);
		cmp_ok(writes($session, 'started'), '>', 100, 'there are writes');
		cmp_ok(writes($session, 'completed_inline'), '<', writes($session, 'started') / 4, 'and they are not waited for');
		$session->query_safe("SET aio.quick_io_time = '1s'");
		# where workers write, and nobody knows how long that takes, a try comes late
		for (1 .. 100)
		{
			load($session, 11);
			last if writes($session, 'started') > 3000;
		}
		$session->query_safe('SELECT aio_stat_reset()');
		load($session, 12);
		cmp_ok(writes($session, 'started'), '>', 100, 'there are writes again');
		is(writes($session, 'completed_inline'), writes($session, 'started'), 'which are waited for if they are quick');
		$session->quit;
	}

	is($node->safe_psql('postgres', q{
		CREATE EXTENSION amcheck;
		SELECT bt_index_check(c, true) FROM unnest('{t_a,t_b}'::regclass[]) c;
		SELECT count(*) > 100000 FROM t}), "\n\nt", 'the indexes are sound');
	$node->stop;
}

# Insert rows; how many reads did that take, and how many were not awaited?
sub load
{
	my ($session, $seed) = @_;

	return reads_of($session, "SELECT aio_session_stats_reset() \\g /dev/null\nINSERT INTO t SELECT md5(n || 'a' || $seed), md5(n || 'b' || $seed) FROM generate_series(1, 4000) n");
}

# The same of any statement.
sub reads_of
{
	my ($session, $statement) = @_;

	my $sum = "SELECT started, completed_inline FROM pg_stat_aio WHERE kind = 'read' AND backend_type = 'client backend'";
	my @before = split /\|/, stat_of($session, $sum) || '0|0';
	$session->query_safe($statement);
	my @after = split /\|/, stat_of($session, $sum);
	return ($after[0] - $before[0], $after[1] - $before[1]);
}

sub writes
{
	my ($session, $column) = @_;

	return stat_of($session, "SELECT sum($column) FROM pg_stat_aio WHERE kind = 'write' AND backend_type = 'client backend'");
}

sub stat_of
{
	my ($session, $query) = @_;

	$session->query_safe('SELECT pg_stat_force_next_flush()');
	return $session->query_safe($query);
}
