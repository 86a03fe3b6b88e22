# Copyright (c) 2026, the pgawait authors

# Recovery from an archive reads ahead, and stops where it is told to, whatever
# is on its way: at a target in the middle, before a damaged page that is only
# needed later; and while a command does not end.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use File::Copy;
use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioLoad;
use AioReplay;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my ($method, $direct) = @{ (grep { $_->[0] eq 'io_uring' } replay_ways())[-1] // (replay_ways())[-1] };

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(has_archiving => 1, allows_streaming => 1, extra => ['--wal-segsize=1']);
$primary->append_conf('postgresql.conf', replay_conf());
$primary->append_conf('postgresql.conf', "full_page_writes = off\nwal_keep_size = 0\n");
$primary->start;
fill($primary);
$primary->safe_psql('postgres', 'CREATE TABLE late AS SELECT i FROM generate_series(1, 3000) i; VACUUM late');
my $late = $primary->safe_psql('postgres', "SELECT pg_relation_filepath('late')");
$primary->backup('backup');

# A digest of what there is at some points, and records after each that are
# decoded when it is reached.
my %digests;
foreach my $round (1 .. 3)
{
	change_everything($primary, $round);
	$primary->safe_psql('postgres', "SELECT pg_create_restore_point('point $round')");
	$primary->safe_psql('postgres', 'UPDATE late SET i = -i WHERE abs(i) % 500 = 0');
	$digests{$round} = contents($primary);
	$primary->safe_psql('postgres', "UPDATE load SET b = some_uuid(id, 'after $round') WHERE id % 30 = 0");
}
# records that begin in one segment, and end in the next
$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(false, 'small', repeat('x', i % 1000)) FROM generate_series(1, 10000) i});
my $middle = $primary->safe_psql('postgres', "SELECT pg_walfile_name(pg_current_wal_lsn() - 2 * 1024 * 1024)");
my $wanted = contents($primary);
my $last = $primary->safe_psql('postgres', 'SELECT pg_walfile_name(pg_current_wal_lsn())');
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
$primary->poll_query_until('postgres', "SELECT last_archived_wal >= '$last' FROM pg_stat_archiver");

sub restored
{
	my ($name, $conf, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($primary, 'backup', has_restoring => 1, standby => $options{standby} // 0);
	$node->append_conf('postgresql.conf', "io_method = $method\ndebug_io_direct = '$direct'\narchive_mode = off\n$conf");
	return $node;
}

# Point in time, with reads on their way for what comes after it.
foreach my $round (1, 2)
{
	my $node = restored("point_$round", "recovery_target_name = 'point $round'\nrecovery_target_action = promote\n");

	# which is not needed
	damage($node, $late, 2) if $round == 1;
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	is(contents($node), $digests{$round}, "recovered to point $round");
	like(slurp_file($node->logfile), qr/invalid page in block 2 of relation "$late"/, 'with a damaged page on its way')
	  if $round == 1;
	cmp_ok($node->safe_psql('postgres', 'SELECT prefetch FROM pg_stat_recovery_prefetch'), '>', 100, 'with pages read ahead');
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_aios WHERE operation = 'readv'}), 0, 'and none on its way afterwards');
	$node->safe_psql('postgres', 'VACUUM FREEZE load');
	change_everything($node, 5);
	$node->stop;
}

# Paused at a target; then the rest.
my $node = restored('paused', "recovery_target_name = 'point 1'\nrecovery_target_action = pause\nhot_standby = on\n");
$node->start;
$node->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'});
is(contents($node), $digests{1}, 'the rows at the target are seen while recovery pauses');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_aios JOIN pg_stat_activity USING (pid) WHERE backend_type = 'startup'}),
	0, 'nothing is on its way');
$node->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is(contents($node), $digests{1}, 'promoted');
$node->stop;

# The archive ends in the middle of a record: what is replayed meanwhile is not
# a reason to ask for the same files again.
my %asked;
my $part = $primary->basedir . '/part';
mkdir $part or die $!;
foreach my $file (grep { $_ le $middle } map { basename($_) } glob($primary->archive_dir . '/*'))
{
	copy($primary->archive_dir . "/$file", "$part/$file") or die $!;
}
foreach my $way ($method, 'sync')
{
	my $log = $primary->basedir . "/asked_$way";

	$node = restored("ends_$way", "restore_command = 'echo %f >>$log; cp $part/%f %p'\nio_method = $way\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
	is(contents($node), $wanted, "$way: what is there has been replayed");
	$asked{$way} = slurp_file($log);
	$node->stop;
}
like($asked{sync}, qr/^$middle$/m, 'files are asked for');
is($asked{$method}, $asked{sync}, 'the same files, as often, as by upstream');

# A command that does not end until it is told to: nothing is on its way
# meanwhile, queries go on, and the server can be stopped.
my $gate = $primary->basedir . '/gate';
my $waiting = $primary->basedir . '/waiting';
my $archive = $primary->archive_dir;
$node = restored('waits', "restore_command = 'test %f != $last || { echo yes >$waiting; while test ! -e $gate; do sleep 0.1; done; }; cp $archive/%f %p'\n", standby => 1);
append_to_file($waiting, '');
$node->start;
$node->poll_query_until("postgres", "SELECT pg_read_file('$waiting') ~ 'yes'");
is($node->safe_psql('postgres', q{SELECT wait_event FROM pg_stat_activity WHERE backend_type = 'startup'}),
	'RestoreCommand', 'a command restores a file');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_aios JOIN pg_stat_activity USING (pid) WHERE backend_type = 'startup'}),
	0, 'nothing is on its way meanwhile');
like($node->safe_psql('postgres', 'SELECT count(*) FROM load'), qr/^[1-9]/, 'queries are answered');
$node->stop('fast');

# without the file it may not become consistent again: how far records have been
# replayed when it is asked for depends on how far they are decoded ahead
append_to_file($gate, '');
$node->start;
$node->promote;
is(contents($node), $wanted, 'all of the archive has been replayed');
$node->stop;

done_testing();
