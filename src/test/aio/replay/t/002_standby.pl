# Copyright (c) 2026, the pgawait authors

# A standby that reads ahead replays whatever its primary does, while it is
# queried: files that are cut, emptied, dropped and made again, with their old
# names, too; and goes on after a pause, a promotion and a switch of timelines.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioLoad;
use AioReplay;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @all_ways = grep { $_->[1] eq (direct_io_works() ? 'data' : '') } replay_ways();
# two are enough; libaio may be all that this run tests
my @ways = grep { $_->[0] ne 'libaio' } @all_ways;
@ways = @all_ways if !@ways;
my ($first, $second) = @ways > 1 ? @ways : (@ways, @ways);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', replay_conf());
$primary->append_conf(
	'postgresql.conf', q{
	full_page_writes = off
	wal_keep_size = 2GB
	allow_in_place_tablespaces = on
});
$primary->start;
fill($primary);
$primary->backup('backup');

# the second standby follows the first
my ($standby, $cascade) = map { PostgreSQL::Test::Cluster->new($_) } ('standby', 'cascade');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "io_method = $first->[0]\ndebug_io_direct = '$first->[1]'\nmax_standby_streaming_delay = -1\nhot_standby_feedback = off\n");
$standby->start;
$cascade->init_from_backup($primary, 'backup', has_streaming => 1);
$cascade->append_conf('postgresql.conf', "io_method = $second->[0]\ndebug_io_direct = '$second->[1]'\n");
$cascade->enable_streaming($standby);
$cascade->start;

sub catch_up
{
	my ($from, $node) = @_;

	($node == $cascade ? $standby : $primary)->wait_for_replay_catchup($node, $from);
}

sub same
{
	my ($what, $from, @nodes) = @_;
	my $wanted = contents($from);

	foreach my $node (@nodes)
	{
		catch_up($from, $node);
		is(contents($node), $wanted, "$what: " . $node->name . ' has what ' . $from->name . ' has');
	}
}

change_everything($primary, 1);
foreach my $node ($standby, $cascade)
{
	catch_up($primary, $node);
	cmp_ok($node->safe_psql('postgres', 'SELECT prefetch FROM pg_stat_recovery_prefetch'), '>', 500, $node->name . ' reads ahead');
}
same('changes', $primary, $standby, $cascade);

# A query on the standby has a page pinned that VACUUM has cleaned up, so the
# record waits for the query; nothing else is in its way.
$primary->safe_psql('postgres', 'CREATE TABLE pinned AS SELECT i FROM generate_series(1, 1000) i; VACUUM FREEZE pinned; DELETE FROM pinned WHERE i < 500');
catch_up($primary, $standby);
my $reader = $standby->background_psql('postgres');
$reader->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT * FROM pinned; FETCH 1 FROM c');
$primary->safe_psql('postgres', 'VACUUM pinned; UPDATE load SET a = b WHERE id % 50 = 0');
ok( $standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event IN ('BufferPin', 'RecoveryConflictSnapshot')}),
	'the standby waits for a query');
is($reader->query_safe('FETCH 2 FROM c'), "501\n502", 'which goes on');
$reader->query_safe('COMMIT');
$reader->quit;
same('cleanup', $primary, $standby);

# Settings come and go.
foreach my $setting ('off', 'on', 'try')
{
	$standby->safe_psql('postgres', "ALTER SYSTEM SET recovery_prefetch = $setting; ALTER SYSTEM SET maintenance_io_concurrency = " . ($setting eq 'on' ? 1 : 32));
	$standby->reload;
	$primary->safe_psql('postgres', "UPDATE load SET b = some_uuid(id, '$setting') WHERE id % 20 = 0");
}
same('settings', $primary, $standby, $cascade);

# A pause.  Nothing is in flight meanwhile.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$primary->safe_psql('postgres', "UPDATE load SET b = some_uuid(id, 'paused') WHERE id % 10 = 0");
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'});
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_aios JOIN pg_stat_activity USING (pid) WHERE backend_type = 'startup'}),
	0, 'no read is in flight while replay pauses');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
same('pause', $primary, $standby);

# Files of the same name, of which an I/O worker may have the old ones open: a
# database with an OID of our choice, made of another one in both ways, dropped,
# and made again of what that has become; and one that moves away and back.
my $name = 50000;
$primary->safe_psql('postgres', "CREATE DATABASE model");
$primary->safe_psql('model', q{CREATE TABLE t (i int, filler text); INSERT INTO t SELECT i, repeat('a', 800) FROM generate_series(1, 4000) i; CREATE INDEX ON t (i)});
$primary->safe_psql('postgres', "CREATE TABLESPACE away LOCATION ''");
foreach my $strategy ('file_copy', 'wal_log', 'file_copy')
{
	$primary->safe_psql('postgres', "CREATE DATABASE copy OID $name STRATEGY $strategy TEMPLATE model");
	$primary->safe_psql('copy', "UPDATE t SET filler = '$strategy' WHERE i % 9 = 0; DELETE FROM t WHERE i % 10 = 0");
	$primary->safe_psql('postgres', 'ALTER DATABASE copy SET TABLESPACE away');
	$primary->safe_psql('copy', "UPDATE t SET filler = 'away' WHERE i % 7 = 0; INSERT INTO t SELECT i, 'away' FROM generate_series(1, 1000) i");
	$primary->safe_psql('postgres', 'ALTER DATABASE copy SET TABLESPACE pg_default');
	$primary->safe_psql('copy', "UPDATE t SET filler = 'back' WHERE i % 6 = 0");
	my $query = "SELECT md5(string_agg(t::text, '' ORDER BY i, filler)), count(*) FROM t";
	my $wanted = $primary->safe_psql('copy', $query);
	foreach my $node ($standby, $cascade)
	{
		catch_up($primary, $node);
		is($node->safe_psql('copy', $query), $wanted, "$strategy: the database on " . $node->name . ' is the one on the primary');
	}
	$primary->safe_psql('postgres', 'DROP DATABASE copy');
	$primary->safe_psql('model', "UPDATE t SET filler = filler || 'b'; VACUUM t");
}
$primary->safe_psql('postgres', 'DROP TABLESPACE away; DROP DATABASE model');

# Every page is compared with the primary's, after every record.
$primary->safe_psql('postgres', "ALTER SYSTEM SET wal_consistency_checking = 'all'");
$primary->reload;
$primary->safe_psql('postgres', "UPDATE load SET a = some_uuid(id, 'checked') WHERE id % 40 = 0; VACUUM load");
$primary->safe_psql('postgres', "ALTER SYSTEM RESET wal_consistency_checking");
$primary->reload;
same('checked', $primary, $standby, $cascade);

# The primary dies; the first standby is promoted, and the second follows it to
# the new timeline.
$primary->safe_psql('postgres', "UPDATE load SET a = some_uuid(id, 'last') WHERE id % 4 = 0");
catch_up($primary, $standby);
$primary->stop('immediate');
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT count(*) FROM pg_aios WHERE operation = 'readv'}), 0, 'no read is in flight after a promotion');
change_everything($standby, 2);
$standby->safe_psql('postgres', 'VACUUM FREEZE load');
same('promoted', $standby, $cascade);

$standby->stop('immediate');
$standby->start;
same('recovered', $standby, $cascade);
check_log($_, $_->name) foreach $standby, $cascade;

done_testing();
