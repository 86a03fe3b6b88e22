# Copyright (c) 2026, the pgawait authors

# A client asks for messages about each I/O, and does not read them.  Nobody else
# waits for it: whatever its session has locked when there is a message, it gives
# back before it waits for its client.  Messages about what it waits for itself
# come while it does.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioClient;
use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

# Run statements and read what they say.
sub run
{
	my ($connection, @statements) = @_;
	my @messages;
	foreach my $statement (@statements)
	{
		send_raw($connection, simple_query($statement));
		push @messages, receive($connection, sub { $_[0] eq 'Z' });
	}
	return @messages;
}

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	my $node = create_cold_node("main_$method", $method, conf => "shared_buffers = 16MB\naio.quick_io_time = 0\n");
	$node->safe_psql(
		'postgres', q{
		CREATE ROLE raw LOGIN;
		CREATE SCHEMA raw AUTHORIZATION raw;
		CREATE TABLE v (i int);
		CHECKPOINT});
	my $control = $node->background_psql('postgres');

	# Without reading, let a session run this until it waits for its client, see
	# that others can do what they like, and end it.
	my $hold_up = sub {
		my ($what, $first, $statement, $others) = @_;
		my $connection = connect_raw($node, 'raw');
		run($connection, @$first, 'SET client_min_messages = debug5');
		send_raw($connection, simple_query($statement));
		wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'raw' AND wait_event = 'ClientWrite'});

		my $timed_out = 0;
		$node->psql('postgres', $others, timeout => $PostgreSQL::Test::Utils::timeout_default, timed_out => \$timed_out);
		ok(!$timed_out, "$method: $what: others are not held up");
		is($control->query_safe(qq{SELECT pg_terminate_backend(pid, 1000 * $PostgreSQL::Test::Utils::timeout_default) FROM pg_stat_activity WHERE usename = 'raw'}),
			't', "$method: $what: and the session can be ended");
		close $connection->{socket};
	};

	# WALWriteLock, in a critical section
	my $emit = q{SELECT count(pg_logical_emit_message(false, 'a', repeat('x', 8000))) FROM generate_series(1, %d)};
	$hold_up->('WAL', [ sprintf($emit, 10) ], sprintf($emit, 40000), 'INSERT INTO v VALUES (1)');

	# pages of others that are victims
	$hold_up->(
		'victims',
		[ 'CREATE TABLE raw.t AS SELECT i, repeat(\'x\', 1000) FROM generate_series(1, 100) i' ],
		q{INSERT INTO raw.t SELECT i, repeat('x', 1000) FROM generate_series(1, 100000) i},
		'CHECKPOINT');

	# A parallel worker has writes in flight when its queue is full, as its leader
	# waits for the client.  What it says about them then comes after what it is
	# sending.
	my $connection = connect_raw($node, 'raw');
	run($connection,
		q{CREATE TABLE raw.p AS SELECT i, repeat('x', 800) AS v FROM generate_series(1, 40000) i},
		'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0', 'SET min_parallel_table_scan_size = 0',
		'SET max_parallel_workers_per_gather = 2', 'SET parallel_leader_participation = off',
		'UPDATE raw.p SET i = i + 1', 'SET client_min_messages = debug5');
	send_raw($connection, simple_query('SELECT i, v FROM raw.p WHERE i > 0'));
	wait_until(
		$control, q{
		SELECT count(*) FILTER (WHERE wait_event = 'ClientWrite') > 0 AND
			coalesce(bool_and(wait_event IN ('MessageQueuePutMessage', 'MessageQueueSend')) FILTER (WHERE leader_pid IS NOT NULL), true)
		FROM pg_stat_activity WHERE usename = 'raw'});
	my @messages = receive($connection, sub { $_[0] eq 'Z' });
	is(join(' ', map { terse_error($_->[1]) } grep { $_->[0] eq 'E' } @messages), '', "$method: worker: no error");
	is(scalar(grep { $_->[0] eq 'D' } @messages), 40000, "$method: and all rows");
	cmp_ok(scalar(grep { $_->[0] eq 'N' } @messages), '>', 0, "$method: and messages");

	# While a task waits for another transaction, its client is told so.
	$control->query_safe(
		q{
		CREATE TABLE raw.u (id int PRIMARY KEY, k int);
		CREATE INDEX ON raw.u (k);
		ALTER TABLE raw.u OWNER TO raw;
		INSERT INTO raw.u SELECT i, i FROM generate_series(1, 20000) i;
		GRANT SET ON PARAMETER log_lock_waits, deadlock_timeout TO raw;
		CHECKPOINT;
		BEGIN;
		INSERT INTO raw.u VALUES (30000, 1);
		SELECT FROM pg_buffercache_evict_all()});
	run($connection, 'SET client_min_messages = log', 'SET log_lock_waits = on', q{SET deadlock_timeout = '10ms'});
	send_raw($connection, simple_query('INSERT INTO raw.u VALUES (30001, 5), (30000, 1)'));
	my ($told) = reverse receive($connection, sub { $_[0] eq 'Z' || $_[1] =~ / still waiting / });
	is($told->[0], 'N', "$method: what a task waits for is told while it waits");
	$control->query_safe('ROLLBACK');
	is(join(' ', map { $_->[0] } receive($connection, sub { $_[0] eq 'Z' })), 'N C Z', "$method: and goes on");
	close $connection->{socket};

	# So is a client of the rows before, of whose values functions of index expressions
	# say something in a scope.
	$control->query_safe(
		q{
		CREATE TABLE raw.w (id int PRIMARY KEY, w text, k int);
		INSERT INTO raw.w SELECT i, CASE i % 5 WHEN 3 THEN repeat('a', 3000) ELSE 'word' END, i FROM generate_series(1, 1000) i;
		SET client_min_messages = warning;
		CREATE INDEX ON raw.w (k);
		CREATE UNIQUE INDEX ON raw.w (md5(to_tsvector('simple', w)::text), id);
		CREATE INDEX ON raw.w USING spgist (point(k, id));
		RESET client_min_messages;
		ALTER TABLE raw.w OWNER TO raw;
		BEGIN;
		SELECT FROM raw.w WHERE id = 1000 FOR UPDATE});
	$connection = connect_raw($node, 'raw');
	my $heard = 0;
	send_raw($connection, simple_query('UPDATE raw.w SET k = k + 1'));
	receive($connection, sub { $heard += $_[0] eq 'N'; $heard == 200 || $_[0] eq 'Z' });
	is($heard, 200, "$method: notices about other rows come before a row is waited for");
	$control->query_safe('ROLLBACK');
	is(join(' ', map { $_->[0] } receive($connection, sub { $_[0] eq 'Z' })), 'C Z', "$method: and those are all");
	close $connection->{socket};

	# But not of what comes after the key that a task waits for: another index of the same
	# row, whose expression has been evaluated meanwhile.
	$control->query_safe(
		q{
		CREATE TABLE raw.x (id int PRIMARY KEY, w text);
		CREATE INDEX ON raw.x USING gin (to_tsvector('simple', w));
		INSERT INTO raw.x SELECT i, 'word' FROM generate_series(1, 20000) i;
		ALTER TABLE raw.x OWNER TO raw;
		CHECKPOINT;
		BEGIN;
		INSERT INTO raw.x VALUES (30000, 'word');
		SELECT FROM pg_buffercache_evict_all()});
	$connection = connect_raw($node, 'raw');
	run($connection, 'SET client_min_messages = log', 'SET log_lock_waits = on', q{SET deadlock_timeout = '10ms'});
	my $about = sub { join(' ', map { $_->[0] ne 'N' ? $_->[0] : $_->[1] =~ /(too long|still waiting|acquired) / } @_) };
	send_raw($connection, simple_query(q{INSERT INTO raw.x VALUES (30000, repeat('a', 3000))}));
	is($about->(receive($connection, sub { $_[0] eq 'Z' || $_[1] =~ / still waiting / })), 'still waiting', "$method: nothing is told of later indexes");
	$control->query_safe('ROLLBACK');
	is($about->(receive($connection, sub { $_[0] eq 'Z' })), 'acquired too long C Z', "$method: before the row goes on");
	close $connection->{socket};

	ok(!$node->log_contains('TRAP:'), "$method: no failed assertion");
	$control->quit;
	$node->stop;
}

done_testing();
