# Copyright (c) 2026, the pgawait authors

# Recovery does not wait for the pages that it writes: victims in every segment
# of a file, restartpoints, and the checkpoint at the end of recovery; what is cut
# and dropped meanwhile stays so.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioLoad;
use AioReplay;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'there is no direct I/O here' unless direct_io_works();
my @methods = map { $_->[0] } grep { $_->[1] eq 'data' } replay_ways();

# How many writes of relations' pages a kind of process has made, and how many
# of them it has only started.
sub writes_of
{
	my ($node, $type) = @_;

	return split /\|/, $node->safe_psql('postgres', qq{
		SELECT (SELECT sum(writes) FROM pg_stat_io WHERE backend_type = '$type' AND object = 'relation'),
			coalesce((SELECT started FROM pg_stat_aio WHERE backend_type = '$type' AND kind = 'write'), 0)});
}

# Nearly all: once in a while there is no room for one more.
sub is_asynchronous
{
	my ($node, $type, $least, $what) = @_;
	my ($writes, $started) = writes_of($node, $type);

	note "$what: $writes writes by the $type, $started started";
	cmp_ok($writes, '>=', $least, "$what: the $type writes");
	cmp_ok($started, '>=', 0.8 * $writes, "$what: and does not wait for that");
}

sub lsns { return map { m|^(\w+)/(\w+)$| ? hex($1) << 32 | hex($2) : () } @_ }

# The last LSN of all pages that are on disk.
sub newest_page
{
	my ($node) = @_;
	my $newest = 0;

	foreach my $file (grep { m|/\d+(\.\d+)?$| } glob $node->data_dir . '/base/*/*')
	{
		open my $pages, '<:raw', $file or die "$file: $!";
		while (read($pages, my $page, 8192) == 8192)
		{
			my ($high, $low) = unpack 'LL', $page;
			my $lsn = $high << 32 | $low;
			$newest = $lsn if $lsn > $newest;
		}
	}
	return $newest;
}

# A table whose rows are in the second segment of its file, after a first one
# that is a hole.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', replay_conf());
$node->append_conf('postgresql.conf', "full_page_writes = off\nshared_buffers = 2MB\naio.write_buffers = 64\ndebug_io_direct = data\nio_max_concurrency = 64\n");
$node->start;
fill($node);
$node->safe_psql('postgres', 'CREATE TABLE far (i int, n int DEFAULT 0, filler text) WITH (fillfactor = 70)');
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('far')");
my $blocks = $node->safe_psql('postgres', q{SELECT setting FROM pg_settings WHERE name = 'segment_size'});
$node->stop;
truncate($file, $blocks * 8192) or die "$file: $!";
$node->start;
$node->safe_psql('postgres', q{INSERT INTO far (i, filler) SELECT i, repeat('x', 500) FROM generate_series(1, 8000) i});
cmp_ok(-s "$file.1", '>', 4 << 20, 'rows are in the second segment');
my $all = "WHERE ctid > '(" . ($blocks - 2) . ",0)'";

my $sum = 0;
foreach my $method (@methods)
{
	# what has been written before the crash is not written again
	$node->append_conf('postgresql.conf', "io_method = $method\nshared_buffers = 64MB\n");
	$node->restart;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->safe_psql('postgres', "UPDATE far SET n = n + 1 $all AND i % 2 = $_") foreach 0, 1;
	$sum += 8000;
	$node->stop('immediate');
	$node->append_conf('postgresql.conf', "shared_buffers = 2MB\naio.write_buffers = 64\n");
	$node->start;
	is_asynchronous($node, 'startup', 100, "$method, second segment");
	is($node->safe_psql('postgres', "SELECT sum(n) FROM far $all"), $sum, "$method: nothing is lost");
}

