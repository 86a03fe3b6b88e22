# Copyright (c) 2026, the pgawait authors

# pg_stat_io has the time of a wait where it has the I/O that was waited for, and
# not where there is none: neither for a read that another session has started,
# nor for the writes of VACUUM.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'server is built without assertions, and so without aio.debug_queue'
  unless check_pg_config('#define USE_ASSERT_CHECKING 1');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	io_workers = 1
	aio.debug_queue = on
	io_max_concurrency = 32
	debug_io_direct = data
	shared_buffers = 8MB
	track_io_timing = on
	autovacuum = off
	bgwriter_lru_maxpages = 0
	checkpoint_timeout = 1h
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (a int, b int);
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_b ON t (b);
	INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i;
	CREATE TABLE large AS SELECT i, repeat('x', 900) FROM generate_series(1, 20000) i;
	CHECKPOINT;
});

my $control = $node->background_psql('postgres');
my @sessions = map { $node->background_psql('postgres') } 1 .. 2;
my @pids = map { $_->query_safe('SELECT pg_backend_pid()') } @sessions;

# Is there time without I/O?  The server was built to insist that there is not,
# but others are not.
sub check
{
	my ($what) = @_;
	my $rows = $node->safe_psql('postgres', q{
		SELECT backend_type, object, context FROM pg_stat_io
		WHERE read_time > 0 AND reads = 0 OR write_time > 0 AND writes = 0 OR extend_time > 0 AND extends = 0});

	is($rows, '', $what);
	ok(!$node->log_contains('TRAP:'), "$what: so the server thinks");
}

# Both insert into the leaves that the first of them reads.
$_->query_safe('INSERT INTO t VALUES (2000, 2000)') foreach @sessions;
$control->query_safe(q{SELECT count(*) FROM pg_stat_io; SELECT * FROM pg_stat_activity});
is($control->query_safe(q{
	SELECT count(*) FROM pg_buffercache, LATERAL pg_buffercache_evict(bufferid) e
	WHERE relfilenode IN (pg_relation_filenode('t_a'), pg_relation_filenode('t_b')) AND relblocknumber IN (1, 2, 4) AND e.buffer_evicted}),
	6, 'leaves are not in memory');
$control->query_safe(q{SELECT pg_stat_force_next_flush(); SELECT pg_stat_reset_shared('io')});
my $worker = $control->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'});
kill 'STOP', $worker;
foreach my $i (0, 1)
{
	my $begin = $i == 0 ? 'BEGIN; ' : '';
	$sessions[$i]->query_until(qr/begun/, "\\echo begun\n${begin}INSERT INTO t VALUES (2000, 2000);\n");
	wait_until($control, "SELECT wait_event = 'AioIoCompletion' FROM pg_stat_activity WHERE pid = $pids[$i]");
}
is($control->query_safe("SELECT count(*) FROM pg_aios WHERE pid = $pids[1]"), 0, 'the second session has started no I/O');
kill 'CONT', $worker;
$sessions[1]->query_safe(q{SELECT pg_stat_force_next_flush()});
$sessions[1]->query_safe(q{SELECT 1});
check('the wait for a read of another session is not counted');
$sessions[0]->query_safe('COMMIT');

# A dirty table larger than the ring of buffers that VACUUM uses.
$control->query_safe('DELETE FROM large WHERE i % 2 = 0');
$control->query_safe('CHECKPOINT');
$control->query_safe(q{SELECT pg_stat_force_next_flush(); SELECT pg_stat_reset_shared('io')});
$sessions[0]->query_safe('VACUUM large');
check('waits for the writes of VACUUM are counted as such');
is($node->safe_psql('postgres', q{
	SELECT writes > 0 AND write_time > 0 FROM pg_stat_io
	WHERE backend_type = 'client backend' AND object = 'relation' AND context = 'vacuum'}), 't', 'they are');

$node->stop;
done_testing();
