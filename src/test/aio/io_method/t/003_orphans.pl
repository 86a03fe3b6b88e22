# Copyright (c) 2026, the pgawait authors

# The postmaster dies while a session waits for I/O that nobody will complete,
# and whatever the session does next would wait for it again: abort, or end the
# transaction that it is committing.  It ends as if it had crashed, without
# going on as if the transaction were over, and the next start recovers.  A
# standby's startup process ends in order, with a handle for the read that it
# was about to begin.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'server is built without assertions, and so without aio.debug_queue'
  unless check_pg_config('#define USE_ASSERT_CHECKING 1');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	io_workers = 1
	aio.debug_queue = on
	io_max_concurrency = 32
	debug_io_direct = data
	shared_buffers = 1MB
	autovacuum = off
	bgwriter_lru_maxpages = 0
	full_page_writes = off
	aio.wal_write_ahead = 0
	checkpoint_timeout = 1h
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE TABLE large AS SELECT i, repeat('x', 900) FROM generate_series(1, 10000) i;
	CREATE TABLE dropped AS SELECT i, repeat('x', 900) FROM generate_series(1, 1000) i;});

# Stop the only I/O worker; returns its process id.
sub stop_worker
{
	my ($control) = @_;
	my $worker = $control->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'});

	kill 'STOP', $worker;
	return $worker;
}

# Kill the postmaster while this process waits, and the worker when the process
# has ended; returns what the log says then.
sub orphan
{
	my ($node, $worker, $pid, @sessions) = @_;
	my $log = -s $node->logfile;

	$node->kill9;
	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless -e "/proc/$pid";
		usleep(100_000);
	}
	ok(!-e "/proc/$pid", 'the process ends');
	kill 'KILL', $pid, $worker;
	$_->{run}->finish foreach @sessions;
	start_after_kill($node);
	return slurp_file($node->logfile, $log);
}

# It waits for a read, and an abort would wait for the writes that it has begun
# in order to have buffers for that.  Aborts do so in a session that has built
# an index.
my $control = $node->background_psql('postgres');
my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe(q{CREATE INDEX ON large (i)});
$session->query_safe(q{UPDATE dropped SET i = i + 1});
my $worker = stop_worker($control);
$session->query_until(qr/begun/, "\\echo begun\nSELECT count(*) FROM large;\n");
wait_until($control, "SELECT wait_event = 'AioIoCompletion' FROM pg_stat_activity WHERE pid = $pid");
my $said = orphan($node, $worker, $pid, $control, $session);
unlike($said, qr/TRAP|PANIC|WARNING/, 'so does its transaction, with reads and writes in flight');

# It has committed, and waits for the checkpointer's write of what it drops.
$control = $node->background_psql('postgres');
$session = $node->background_psql('postgres');
$pid = $session->query_safe('SELECT pg_backend_pid()');
my $checkpoint = $node->background_psql('postgres');
$session->query_safe(q{UPDATE dropped SET i = i + 1});
$worker = stop_worker($control);
$checkpoint->query_until(qr/begun/, "\\echo begun\nCHECKPOINT;\n");
wait_until($control, q{SELECT wait_event = 'AioIoCompletion' FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
$session->query_until(qr/begun/, "\\echo begun\nDROP TABLE dropped;\n");
wait_until($control, "SELECT wait_event IN ('AioIoCompletion', 'BufferIo') FROM pg_stat_activity WHERE pid = $pid");
$said = orphan($node, $worker, $pid, $control, $session, $checkpoint);
unlike($said, qr/TRAP|PANIC|WARNING/, 'so does a transaction that is being committed');
is($node->safe_psql('postgres', q{SELECT to_regclass('dropped') IS NULL}), 't', 'what was committed is done after recovery');

# A page that redo needs is being read ahead by the worker.  Redo has been held
# up before, so that there is more WAL than is looked at ahead, and it goes on.
# The first pages that are read ahead are needed: no hints are logged.
$node->safe_psql('postgres', 'VACUUM (FREEZE) large');
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "recovery_min_apply_delay = '1d'");
$standby->start;
$control = $standby->background_psql('postgres');
$node->safe_psql('postgres', $_) foreach 'CREATE TABLE held_up ()', 'UPDATE large SET i = i + 1 WHERE i % 10 = 0';
$node->wait_for_catchup($standby, 'flush');
wait_until($control, q{SELECT wait_event = 'RecoveryApplyDelay' FROM pg_stat_activity WHERE backend_type = 'startup'});
$worker = stop_worker($control);
$standby->append_conf('postgresql.conf', 'recovery_min_apply_delay = 0');
$standby->reload;
wait_until($control, q{SELECT wait_event = 'AioIoCompletion' FROM pg_stat_activity WHERE backend_type = 'startup'});
$pid = $control->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'});
$said = orphan($standby, $worker, $pid, $control);
unlike($said, qr/TRAP|PANIC/, 'so does the startup process of a standby, about to read the page');
$node->wait_for_replay_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT sum(i) FROM large'), $node->safe_psql('postgres', 'SELECT sum(i) FROM large'),
	'which replays the rest afterwards');

$standby->stop;
$node->stop;
done_testing();
