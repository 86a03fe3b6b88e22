# Copyright (c) 2026, the pgawait authors

# With io_method = worker, I/O that PostgreSQL's processes do themselves does not
# wait for I/O workers that are busy with reads of others, perhaps of a disk that
# is slow or stalls: WAL is written, tables are extended, pages are read for
# inserts and lookups, and checkpoints and backups written and read, while the
# only worker is held up.  Nor does a scan wait for it, for a read that no worker
# has begun; also if the worker was idle when it began to wait.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'server is built without injection points' if ($ENV{enable_injection_points} // '') ne 'yes';

my $point = 'aio-worker-after-reopen';
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', q{
	io_method = worker
	io_workers = 1
	shared_buffers = 4MB
	autovacuum = off
	checkpoint_timeout = 1h
	aio.quick_io_time = 0
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION injection_points;
	CREATE EXTENSION aio;
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE scanned AS SELECT i, repeat('x', 1000) AS pad FROM generate_series(1, 3000) i;
	CREATE TABLE t (id int, a int, pad text);
	CREATE INDEX t_id ON t (id);
	CREATE INDEX t_a ON t (a);
	INSERT INTO t SELECT i, hashint4(i), repeat('y', 50) FROM generate_series(1, 60000) i;
	VACUUM ANALYZE;
	CHECKPOINT});

# sessions that have all of the catalogs that they need
my ($scans, $writes, $control) = map { $node->background_psql('postgres') } 1 .. 3;
my $held = "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'io worker' AND wait_event = '$point'";
my $insert = q{INSERT INTO t SELECT i, hashint4(i), repeat('y', 50) FROM generate_series(%d, %d) i};
my $lookup = q{SELECT count(t.pad) FROM generate_series(1, 3000) g JOIN t ON t.a = hashint4(g * 7)};
my $started = q{SELECT sum(started) FROM pg_stat_aio WHERE kind IN ('read', 'lookup')};
$control->query_safe("$held; $started; SELECT injection_points_attach('nowhere', 'wait'); SELECT injection_points_detach('nowhere')");
$writes->query_safe('SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off');
$writes->query_safe(sprintf("$insert; $lookup; CHECKPOINT", 60001, 60010));

$control->query_safe("SELECT injection_points_attach('$point', 'wait')");
$scans->query_until(qr/begun/, "\\echo begun\nSET synchronize_seqscans = off; SELECT count(pad) FROM scanned;\n");
wait_until($control, $held);

my $before = $control->query_safe($started);
my $evict = 'SELECT FROM pg_buffercache_evict_all()';
$control->query_safe($evict);
$writes->query_safe('BEGIN; ' . sprintf($insert, 70001, 80000) . '; COMMIT');
pass('rows are inserted, and WAL is written and flushed');
$control->query_safe($evict);
is($writes->query_safe($lookup), 3000, 'rows are looked up');
$control->query_safe($evict);
is($writes->query_safe('SELECT count(pad) FROM t'), 70010, 'what another scan has asked the worker for, it reads itself');
$writes->query_safe(sprintf("$insert; CHECKPOINT; SELECT pg_stat_force_next_flush()", 80001, 80001));
pass('a checkpoint is made');
cmp_ok($control->query_safe($started), '>', $before, 'pages were not in memory');
$node->command_ok([ 'pg_basebackup', '--no-sync', '--checkpoint', 'fast', '--pgdata', $node->backup_dir . '/backup', '--dbname', $node->connstr('postgres') ],
	'a backup is made');
is($control->query_safe($held), 't', 'and the worker has been held up all the time');

$control->query_safe("SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
like($scans->query_until(qr/^\d+$/m, "\n"), qr/^3000$/m, 'the scan goes on');

# A worker that has been woken, and has not looked into the queue yet, is idle.
# Two sessions count on it, and it takes what the first waits for.
my $worker = $control->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'});
my $waiting = q{SELECT count(*) = %d FROM pg_stat_activity WHERE backend_type = 'client backend' AND wait_event = 'AioIoCompletion'};
$control->query_safe("$evict; SELECT injection_points_attach('$point', 'wait'); " . sprintf($waiting, 0));
kill 'STOP', $worker;
$scans->query_until(qr/begun/, "\\echo begun\nSELECT count(pad) FROM scanned;\n");
wait_until($control, sprintf($waiting, 1));
$writes->query_until(qr/begun/, "\\echo begun\nSELECT count(pad) FROM t;\n");
wait_until($control, sprintf($waiting, 2));
kill 'CONT', $worker;
wait_until($control, $held);
like($writes->query_until(qr/^\d+$/m, "\n"), qr/^70011$/m, 'who has counted on a worker that is busy now reads himself');
is($control->query_safe($held), 't', 'while it is held up');
$control->query_safe("SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
like($scans->query_until(qr/^\d+$/m, "\n"), qr/^3000$/m, 'and the other scan goes on');

$_->quit foreach $scans, $writes, $control;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 70011, 'the table has what it should');
$node->stop;

done_testing();
