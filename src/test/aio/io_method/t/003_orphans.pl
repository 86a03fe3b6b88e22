# Copyright (c) 2026, the pgawait authors

# The postmaster dies while a session waits for I/O that nobody will complete,
# and whatever the session does next would wait for it again: abort, or end the
# transaction that it is committing.  It ends as if it had crashed, without
# going on as if the transaction were over, and the next start recovers.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	io_workers = 1
	io_max_concurrency = 32
	debug_io_direct = data
	shared_buffers = 1MB
	autovacuum = off
	bgwriter_lru_maxpages = 0
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

# Kill the postmaster while this session waits, and the worker when the session
# has ended; returns what the log says then.
sub orphan
{
	my ($worker, $pid, @sessions) = @_;
	my $log = -s $node->logfile;

	$node->kill9;
	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless -e "/proc/$pid";
		usleep(100_000);
	}
	ok(!-e "/proc/$pid", 'the session ends');
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
my $said = orphan($worker, $pid, $control, $session);
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
$said = orphan($worker, $pid, $control, $session, $checkpoint);
unlike($said, qr/TRAP|PANIC|WARNING/, 'so does a transaction that is being committed');
is($node->safe_psql('postgres', q{SELECT to_regclass('dropped') IS NULL}), 't', 'what was committed is done after recovery');

$node->stop;
done_testing();
