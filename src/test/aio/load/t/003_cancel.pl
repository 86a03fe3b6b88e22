
# Copyright (c) 2026, the pgawait authors

# COPY is cancelled or terminated while its reads are in flight.  Nothing it
# held may be left: VACUUM would wait for a pin, and others for a read.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

# Start a COPY that never ends; returns when its reads have been seen.
sub start_copy
{
	my ($node, $session) = @_;
	my $pid = $session->query('SELECT pg_backend_pid()');

	$session->query_until(qr/started/,
		qq{\\echo started\nCOPY load (words) FROM PROGRAM 'yes "{x,y}"';\n});
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_aios WHERE pid = $pid AND state NOT LIKE 'COMPLETED%'")
	  or die 'no read is seen';
	return $pid;
}

# Waits for each page that somebody has pinned, or reads.
sub vacuum_ok
{
	my ($node, $what) = @_;
	my $seconds = $PostgreSQL::Test::Utils::timeout_default;

	is( $node->psql(
			'postgres', qq{
			SET statement_timeout = '${seconds}s';
			VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) load}),
		0,
		"$what: VACUUM");
	# others may be complete, but not yet noticed by their idle owner
	ok( $node->poll_query_until(
			'postgres', q{SELECT count(*) = 0 FROM pg_aios WHERE state NOT LIKE 'COMPLETED%'}),
		"$what: no read is in flight");
}

foreach my $method (sort keys %methods)
{
  SKIP:
	{
		skip "$method: $methods{$method}", 1 if defined $methods{$method};

		my $node = create_loaded_node("cancel_$method", $method);
		# VACUUM is ours, so that pg_aios is, too
		$node->append_conf('postgresql.conf', 'autovacuum = off');
		$node->reload;
		my $pid;

		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my $dropped = 0;
		# it is a matter of luck whether a cancel meets suspended tasks
		foreach my $round (1 .. 50)
		{
			$pid = start_copy($node, $session);
			$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
			$dropped = $session->query(
				'SELECT tasks_dropped FROM aio_session_stats()');
			vacuum_ok($node, "$method, cancelled");
			last if $dropped > 0 && $round > 2;
		}
		cmp_ok($dropped, '>', 0, "$method: suspended tasks were dropped");
		$session->query('SELECT pg_stat_force_next_flush()');
		cmp_ok($session->query(q{SELECT sum(cancelled) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind NOT IN ('task')}),
			'>', 0, "$method: which is counted");

		# in a savepoint, with the transaction still open
		$session->query('BEGIN; INSERT INTO load (words) VALUES (NULL); INSERT INTO ledger VALUES (6, 1); SAVEPOINT s');
		$pid = start_copy($node, $session);
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		$session->query('ROLLBACK TO s');
		vacuum_ok($node, "$method, in a savepoint");
		$session->query('INSERT INTO load (words) SELECT * FROM rows(500); INSERT INTO ledger VALUES (6, 500); COMMIT');

		$pid = start_copy($node, $session);
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		ok( $node->poll_query_until(
				'postgres',
				"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"),
			"$method: session ends");
		vacuum_ok($node, "$method, terminated");
		eval { $session->quit };

		check_table($node, $method);
		check_log($node, $method);

		# the server stops although reads are in flight
		$session = $node->background_psql('postgres', on_error_stop => 0);
		start_copy($node, $session);
		$node->stop('fast');
		eval { $session->quit };
	}
}

done_testing();
