# Copyright (c) 2026, the pgawait authors

# A client asks for messages about each I/O, and does not read them.  Nobody else
# waits for it: whatever its session has locked when there is a message, it gives
# back before it waits for its client.

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

	ok(!$node->log_contains('TRAP:'), "$method: no failed assertion");
	$control->quit;
	$node->stop;
}

done_testing();
