# Copyright (c) 2026, the pgawait authors

# A standby receives WAL while what it has received before is synced, and tells
# of no WAL before it is on disk.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioLoad;
use AioReplay;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', replay_conf());
$primary->start;
fill($primary);
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
my $cascaded = PostgreSQL::Test::Cluster->new('cascaded');
$cascaded->init_from_backup($primary, 'backup');
$cascaded->enable_streaming($standby);
$_->append_conf('postgresql.conf', "fsync = on\nwal_receiver_status_interval = 1\ntrack_wal_io_timing = on\n") foreach $standby, $cascaded;
$standby->start;
$cascaded->start;
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'standby'\n");
$primary->reload;

# How many syncs have begun that the walreceiver has not waited for.
sub syncs { return $_[0]->safe_psql('postgres', q{SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE backend_type = 'walreceiver' AND kind = 'wal_sync'}) }

my $round = 0;
foreach my $method (sort keys %methods)
{
	SKIP:
	{
		skip "$method: $methods{$method}" if defined $methods{$method};
		$standby->append_conf('postgresql.conf', "io_method = $method\n");
		$standby->restart;
		my $before = syncs($standby);
		change_everything($primary, ++$round);
		foreach my $commit (qw(on remote_apply remote_write))
		{
			$primary->safe_psql('postgres', "SET synchronous_commit = $commit; CREATE TABLE t_${round}_$commit AS SELECT i FROM generate_series(1, 20000) i");
		}
		is($standby->safe_psql('postgres', "SELECT count(*) FROM t_${round}_remote_apply"), 20000, "$method: what has been applied is seen");

		# whole segments, which are closed
		$primary->safe_psql('postgres', "CREATE TABLE big_$round AS SELECT repeat(i::text, 100) FROM generate_series(1, 40000) i; SELECT pg_switch_wal()");
		$primary->wait_for_catchup($standby, 'flush');
		$primary->wait_for_replay_catchup($standby);
		is(contents($standby), contents($primary), "$method: the standby has what the primary has");
		$standby->wait_for_replay_catchup($cascaded, $primary);
		is(contents($cascaded), contents($primary), "$method: and the next one as well");

		# the process tells when it is idle, or ends
		$standby->restart;
		cmp_ok(syncs($standby), $method =~ /^(sync|libaio)$/ ? '==' : '>', $before, "$method: syncs that are not waited for");

		is($standby->safe_psql('postgres', "SELECT coalesce(max(max_in_flight), 1) FROM pg_stat_aio WHERE backend_type = 'walreceiver' AND kind = 'wal_sync'"), 1,
			"$method: one at a time");
		is($standby->safe_psql('postgres', "SELECT fsyncs > 0 AND fsync_time > 0 FROM pg_stat_io WHERE backend_type = 'walreceiver' AND object = 'wal' AND context = 'normal'"),
			't', "$method: which pg_stat_io counts");

		# what was said to be on disk is
		my $flushed = $primary->safe_psql('postgres', "CREATE TABLE last_$round AS SELECT 1 AS i; SELECT flush_lsn FROM pg_stat_replication WHERE application_name = 'standby'");
		$standby->stop('immediate');
		$standby->start;
		is($standby->safe_psql('postgres', "SELECT count(*) FROM last_$round"), 1, "$method: a commit that was acknowledged survives a crash");
	}
}

# The last one is promoted.
my $said = -s $cascaded->logfile;
$primary->stop;
$standby->promote;
is($standby->safe_psql('postgres', "SELECT count(*) FROM last_$round"), 1, 'promoted');

# The next one receives the end of the timeline, and goes on.
$standby->safe_psql('postgres', 'CREATE TABLE after_promotion AS SELECT 1 AS i');
$standby->wait_for_replay_catchup($cascaded);
my $log = slurp_file($cascaded->logfile, $said);
like($log, qr/restarted WAL streaming at \S+ on timeline 2/, 'the walreceiver goes on with the next timeline');
unlike($log, qr/could not send data to WAL stream/, 'and had told all there was to tell before');
check_log($_, $_->name) foreach $standby, $cascaded;

done_testing();
