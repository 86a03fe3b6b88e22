# Copyright (c) 2026, the pgawait authors

# What others may do with a page while it is on its way to disk, and what they
# must wait for: an I/O worker holds up all writes in the middle.  It would hold
# up the allocation of space as well, for which loads would wait.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'server is built without injection points';
}

my $point = 'aio-worker-after-reopen';
plan skip_all => 'server is built without assertions, and so without aio.debug_queue'
  unless check_pg_config('#define USE_ASSERT_CHECKING 1');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	io_workers = 1
	aio.debug_queue = on
	aio.wal_write_ahead = 0
	debug_io_direct = data
	shared_buffers = 1MB
	io_max_concurrency = 32
	bgwriter_lru_maxpages = 0
	aio.preallocation_size = 0
	autovacuum = off
	checkpoint_timeout = 1h
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points; CREATE EXTENSION pg_buffercache; CREATE TABLE elsewhere (filler text STORAGE PLAIN)');

# Nobody can connect while the worker is held up, as that may need its reads.
# Sessions that have done the same before read by themselves.
my ($control, $actor);

sub connect_all
{
	($control, $actor) = map { $node->background_psql('postgres') } 1 .. 2;
	foreach my $session ($control, $actor)
	{
		$session->query_safe('CREATE TEMP TABLE warm (i int); INSERT INTO warm SELECT 1; UPDATE warm SET i = 1 WHERE ctid = \'(0,1)\'; TRUNCATE warm; DROP TABLE warm');
	}
	$control->query_safe("SELECT count(*) FROM pg_aios; SELECT count(*) FROM pg_stat_activity; SELECT injection_points_attach('nowhere', 'wait'); SELECT injection_points_detach('nowhere')");
}

sub quit_all
{
	$_->quit foreach ($control, $actor);
}

sub poll
{
	my ($query) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $control->query_safe($query) eq 't';
		usleep(100_000);
	}
	die "still false: $query";
}

# Create a table of 100 pages with one row each, and room for one more.  Then
# insert elsewhere, which reads nothing but needs more buffers than there are.
# Returns the first block of a write of the table in flight.
sub fill
{
	my ($table) = @_;

	$actor->query_safe("CREATE TABLE $table (id int, n int, filler text STORAGE PLAIN) WITH (fillfactor = 45)");
	my $file = $control->query_safe("SELECT pg_relation_filepath('$table')");
	$control->query_safe('CHECKPOINT');
	$actor->query_safe("INSERT INTO $table SELECT i, 0, repeat('x', 3000) FROM generate_series(1, 100) i");
	$control->query_safe("SELECT injection_points_attach('$point', 'wait')");
	$actor->query_safe("INSERT INTO elsewhere SELECT repeat('x', 3000) FROM generate_series(1, 200) i");
	my $writes = $control->query_safe("SELECT target_desc FROM pg_aios WHERE operation = 'writev' AND target_desc LIKE '%\"$file\"'");
	$writes =~ /^blocks? (\d+)/ or die "nothing of $table is in flight: $writes";
	return $1;
}

# Let the worker go on, for good.
sub release
{
	$control->query_safe("SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
}

# Start a statement that must wait for a write, let that go on, and see it end.
sub waits
{
	my ($statement, $waiter) = @_;

	$actor->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	poll("SELECT count(*) > 0 FROM pg_stat_activity WHERE $waiter AND wait_event IN ('AioIoCompletion', 'BufferIo')");
	pass("$statement waits for a write");
	release();
	$actor->query_safe('SELECT 1');
}

# A page changes while it is being written.
connect_all();
my $block = fill('t');
$actor->query_safe("SET statement_timeout = '60s'; UPDATE t SET n = 1 WHERE ctid = '($block,1)'; RESET statement_timeout");
waits('CHECKPOINT', "backend_type = 'checkpointer'");
poll("SELECT count(*) = 0 FROM pg_aios WHERE state NOT LIKE 'COMPLETED%'");
quit_all();
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT n FROM t WHERE id = $block + 1"), 1, 'the change is there after a crash');
is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM t'), '100|1', 'and all else');

# The same, and the page is not clean when its old version has been written.
connect_all();
$block = fill('again');
$actor->query_safe("UPDATE again SET n = 1 WHERE ctid = '($block,1)'");
release();
poll("SELECT count(*) = 0 FROM pg_aios WHERE state NOT LIKE 'COMPLETED%'");
is( $control->query_safe(
		"SELECT isdirty FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('again') AND relforknumber = 0 AND relblocknumber = $block"),
	't', 'a page that changed while it was written stays dirty');

# Relations whose pages are being written do not go away under them.
fill('dropped');
waits('DROP TABLE dropped', "query LIKE 'DROP%'");
fill('truncated');
waits('TRUNCATE truncated', "query LIKE 'TRUNCATE%'");

# Nor do databases.  Somebody who is not connected to it writes its pages.
$actor->query_safe("CREATE DATABASE warm; DROP DATABASE warm; CREATE DATABASE doomed");
$node->safe_psql('doomed', "CREATE TABLE t AS SELECT repeat('x', 3000) FROM generate_series(1, 200) i");
my $doomed = $control->query_safe(q{SELECT oid FROM pg_database WHERE datname = 'doomed'});
$control->query_safe("SELECT injection_points_attach('$point', 'wait')");
$actor->query_safe("INSERT INTO elsewhere SELECT repeat('x', 3000) FROM generate_series(1, 200) i");
isnt( $control->query_safe(
		"SELECT count(*) FROM pg_aios WHERE operation = 'writev' AND target_desc LIKE '%\"base/$doomed/%'"),
	0, 'pages of the other database are in flight');
waits('DROP DATABASE doomed', "query LIKE 'DROP%'");
quit_all();

# Crash in the middle.
connect_all();
fill('crash');
quit_all();
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM crash'), 100, 'rows survive a crash in the middle of writes');

$node->stop;
command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], 'checksums are right');
done_testing();
