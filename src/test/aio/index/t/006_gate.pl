# Copyright (c) 2026, the pgawait authors

# Unique keys are inserted in index order while nobody else writes to the table:
# who waits meanwhile, and who does not; and what ends it.

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

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	shared_buffers = 16MB
	max_connections = 20
	max_prepared_transactions = 2
	autovacuum = off
	restart_after_crash = on
	deadlock_timeout = 100ms
	aio.debug_rows_before_batch = 0
});
$node->start;
if (!$node->check_extension('injection_points'))
{
	plan skip_all => 'extension injection_points is not installed';
}
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION injection_points;
	CREATE EXTENSION amcheck;
	CREATE TABLE t (id int PRIMARY KEY, other int);
	CREATE UNIQUE INDEX t_other ON t (other);
	CREATE INDEX t_both ON t (other, id);
	CREATE TABLE u (id int PRIMARY KEY);
	INSERT INTO t SELECT -n, -n FROM generate_series(1, 20000) n;
});
my $load = 'INSERT INTO t SELECT n, 10000 - n FROM generate_series(2000, 1, -1) n';

sub run
{
	return $node->safe_psql('postgres', $_[0]);
}

# In which ways a statement inserts its keys: 'gate' and 'row order'.
sub ways
{
	my ($statement) = @_;
	my ($rc, $out, $err) = $node->psql(
		'postgres', qq{
		SET client_min_messages = warning;
		SELECT injection_points_set_local();
		SELECT injection_points_attach('aio-gate-closed', 'notice');
		SELECT injection_points_attach('aio-keys-in-row-order', 'notice');
		SET client_min_messages = notice;
		$statement;
		SET client_min_messages = warning;
		SELECT injection_points_detach('aio-gate-closed');
		SELECT injection_points_detach('aio-keys-in-row-order')});
	my @ways = map { $_ eq 'aio-gate-closed' ? 'gate' : 'row order' } $err =~ /injection point (aio-gate-closed|aio-keys-in-row-order)/g;

	is($rc, 0, "no error: $statement") or diag($err);
	return join(', ', @ways);
}

sub poll
{
	my ($query) = @_;

	$node->poll_query_until('postgres', $query) or die "timed out: $query";
}

# So many wait at a gate.
sub waiting
{
	my ($n) = @_;

	poll("SELECT count(*) = $n FROM pg_stat_activity WHERE wait_event = 'AioTableGate'");
}

# A session in which a statement has begun.
sub start
{
	my ($statement, $session) = @_;

	$session //= $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	return $session;
}

# A session that has closed the gate of t, and is held up there.
sub held_up
{
	my ($statement, $session) = @_;

	run(q{SELECT injection_points_attach('aio-gate-closed', 'wait')});
	$session = start($statement, $session);
	poll(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'aio-gate-closed'});
	run(q{SELECT injection_points_detach('aio-gate-closed')});
	return $session;
}

sub wake_up
{
	run(q{SELECT injection_points_wakeup('aio-gate-closed')});
}

# What has been said since the last time, when the session is idle.
sub said
{
	my ($session) = @_;
	my $err;

	$session->query('SELECT 1');
	$err = $session->{stderr};
	$session->{stderr} = '';
	return $err;
}

sub intact
{
	my ($name) = @_;

	is(run(q{SELECT bt_index_check(i, true, true) FROM unnest('{t_pkey, t_other}'::regclass[]) i;
		SELECT bt_index_check('t_both', true)}), "\n\n", "$name: all in order");
}

# Which way is taken
is(ways("$load; DELETE FROM t WHERE id > 0"), 'gate', 'alone: index order');
is(ways("BEGIN; DELETE FROM t WHERE id = -1; $load; ROLLBACK"), 'gate', 'what this transaction has written does not matter');
is(ways('INSERT INTO t SELECT n, 100000 - n FROM generate_series(70000, 1, -1) n; DELETE FROM t WHERE id > 0; VACUUM t'),
	'gate, gate', 'in portions of 65,536 rows');
