
# Copyright (c) 2026, the pgawait authors

# Who reads WAL while it is being written by several at a time: a base backup, a
# standby, a second one that follows it to a new timeline, a subscription, and
# pg_receivewal, all under load.  None gets anything that is not flushed, and
# all get everything.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my %methods = io_methods();
my $directory = $PostgreSQL::Test::Utils::tmp_check;
append_to_file("$directory/small.sql", "INSERT INTO t VALUES (:client_id, 'small');\n");
append_to_file("$directory/large.sql", "INSERT INTO t SELECT i, repeat('l', 300) FROM generate_series(1, 1000) i;\n");

# A load in the background, until that much has been done.
sub begin_load
{
	my ($node, $transactions) = @_;
	return IPC::Run::start(
		[ 'pgbench', '--no-vacuum', '--client' => 4, '--jobs' => 1, '--transactions' => $transactions,
		  '--file' => "$directory/small.sql\@3", '--file' => "$directory/large.sql\@1",
		  '--host' => $node->host, '--port' => $node->port, 'postgres' ],
		'>', \my $out, '2>', \my $err);
}

# Wait until a server that follows another one has as many marks.  What it has
# received may end within a record, at the end of a segment, when the other one
# is promoted.  Upstream's startup process then asks for the segment that comes
# next on the new timeline, but begins to read in the one before, and panics.
# It finds its way when it is started again; nothing else may go wrong.  The log
# is looked at from 'log' on.
sub wait_for_marks
{
	my ($node, $marks, $log) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my ($ret, $out) = $node->psql('postgres', 'SELECT count(*) FROM mark');
		return if $ret == 0 && $out eq $marks;
		if ($node->log_contains(qr/contrecord.*PANIC:  could not open file "pg_wal\/.*terminated by signal 6/s, $log))
		{
			note 'the follower has met the bug of upstream';
			$log = -s $node->logfile;
			$node->stop('immediate', fail_ok => 1);
			$node->start;
		}
		usleep(100_000);
	}
	die 'replication does not go on';
}

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	my $primary = PostgreSQL::Test::Cluster->new("primary_$method");
	$primary->init(allows_streaming => 'logical', extra => [ '--wal-segsize' => 1 ]);
	$primary->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		fsync = on
		wal_buffers = 256kB
		max_connections = 20
		io_max_concurrency = 32
		wal_keep_size = 1GB
		debug_io_direct = '@{[ $method eq 'libaio' ? 'wal' : '' ]}'
		checkpoint_timeout = 1h
		log_statement = none
	});
	$primary->start;
	$primary->safe_psql('postgres', q{
		CREATE TABLE t (a int, b text);
		CREATE TABLE mark (name text PRIMARY KEY);
		CREATE PUBLICATION p FOR TABLE t, mark;
		SELECT pg_create_physical_replication_slot('received', true)});

	my $subscriber = PostgreSQL::Test::Cluster->new("subscriber_$method");
	$subscriber->init;
	$subscriber->append_conf('postgresql.conf', "io_method = $method\nmax_connections = 20\nio_max_concurrency = 32\nlog_statement = none");
	$subscriber->start;
	$subscriber->safe_psql('postgres', q{CREATE TABLE t (a int, b text); CREATE TABLE mark (name text PRIMARY KEY)});
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '@{[ $primary->connstr ]} dbname=postgres' PUBLICATION p");
	$subscriber->wait_for_subscription_sync($primary, 's');

	my $received = "$directory/received_$method";
	mkdir $received;
	my $receiver = IPC::Run::start(
		[ 'pg_receivewal', '--no-loop', '--slot' => 'received', '--directory' => $received,
		  '--host' => $primary->host, '--port' => $primary->port ], '>', \my $rout, '2>', \my $rerr);
	$primary->poll_query_until('postgres', q{SELECT active FROM pg_replication_slots WHERE slot_name = 'received'}) or die 'pg_receivewal does not stream';

	# a backup and a standby begin while others write
	my $load = begin_load($primary, 100);
	$primary->backup('backup');
	my $standby = PostgreSQL::Test::Cluster->new("standby_$method");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->start;
	$standby->backup('backup');
	my $follower = PostgreSQL::Test::Cluster->new("follower_$method");
	$follower->init_from_backup($standby, 'backup', has_streaming => 1);
	$follower->start;
	ok($load->finish, "$method: a load while WAL is read");

	# everybody gets all of it
	$primary->safe_psql('postgres', q{INSERT INTO mark VALUES ('end')});
	my $rows = $primary->safe_psql('postgres', q{SELECT count(*), sum(a), count(DISTINCT b) FROM t});
	my $end = $primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
	foreach my $other ($standby, $follower, $subscriber)
	{
		$other->poll_query_until('postgres', q{SELECT count(*) = 1 FROM mark}) or die 'replication does not go on';
		is($other->safe_psql('postgres', q{SELECT count(*), sum(a), count(DISTINCT b) FROM t}), $rows, "$method: @{[ $other->name ]} has all rows");
	}
	my $last = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
	$primary->poll_query_until('postgres', qq{SELECT restart_lsn > '$end' FROM pg_replication_slots WHERE slot_name = 'received'}) or die 'pg_receivewal does not go on';
	my @segments = sort grep { /^[0-9A-F]{24}$/ } slurp_dir($received);
	my @differ = grep { slurp_file("$received/$_") ne slurp_file($primary->data_dir . "/pg_wal/$_") } @segments;
	is("@differ", '', "$method: what pg_receivewal has is what is in the files");
	cmp_ok(scalar @segments, '>', 10, "$method: of many segments");

	# the standby is promoted while there is a load, and the other follows
	my $lost = begin_load($primary, 100);
	$standby->poll_query_until('postgres', q{SELECT count(*) > 1000 + } . (split /\|/, $rows)[0] . q{ FROM t}) or die 'the load does not reach the standby';
	my $log = -s $follower->logfile;
	$standby->promote;
	ok($lost->finish, "$method: a load that others have left behind");
	ok(begin_load($standby, 50)->finish, "$method: a load on the new timeline");
	$standby->safe_psql('postgres', q{INSERT INTO mark VALUES ('new timeline')});
	wait_for_marks($follower, 2, $log);
	is($follower->safe_psql('postgres', q{SELECT count(*), sum(a), count(DISTINCT b) FROM t}),
		$standby->safe_psql('postgres', q{SELECT count(*), sum(a), count(DISTINCT b) FROM t}), "$method: the follower has what the new primary has");

	$receiver->kill_kill;
	$_->stop('immediate') foreach $follower, $standby, $subscriber, $primary;
	$standby->start;
	is($standby->safe_psql('postgres', q{SELECT count(*) FROM mark}), 2, "$method: the new primary has it after a crash, too");
	$standby->stop;
}
done_testing();
