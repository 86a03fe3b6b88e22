
# Copyright (c) 2026, the pgawait authors

# All processes of the server are killed under load, or its postmaster, again
# and again.  The
# clients know which commits have been acknowledged: those are there, each
# client's in order and without gaps, and nothing that nobody has sent.
#
# AIO_KILL_ROUNDS says how often (4); the load is another one in each round.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $rounds = $ENV{AIO_KILL_ROUNDS} // 4;
my $seed = $ENV{AIO_KILL_SEED} // time;
srand($seed);
note "AIO_KILL_SEED=$seed";

my %methods = io_methods();
my @usable = grep { !$methods{$_} } sort keys %methods;
my $directory = $PostgreSQL::Test::Utils::tmp_check;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--wal-segsize' => 1 ]);
$node->append_conf(
	'postgresql.conf', q{
	fsync = on
	shared_buffers = 16MB
	io_max_concurrency = 32
	max_connections = 30
	max_wal_size = 64MB
	autovacuum = off
	log_statement = none
	log_checkpoints = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE TABLE acknowledged (kind text, client int, n int, filler text);
	CREATE INDEX ON acknowledged (n);
	CREATE TABLE bulk (a int, b text)});
$node->stop;

# Scripts number their transactions; pgbench logs each when it has the reply.
append_to_file("$directory/single.sql", q{\set n :n + 1
INSERT INTO acknowledged VALUES ('single', :client_id, :n, repeat('s', :client_id * 100));
});
append_to_file("$directory/piped.sql", "\\startpipeline\n" . (q{\set n :n + 1
INSERT INTO acknowledged VALUES ('piped', :client_id, :n, 'p');
\syncpipeline
} x 20) . "\\endpipeline\n");
append_to_file("$directory/bulk.sql", "INSERT INTO bulk SELECT i, repeat('b', 300) FROM generate_series(1, 2000) i;\n");
my %width = (single => 1, piped => 20);

# How many transactions has each client seen end?  Its log may lack the last.
sub acknowledged
{
	my ($kind) = @_;
	my %count;

	foreach my $file (glob "$directory/log_$kind.*")
	{
		foreach my $line (split /\n/, slurp_file($file))
		{
			my ($client, $number) = $line =~ /^(\d+) (\d+) \d/ or next;
			$count{$client} = $number * $width{$kind};
		}
		unlink $file;
	}
	return %count;
}

my ($lost, $invented, $checked) = (0, 0, 0);
foreach my $round (1 .. $rounds)
{
	my $method = $usable[ $round % @usable ];
	my @sync = qw(fdatasync fsync open_datasync);
	my $conf = join "\n", "io_method = $method", "aio.pipelined_commits = on",
	  'wal_sync_method = ' . $sync[ int rand @sync ],
	  'wal_buffers = ' . (qw(64kB 512kB 4MB))[ int rand 3 ],
	  'aio.wal_syncs = ' . (1 + int rand 4),
	  'aio.wal_write_ahead = ' . (qw(8kB 64kB 256kB))[ int rand 3 ],
	  'synchronous_commit = on';
	$node->append_conf('postgresql.conf', $conf);
	$node->start;
	$node->safe_psql('postgres', 'TRUNCATE acknowledged, bulk');

	my @loads = map {
		my ($kind, $clients) = @$_;
		IPC::Run::start(
			[ 'pgbench', '--no-vacuum', '--client' => $clients, '--jobs' => 1, '--time' => 60,
			  '--protocol' => 'prepared', '--define' => 'n=0', '--file' => "$directory/$kind.sql",
			  ($width{$kind} ? ('--log', '--log-prefix' => "$directory/log_$kind") : ()),
			  '--host' => $node->host, '--port' => $node->port, 'postgres' ],
			'>', \my $out, '2>', \my $err);
	} ([ 'single', 4 ], [ 'piped', 2 ], [ 'bulk', 1 ]);
	$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM acknowledged WHERE kind = 'single'});
	usleep(int rand 400_000);

	# all at once, as far as that can be done; or the others are left to find
	# out that the postmaster has gone
	my $postmaster = $node->{_pid};
	my @children = split /\s+/, `ps -o pid= --ppid $postmaster` =~ s/^\s+//r;
	@children = () if $round % 4 > 1;
	kill 'KILL', $postmaster, @children;
	$node->{_pid} = undef;
	$_->finish foreach @loads;
	start_after_kill($node);

	foreach my $kind (sort keys %width)
	{
		my %acknowledged = acknowledged($kind);
		my %found;
		foreach (split /\n/, $node->safe_psql('postgres', "SELECT client, count(*), count(DISTINCT n), min(n), max(n) FROM acknowledged WHERE kind = '$kind' GROUP BY client"))
		{
			my ($client, $rows, $distinct, $min, $max) = split /\|/;
			$found{$client} = $max;
			# a prefix of what the client has sent, each once
			$invented++ unless $rows == $distinct && $min == 1 && $max == $rows;
			$invented++ if $max > ($acknowledged{$client} // 0) + $width{$kind};
		}
		foreach my $client (keys %acknowledged)
		{
			$lost += $acknowledged{$client} > ($found{$client} // 0) ? 1 : 0;
			$checked += $acknowledged{$client};
		}
	}
	$invented++ if $node->safe_psql('postgres', 'SELECT count(*) % 2000 FROM bulk') != 0;
	$node->stop('fast');
}
is($lost, 0, "no acknowledged commit is lost in $rounds rounds");
is($invented, 0, 'nothing is there that was not sent, and no half transaction');
cmp_ok($checked, '>=', $rounds, 'commits were acknowledged');
note "$checked acknowledged commits checked";
done_testing();
