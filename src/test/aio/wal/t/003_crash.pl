
# Copyright (c) 2026, the pgawait authors

# The server dies while WAL is written and not synced, or while writes in flight
# have been completed in another order than they were started in.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'server is built without injection points';
}
my %methods = io_methods();

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	autovacuum = off
	bgwriter_lru_maxpages = 0
	checkpoint_timeout = 1h
	wal_writer_delay = 10s
	wal_writer_flush_after = 1GB
	aio.preallocation_size = 0
	aio.write_behind = 0
	shared_buffers = 128MB
	wal_buffers = 4MB
	aio.wal_syncs = 4
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points; CREATE EXTENSION aio; CREATE TABLE t (a int, b text)');

# A session that will stop at a point, in a critical section.
sub stops_at
{
	my ($control, $point) = @_;
	my $session = $node->background_psql('postgres');

	warm_for_injection_points($control, $session);
	$session->query_safe("SELECT injection_points_set_local(), injection_points_attach('$point', 'wait'), injection_points_load('$point')");
	return $session;
}

sub crash
{
	my (@sessions) = @_;

	$_->{run}->pump_nb foreach @sessions;
	$node->stop('immediate');
	$_->{run}->finish foreach @sessions;
	$node->start;
}

# A commit is written and not synced; another one waits for it, and both go on.
my $control = $node->background_psql('postgres');
my $stopped = stops_at($control, 'aio-wal-written');
my $second = $node->background_psql('postgres');
$stopped->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (1, 'first');\n");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'aio-wal-written'});
$second->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (2, 'second');\n");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'AioWalSync'});
# only if syncs take long is it worth while to have more than one
$control->query_safe(q{SELECT pg_sleep(0.2)});
$control->query_safe(q{SELECT injection_points_wakeup('aio-wal-written')});
is($second->query_safe('SELECT count(*) FROM t'), 2, 'both commits are done when the first is synced');

# The same; but as the last sync took long, the other one writes and syncs, too.
# It does not overtake the first.
$second->quit;
$control->query_safe(q{TRUNCATE t});
$control->query_safe(q{SELECT injection_points_detach('aio-wal-written')});
$stopped->query_safe(q{SELECT injection_points_set_local(), injection_points_attach('aio-wal-written', 'wait'), injection_points_load('aio-wal-written')});
my $flushed = $control->query_safe('SELECT pg_current_wal_flush_lsn()');
$stopped->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (1, 'not acknowledged');\n");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'aio-wal-written'});
is($control->query_safe("SELECT pg_current_wal_lsn() > '$flushed', pg_current_wal_flush_lsn() = '$flushed'"),
	't|t', 'a commit is written, and not flushed');
is($control->query_safe('SELECT count(*) FROM t'), 0, 'nobody sees it');
my $written = $control->query_safe('SELECT pg_current_wal_lsn()');
$second = $node->background_psql('postgres');
$second->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (2, 'neither');\n");
wait_until($control, "SELECT pg_current_wal_lsn() > '$written'");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'AioWalSync'});
is($control->query_safe("SELECT pg_current_wal_flush_lsn() = '$flushed'"), 't', 'a later one does not overtake it');
crash($control, $stopped, $second);
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE a = 2 AND NOT EXISTS (SELECT FROM t WHERE a = 1)'), 0, 'after a crash, nothing is there without what came before');
$node->safe_psql('postgres', 'TRUNCATE t');

# An I/O worker dawdles over a write; later ones are complete.  Nothing is
# written, then, beyond the first.
$node->append_conf('postgresql.conf', 'io_workers = 2');
$node->reload;
$control = $node->background_psql('postgres');
my $loader = $node->background_psql('postgres');
wait_until($control, q{SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'io worker'});
# more than one write, less than two, from where everything is flushed
$loader->query_safe(q{INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 1000) i});
# it has made the next segment, and does not write as well
wait_until($control, q{SELECT wait_event = 'WalWriterMain' FROM pg_stat_activity WHERE backend_type = 'walwriter'});
$loader->query_safe(q{BEGIN});
$control->query_safe(q{SELECT injection_points_attach('aio-worker-after-reopen', 'wait')});
$loader->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 300) i;\n");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'aio-worker-after-reopen'});
$control->query_safe(q{SELECT injection_points_detach('aio-worker-after-reopen')});
$written = $control->query_safe('SELECT pg_current_wal_lsn()');
$loader->query_safe(q{SELECT 1});
$loader->query_safe(q{INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 600) i});
cmp_ok($loader->query_safe('SELECT writes_started FROM aio_session_wal()'), '>=', 4, 'several writes have been started');
wait_until($control, q{SELECT count(*) = 1 FROM pg_aios WHERE target = 'wal' AND state = 'SUBMITTED'});
is($control->query_safe('SELECT pg_current_wal_lsn()'), $written, 'the first of several writes is not complete, so nothing is written');
$loader->query_until(qr/begun/, "\\echo begun\nCOMMIT;\n");
$control->query_safe(q{SELECT injection_points_wakeup('aio-worker-after-reopen')});
is($loader->query_safe('SELECT count(*) FROM t'), 1900, 'a commit waits for it');
cmp_ok($control->query_safe("SELECT pg_current_wal_flush_lsn() - '$written'"), '>', 600_000, 'all of it is flushed');
crash($control, $loader);
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 1900, 'and there after a crash');
$node->safe_psql('postgres', 'TRUNCATE t');

# The postmaster is gone while one session is about to sync its commit, and
# another one waits for that.  Neither notices by itself: the one must not end
# as if it had failed, and the other must not stay.
$control = $node->background_psql('postgres');
$stopped = stops_at($control, 'aio-wal-written');
$second = $node->background_psql('postgres');
$stopped->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (1, 'first');\n");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'aio-wal-written'});
$second->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (2, 'second');\n");
wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'AioWalSync'});
kill 'KILL', $node->{_pid};
$_->{run}->finish foreach $control, $stopped, $second;
$node->{_pid} = undef;
start_after_kill($node);
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE a = 2 AND NOT EXISTS (SELECT FROM t WHERE a = 1)'), 0, 'after the postmaster has been killed, too');
$node->stop;
done_testing();