is(ways("BEGIN; LOCK TABLE t IN SHARE MODE; $load; ROLLBACK"), '', 'whoever has the table alone needs no gate');
is(ways("SET aio.batch_unique_keys = on; BEGIN; $load; ROLLBACK"), '', 'nor who does not want one');
is(ways("SET aio.batch_unique_keys = off; BEGIN; $load; ROLLBACK"), '', 'nor who collects no keys');
is(ways('BEGIN; INSERT INTO u SELECT generate_series(1, 2000); ROLLBACK'), 'gate', 'keys in order, as far as they are collected');
is(ways('BEGIN; ALTER TABLE t ADD UNIQUE (id, other) DEFERRABLE; COMMIT; BEGIN; ' . $load . '; ROLLBACK; ALTER TABLE t DROP CONSTRAINT t_id_other_key'),
	'', 'not if a key of another index is inserted with its row');

my $other = $node->background_psql('postgres');
foreach my $statement ('INSERT INTO t VALUES (100001, 100001)', 'UPDATE t SET other = other WHERE id = -5', 'DELETE FROM t WHERE id = -5', 'LOCK TABLE t IN ROW EXCLUSIVE MODE')
{
	$other->query_safe("BEGIN; $statement");
	is(ways("BEGIN; $load; ROLLBACK"), 'row order, row order', "another session: $statement");
	$other->query_safe('ROLLBACK');
}
foreach my $statement ('SELECT count(*) FROM t', 'SELECT FROM t WHERE id = -5 FOR UPDATE', 'INSERT INTO u VALUES (1)',
	'SAVEPOINT s; INSERT INTO t VALUES (100001, 100001); ROLLBACK TO s')
{
	$other->query_safe("BEGIN; $statement");
	is(ways("BEGIN; $load; ROLLBACK"), 'gate', "another session: $statement");
	$other->query_safe('ROLLBACK');
}
$other->query_safe('BEGIN; INSERT INTO t VALUES (100001, 100001)');
$other->query_safe(q{PREPARE TRANSACTION 'x'});
is(ways("BEGIN; $load; ROLLBACK"), 'row order, row order', 'a prepared transaction');
$node->restart;
is(ways("BEGIN; $load; ROLLBACK"), 'row order, row order', 'and one from before a restart');
run(q{ROLLBACK PREPARED 'x'});
is(ways("BEGIN; $load; ROLLBACK"), 'gate', 'but not when it has ended');

my $vacuum = start('SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1; VACUUM t');
poll('SELECT count(*) = 1 FROM pg_stat_progress_vacuum');
is(ways("BEGIN; $load; ROLLBACK"), 'gate', 'VACUUM does not write');
run(q{SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum});
like(said($vacuum), qr/canceling/, 'it was still at work');
$vacuum->quit;

# Who waits meanwhile
my $loader = held_up("BEGIN; $load");
my @writers = map { start("SET lock_timeout = 1; $_") } 'INSERT INTO t VALUES (3001, 3001)', 'UPDATE t SET other = other WHERE id = -5',
  'DELETE FROM t WHERE id = -6', 'COPY t FROM PROGRAM $$printf "3002\t3002\n"$$', 'INSERT INTO t VALUES (3003, 3003) ON CONFLICT DO NOTHING';
