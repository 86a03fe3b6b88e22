# Copyright (c) 2026, the pgawait authors

# A client has asked for messages about each I/O, and does not read them.  The
# session waits for it in the middle of completing I/O, with writes of its own in
# flight, and goes on when the client does.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	my $node = PostgreSQL::Test::Cluster->new("main_$method");
	$node->init;
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		io_max_concurrency = 32
		debug_io_direct = data
		shared_buffers = 1MB
		autovacuum = off
		bgwriter_lru_maxpages = 0
		checkpoint_timeout = 1h
	});
	$node->start;
	$node->safe_psql('postgres', q{CREATE TABLE t AS SELECT i, repeat('x', 900) FROM generate_series(1, 20000) i});
	my $control = $node->background_psql('postgres');
	my $session = $node->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	# The session may wait for its client with the lock of the workers' queue
	# held.  Who is to tell us must not need I/O then, so it asks once before.
	my $waiting = "SELECT wait_event = 'ClientWrite' FROM pg_stat_get_activity($pid)";
	$control->query_safe($waiting);

	# psql stops reading when nobody reads what it says
	$session->{stdin} .= "SET client_min_messages = debug5;\nUPDATE t SET i = i + 1;\nSET client_min_messages = warning;\n\\echo done\n";
	my $waits = 0;
	until ($session->{stdout} =~ /done/)
	{
		$session->{run}->pump_nb;
		$waits++ if $control->query_safe($waiting) eq 't';
	}
	cmp_ok($waits, '>', 0, "$method: the session has waited for its client");
	$session->{stderr} = $session->{stdout} = '';
	is($node->safe_psql('postgres', 'SELECT sum(i) FROM t'), 20000 * 20001 / 2 + 20000, "$method: and has done what it was to do");
	ok(!$node->log_contains('TRAP:'), "$method: without a failed assertion");
	$_->quit foreach ($session, $control);
	$node->stop;
}

done_testing();