# Files shrink and go while pages of them are on their way, whose completion is
# delayed where that can be asked for.
my $delay = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_delay_completions'});
$node->append_conf('postgresql.conf', "aio.debug_delay_completions = 3\n") if $delay;
foreach my $round (1 .. 2)
{
	my $method = $methods[ $round % @methods ];

	# what has been written before the crash is not written again
	$node->append_conf('postgresql.conf', "io_method = $method\nshared_buffers = 64MB\n");
	$node->restart;
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->safe_psql('postgres', "UPDATE far SET n = n + 1 $all; DELETE FROM far $all; VACUUM far; INSERT INTO far VALUES (1, 1)") if $round == 2;
	change_everything($node, $round);
	my $wanted = contents($node);
	$node->stop('immediate');
	$node->append_conf('postgresql.conf', "shared_buffers = 2MB\naio.write_buffers = 64\n");
	$node->start;
	is_asynchronous($node, 'startup', 100, "$method, files that shrink and go");
	is(contents($node), $wanted, "$method: files shrink and go");
}
is($node->safe_psql('postgres', 'SELECT * FROM far'), '1|1|', 'even two segments');
ok(!-s "$file.1", 'of which one is left');
$node->stop;
check_log($node, 'crash recovery');
command_ok([ 'pg_checksums', '--check', $node->data_dir ], 'all checksums are right');

# A standby: its victims, and its restartpoints.  The position up to which WAL is
# needed is noted first.
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(has_archiving => 1, allows_streaming => 1);
$primary->append_conf('postgresql.conf', replay_conf());
$primary->append_conf('postgresql.conf', "full_page_writes = off\n");
$primary->start;
fill($primary);
$primary->backup('backup');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "io_method = $methods[-1]\ndebug_io_direct = data\nshared_buffers = 2MB\naio.write_buffers = 64\nio_max_concurrency = 64\n"
	. "log_min_messages = debug2\nlog_line_prefix = '%m [%p] %b '\n");
$standby->start;
foreach my $round (1 .. 3)
{
	change_everything($primary, $round);
	$primary->safe_psql('postgres', 'CHECKPOINT');
	$primary->wait_for_replay_catchup($standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
}
# the startup process tells when it is idle, or ends
$standby->restart;
is(contents($standby), contents($primary), 'the standby has what the primary has');
is_asynchronous($standby, 'checkpointer', 30, 'restartpoints');
is_asynchronous($standby, 'startup', 300, 'victims of a standby');

# The background writer writes nothing here, and notes what victims need.
like(slurp_file($standby->logfile), qr/background writer DEBUG:  updated min recovery point/,
	'the background writer notes what the startup process needs');

# No page is on disk of which the control file does not know that the WAL up to
# it has to be replayed.
change_everything($primary, 4);
$primary->wait_for_replay_catchup($standby);
$standby->stop('immediate');
my ($control) = run_command([ 'pg_controldata', $standby->data_dir ]);
my ($redo) = lsns($control =~ /Latest checkpoint's REDO location: +(\S+)/);
my ($needed) = lsns($control =~ /Minimum recovery ending location: +(\S+)/);
my $newest = newest_page($standby);
cmp_ok($newest, '>', $redo, 'pages have been written since the last restartpoint');
cmp_ok($newest, '<=', $needed, 'and the WAL that they need is known');
$standby->start;
$primary->wait_for_replay_catchup($standby);
is(contents($standby), contents($primary), 'the standby recovers from a crash');

# Recovery up to a target, where the checkpoint at the end writes what is dirty.
$primary->safe_psql('postgres', "UPDATE load SET b = some_uuid(id, 'last')");
$primary->safe_psql('postgres', "SELECT pg_create_restore_point('here')");
my $wanted = contents($primary);
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
$primary->stop;
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init_from_backup($primary, 'backup', has_restoring => 1, standby => 0);
$restored->append_conf('postgresql.conf', "io_method = $methods[-1]\ndebug_io_direct = data\nshared_buffers = 128MB\nio_max_concurrency = 64\n"
	. "recovery_target_name = 'here'\nrecovery_target_action = promote\narchive_mode = off\n");
$restored->start;
$restored->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()');
is(contents($restored), $wanted, 'restored');
is_asynchronous($restored, 'checkpointer', 30, 'checkpoint at the end of recovery');
$restored->stop('immediate');
$restored->start;
is(contents($restored), $wanted, 'and again, after a crash');
check_log($_, $_->name) foreach $standby, $restored;

done_testing();