waiting(5);
is(run('SET lock_timeout = 1; SET statement_timeout = 1000000; SELECT count(*) FROM t; SELECT FROM t WHERE id = -5 FOR UPDATE; INSERT INTO u VALUES (1);
	BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE NOWAIT; COMMIT; VACUUM t'), "20000", 'who does not write does not wait');
my ($rc, $out, $err) = $node->psql('postgres', 'SET statement_timeout = 1; INSERT INTO t VALUES (3004, 3004)');
like($err, qr/statement timeout/, 'a statement that waits can time out');
run(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'AioTableGate' AND query ~ '3003'});
like(said($writers[4]), qr/canceling/, 'or be cancelled');
waiting(4);
wake_up();
is(said($_), '', 'the others go on, with a lock_timeout that is shorter than they have waited') foreach @writers[ 0 .. 3 ];
is(said($loader), '', 'and so does the load');
$loader->query_safe('COMMIT');
is(run('SELECT count(*), count(*) FILTER (WHERE id > 0) FROM t'), '22001|2002', 'all have done what they wanted');
intact('with a gate');
$_->quit foreach @writers;
run('DELETE FROM t WHERE id > 0');

# A portion is smaller when somebody has waited for long, if that one is gone.
$loader = held_up('INSERT INTO t SELECT n, 100000 - n FROM generate_series(99000, 1, -1) n');
start('INSERT INTO t VALUES (100001, 100001)', $other = $node->background_psql('postgres', on_error_stop => 0));
waiting(1);
run(q{SELECT pg_sleep(0.2); SELECT injection_points_attach('aio-gate-closed', 'notice')});
wake_up();
my ($rows) = said($loader) =~ /aio-gate-closed \((\d+) rows\)/;
cmp_ok($rows, '<=', 65536 / 2, 'the next portion is smaller when somebody has waited');
run(q{SELECT injection_points_detach('aio-gate-closed')});
is(said($other), '', 'who has waited goes on');
$other->quit;
run('DELETE FROM t WHERE id > 0');

# Who has waited goes first
run(q{SELECT injection_points_attach('aio-keys-in-row-order', 'notice')});
$loader = held_up('INSERT INTO t SELECT n, 100000 - n FROM generate_series(70000, 1, -1) n');
start('BEGIN; INSERT INTO t VALUES (100001, 100001)', $other = $node->background_psql('postgres', on_error_stop => 0));
waiting(1);
wake_up();
like(said($loader), qr/aio-keys-in-row-order/, 'the next portion is inserted in row order');
run(q{SELECT injection_points_detach('aio-keys-in-row-order')});
is(said($other), '', 'beside the one that has come');
$other->query_safe('COMMIT');
is(run('SELECT count(*) FROM t WHERE id > 0'), '70001', 'all are there');
intact('in portions');
run('DELETE FROM t WHERE id > 0');

# Equal keys: whoever has waited at the gate waits for the transaction now
$loader = held_up("BEGIN; $load");
start('INSERT INTO t VALUES (17, -100000)', $other);
waiting(1);
wake_up();
poll(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'});
is(said($loader), '', 'the load is done');
$loader->query_safe('COMMIT');
like(said($other), qr/duplicate key/, 'a key of the load');
run('DELETE FROM t WHERE id > 0');

# What ends it: an error, the end of the session, a crash
$loader = held_up("INSERT INTO t SELECT CASE WHEN n < 100 THEN 100 ELSE n END, 10000 - n FROM generate_series(2000, 1, -1) n");
start('INSERT INTO t VALUES (3001, 3001)', $other);
waiting(1);
wake_up();
like(said($loader), qr/duplicate key/, 'a duplicate key');
is(said($other), '', 'the gate is open then');
foreach my $function ('pg_cancel_backend', 'pg_terminate_backend')
{
	$loader = held_up($load);
	start("DELETE FROM t WHERE id = 3001; INSERT INTO t VALUES (3001, 3001)", $other);
	waiting(1);
	run("SELECT $function(pid) FROM pg_stat_activity WHERE wait_event = 'aio-gate-closed'");
	is(said($other), '', "$function");
	is(ways("BEGIN; $load; ROLLBACK"), 'gate', 'and it can be closed again');
}
is(run('SELECT count(*) FROM t WHERE id > 0'), '1', 'nothing is left of what did not end');
intact('after errors');

# A session that ends waits for synchronous replication, as it drops temporary
# tables: the gate is open by then.
$node->safe_psql('postgres', q{ALTER SYSTEM SET wal_level = replica; ALTER SYSTEM SET max_wal_senders = 1;
	ALTER SYSTEM SET synchronous_commit = local; ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
$node->restart;
$other = $node->background_psql('postgres', on_error_stop => 0);
$loader = $node->background_psql('postgres', on_error_stop => 0);
$loader->query_safe('CREATE TEMP TABLE mine (id int); SET synchronous_commit = on');
my $ending = $loader->query_safe('SELECT pg_backend_pid()');
held_up($load, $loader);
start('DELETE FROM t WHERE id = 3001; INSERT INTO t VALUES (3001, 3001)', $other);
waiting(1);
run("SELECT pg_terminate_backend($ending)");
poll("SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $ending AND wait_event = 'SyncRep'");
is(said($other), '', 'who waits for a standby at the end of its session has opened the gate');
is(run("SELECT wait_event FROM pg_stat_activity WHERE pid = $ending"), 'SyncRep', 'and waits on');
run('ALTER SYSTEM RESET synchronous_standby_names');
$node->reload;
poll("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $ending");
intact('after the end of a session');

# Other gates that open wake up those who wait, which do not mind.
$loader = held_up("BEGIN; $load");
start('INSERT INTO t VALUES (3005, 3005)', $other);
waiting(1);
is(ways('BEGIN; INSERT INTO u SELECT generate_series(10001, 12000); ROLLBACK'), 'gate', 'another gate is closed and opened') foreach 1 .. 3;
waiting(1);
is(run('SELECT count(*) FROM t WHERE id = 3005'), '0', 'who waits at the first one waits on');
wake_up();
is(said($other), '', 'until that is opened');
is(said($loader), '', 'and the load ends, too');
$loader->query_safe('ROLLBACK');

# A catalog that somebody has locked who waits at the gate.  Nobody can connect
# meanwhile; a session that has done the same before needs no catalog.  Other
# gates are opened all the time.
my $control = $node->background_psql('postgres', on_error_stop => 0);
my $at_gate = q{SELECT 'there: ' || count(*) FROM pg_stat_activity WHERE wait_event = 'AioTableGate'};
run('CREATE TABLE v (id int); CREATE UNIQUE INDEX ON v ((id::bit(32))); CREATE INDEX ON v (id)');
$control->query_safe(q{SELECT injection_points_attach('nowhere', 'wait'); SELECT injection_points_detach('nowhere')});
$control->query($_) foreach ($at_gate, q{SELECT injection_points_wakeup('aio-gate-closed')});
$loader = held_up('INSERT INTO v SELECT CASE WHEN n < 10 THEN 10 ELSE n END FROM generate_series(999, 1, -1) n');
my $gates = start(q{DO $$ BEGIN LOOP INSERT INTO u SELECT generate_series(10001, 10020); ROLLBACK; END LOOP; END $$});
poll(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^DO' AND state = 'active' AND xact_start > query_start});
start(q{BEGIN; LOCK TABLE pg_type; INSERT INTO v VALUES (0); COMMIT}, $other);
foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if $control->query($at_gate) =~ /there: 1/;
	usleep(100_000);
}
$control->query(q{SELECT injection_points_wakeup('aio-gate-closed')});
is(said($other), '', 'who has locked a catalog does not wait for one who waits for that');
like(said($loader), qr/duplicate key/, 'who waits for the lock goes on in the end');
is(run('SELECT count(*) FROM v'), '1', 'one was to fail');
run(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ '^DO' AND state = 'active'});
like(said($gates), qr/canceling/, 'other gates have been opened meanwhile');
$gates->quit;
$control->quit;

# A crash
$loader = held_up($load);
start('INSERT INTO t VALUES (3003, 3003)', $other);
waiting(1);
my $pid = run(q{SELECT pid FROM pg_stat_activity WHERE wait_event = 'aio-gate-closed'});
kill 'KILL', $pid;
$_->{run}->finish foreach ($loader, $other);
$node->poll_query_until('postgres', 'SELECT true');
is(run('INSERT INTO t VALUES (3003, 3003) RETURNING id'), '3003', 'a gate does not outlive a crash');
is(ways("BEGIN; $load; ROLLBACK"), 'gate', 'nor does it stay open');

$node->stop;
done_testing();
