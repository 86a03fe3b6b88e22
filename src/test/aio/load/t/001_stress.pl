
# Copyright (c) 2026, the pgawait authors

# Several clients load one table with an index of every kind, far larger than
# shared_buffers, while autovacuum and checkpoints run.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

foreach my $method (sort keys %methods)
{
  SKIP:
	{
		skip "$method: $methods{$method}", 1 if defined $methods{$method};

		my $node = create_loaded_node($method, $method);

		# this is about inserts that are awaited
		my ($suspended, $parallel) = split /\|/, $node->safe_psql(
			'postgres', qq{
			COPY load (words) FROM '@{[ rows_file() ]}';
			INSERT INTO ledger VALUES (5, 300);
			SELECT tasks_suspended > 100, max_reads_in_flight > 4 FROM aio_session_stats()});
		is($suspended, 't', "$method: tasks are suspended");
		is($parallel, 't', "$method: several reads are in flight");

		command_ok([ pgbench_command($node, '--transactions' => 20) ],
			"$method: load");
		check_table($node, $method);

		# also where nothing is awaited for long, in any order
		if (can_shuffle($node))
		{
			local $ENV{PGOPTIONS} =
			  '-c aio.debug_suspend=on -c aio.debug_rows_before_batch=0 -c aio.index_batch_memory=16kB';

			command_ok([ pgbench_command($node, '--transactions' => 10) ],
				"$method: load, shuffled");
			check_table($node, "$method, shuffled");
		}
		check_log($node, $method);
		$node->stop;
	}
}

done_testing();
