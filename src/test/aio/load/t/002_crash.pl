
# Copyright (c) 2026, the pgawait authors

# A backend, and then the postmaster with all its children, is killed in the
# middle of a load.  After recovery the table, its indexes and what clients
# were told agree.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

# Start a load and wait until it has come some way.
sub start_load
{
	my ($node, $log) = @_;
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM ledger');
	my ($in, $out) = ('', '');
	my $load = IPC::Run::start(
		[ pgbench_command($node, '--time' => 1000, '--log', '--log-prefix' => $log) ],
		'<', \$in, '>', \$out, '2>', \$out);

	while ($node->safe_psql('postgres', 'SELECT count(*) FROM ledger') <
		$before + 30)
	{
		die "load has ended: $out" unless $load->pumpable;
		$load->pump_nb;
	}
	return $load;
}

# What was acknowledged is in the ledger, and at most one transaction for each
# client besides.
sub check_ledger
{
	my ($node, $before, $log, $what) = @_;
	my $acknowledged = 0;

	foreach my $file (glob("$log.*"))
	{
		$acknowledged += () = slurp_file($file) =~ /\n/g;
	}
	my $found =
	  $node->safe_psql('postgres', 'SELECT count(*) FROM ledger') - $before;
	cmp_ok($acknowledged, '>', 0, "$what: something was acknowledged");
	cmp_ok($found, '>=', $acknowledged, "$what: nothing acknowledged is lost");
	cmp_ok($found, '<=', $acknowledged + 4, "$what: and nothing is extra");
}

foreach my $method (sort keys %methods)
{
  SKIP:
	{
		skip "$method: $methods{$method}", 1 if defined $methods{$method};

		my $node = create_loaded_node("crash_$method", $method);
		my $log = $node->basedir . '/acknowledged';
		my $before;
		my $load;

		# loads collect index entries; those of the initial ones, too few, do
		# not
		if (can_shuffle($node))
		{
			$node->append_conf('postgresql.conf', 'aio.debug_rows_before_batch = 0');
			$node->reload;
		}

		# a backend that is loading
		$before = $node->safe_psql('postgres', 'SELECT count(*) FROM ledger');
		$load = start_load($node, "$log.1");
		my $victim;
		until ($victim)
		{
			$victim = $node->safe_psql(
				'postgres', q{
				SELECT pid FROM pg_stat_activity
				 WHERE query LIKE 'COPY load%' AND state = 'active' LIMIT 1});
		}
		kill('KILL', $victim);
		IPC::Run::finish($load);
		$node->poll_query_until('postgres', undef, '')
		  or die 'server does not come back';
		check_ledger($node, $before, "$log.1", "$method, backend killed");
		check_table($node, "$method, backend killed");

		# everybody
		$before = $node->safe_psql('postgres', 'SELECT count(*) FROM ledger');
		$load = start_load($node, "$log.2");
		$node->kill9;
		IPC::Run::finish($load);
		start_after_kill($node);
		check_ledger($node, $before, "$log.2", "$method, postmaster killed");
		check_table($node, "$method, postmaster killed");

		# and it goes on
		command_ok([ pgbench_command($node, '--transactions' => 5) ],
			"$method: load after recovery");
		check_table($node, "$method, after recovery");
		check_log($node, $method);
		$node->stop;
	}
}

done_testing();
