
# Copyright (c) 2026, the pgawait authors

# A session whose tasks are suspended, or of which one blocks, is cancelled or
# terminated, or the server is shut down.  Nothing may be left behind.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('interrupts');
$node->init;
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->start;

$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION test_aio_core;
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE pages AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 200);
});

# What the tasks are doing when it hits them: page 1 is pinned by a suspended
# task, page 2 by one that is suspended or blocks.
my %runs = (
	'suspended' =>
	  q{run('spawn 1; spawn 2', 'pin 1; latch', 'pin 2; latch')},
	'nested' =>
	  q{run('spawn 1; spawn 2', 'pin 1; latch', 'nest 3 4', 'latch', 'pin 2; latch')},
	'blocked in a task' =>
	  q{run('spawn 1; spawn 2', 'pin 1; latch', 'pin 2; block')},
	'blocked in a resumed task' =>
	  q{run('spawn 1; spawn 2', 'pin 1; latch', 'yield; pin 2; block')},
	'blocked in a resumed task, nested' =>
	  q{run('spawn 1; spawn 2', 'pin 1; latch', 'nest 3 4', 'yield; pin 2; block', 'latch')},
	'blocked in a nested task' =>
	  q{run('spawn 1; spawn 2', 'pin 1; latch', 'nest 3 4', 'latch', 'pin 2; block')},
	'blocked in the body' =>
	  q{run('spawn 1; spawn 2; block', 'pin 1; latch', 'nest 3', 'pin 2; latch')},
);

my $pinned = q{SELECT count(*) FROM pg_buffercache
	WHERE relfilenode = pg_relation_filenode('pages') AND pinning_backends > 0};

# Start a run in a session of its own; returns the session and its process.
sub start
{
	my ($run) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');

	$session->query(q{SELECT use_table('pages')});
	$session->query_until(
		qr/started/, qq{\\echo started
		SELECT $run;
	});
	$node->poll_query_until(
		'postgres', qq{SELECT wait_event = 'TestAioCoreLatch'
		FROM pg_stat_activity WHERE pid = $pid})
	  or die "session does not wait";
	return ($session, $pid);
}

foreach my $what (sort keys %runs)
{
	my ($session, $pid) = start($runs{$what});

	is($node->safe_psql('postgres', $pinned), '2', "$what: holds pins");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	is( $session->query(
			'SELECT tasks > 0, suspended, reads_in_flight FROM held()'),
		't|0|0',
		"$what: session goes on after cancel");
	like(
		$session->{stderr},
		qr/canceling statement due to user request/,
		"$what: cancelled");
	is($node->safe_psql('postgres', $pinned),
		'0', "$what: pins are released after cancel");
	is( $session->query(
			q{SELECT run('spawn 1; spawn 1; set 1', 'pin 1; await 1; unpin 1; log a')}
		),
		'1:a 1:a',
		"$what: tasks work after cancel");
	$session->quit;

	($session, $pid) = start($runs{$what});
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	ok( $node->poll_query_until(
			'postgres',
			"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"),
		"$what: terminated");
	is($node->safe_psql('postgres', $pinned),
		'0', "$what: pins are released after terminate");
	eval { $session->quit; };
}
is( $node->safe_psql(
		'postgres', q{SELECT count(*) FROM pg_aios WHERE state NOT LIKE 'COMPLETED%'}),
	'0', 'no AIO is left');

# the server stops although tasks are suspended and blocked
my @sessions = map { (start($_))[0] } values %runs;
$node->stop('fast');
eval { $_->quit } foreach @sessions;
$node->start;

# and if its postmaster dies
@sessions = map { (start($_))[0] } values %runs;
$node->kill9;
eval { $_->quit } foreach @sessions;
start_after_kill($node);
is($node->safe_psql('postgres', 'SELECT count(*) FROM pages'),
	'200', 'server starts after its postmaster was killed');

my $log = slurp_file($node->logfile);
unlike($log, qr/TRAP|PANIC|terminated by signal|resource was not closed/,
	'nothing unusual in the log');

$node->stop;
done_testing();
