# Copyright (c) 2026, the pgawait authors

# Crash recovery reads pages ahead, by each I/O method, with direct and with
# buffered I/O, and leaves the same bytes as without.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioLoad;
use AioReplay;
use Digest::MD5;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', replay_conf());
$node->start;
fill($node);
change_everything($node, 1);
# from here on pages are read that no record has made anew
$node->safe_psql('postgres', 'CHECKPOINT; ALTER SYSTEM SET full_page_writes = off');
$node->reload;
$node->poll_query_until('postgres', q{SELECT setting = 'off' FROM pg_settings WHERE name = 'full_page_writes'});
change_everything($node, 2);
change_everything($node, 3);
$node->stop('immediate');
my $aside = set_aside($node);

# Recover, and return how many pages were said to be read ahead, how many I/Os
# for that were seen, and a digest of the files.
my @files;
sub recover
{
	my ($method, $direct, $prefetch, $conf) = @_;

	put_back($node, $aside);
	$node->append_conf('postgresql.conf', "io_method = $method\ndebug_io_direct = '$direct'\nrecovery_prefetch = $prefetch\n" . ($conf // ''));
	$node->start;
	@files = files_of($node) unless @files;
	my ($ahead, $skipped) = split /\|/, $node->safe_psql('postgres',
		'SELECT prefetch, skip_init + skip_new + skip_fpw + skip_rep FROM pg_stat_recovery_prefetch');
	my ($reads, $begun) = split /\|/, $node->safe_psql('postgres',
		q{SELECT coalesce(sum(started), 0), coalesce(sum(started - completed_inline), 0) FROM pg_stat_aio WHERE backend_type = 'startup' AND kind = 'read'});
	$node->stop;

	my $digest = Digest::MD5->new;
	foreach my $file (@files)
	{
		open my $handle, '<:raw', $node->data_dir . "/$file" or die "$file: $!";
		$digest->addfile($handle);
		close $handle;
	}
	note "$method, $direct, $prefetch: $ahead ahead, $skipped skipped, $reads reads, of which $begun begin before they are needed";
	return ($ahead, $digest->hexdigest, $reads, $begun);
}

my ($none, $digest) = recover('worker', '', 'off');
is($none, 0, 'nothing is read ahead if the user does not want it');
$node->start;
my $contents = contents($node);
like($contents, qr/\n3\n1\n/, 'indexes are sound');
$node->stop;

foreach my $way (replay_ways())
{
	my ($method, $direct) = @$way;
	my $what = $method . ($direct ? ', direct' : ', buffered');
	my ($ahead, $found, $reads, $begun) = recover($method, $direct, 'try');

	is($found, $digest, "$what: the same bytes");
	cmp_ok($ahead, '>', 1000, "$what: pages are read ahead");
	cmp_ok($reads, '>', 1000, "$what: which our statistics count");
	cmp_ok($begun, $direct ? '>' : '<', $direct ? 1000 : $ahead / 10,
		"$what: " . ($direct ? 'reads begin before pages are needed' : 'the kernel is told of most pages'));
}
my $found;
($none, $found) = recover('sync', direct_io_works() ? 'data' : '', 'try');
is($found, $digest, 'io_method = sync: the same bytes');
is($none, 0, 'and nothing is read ahead, as in upstream') if direct_io_works();
(undef, $found) = recover('worker', '', 'try', "shared_buffers = 128kB\nmax_connections = 4\n");
is($found, $digest, 'with as few buffers as can be: the same bytes');
(undef, $found, undef, my $begun) = recover('worker', '', 'try', "maintenance_io_concurrency = 1\nio_combine_limit = 1\n");
is($found, $digest, 'one page at a time: the same bytes');
is($begun, 0, 'the kernel is told of each');

check_log($node, 'recovery');
command_ok([ 'pg_checksums', '--check', $node->data_dir ], 'all checksums are right');

# without a postmaster
put_back($node, $aside);
my ($stdout, $stderr);
IPC::Run::run([ 'postgres', '--single', '-F', '-c', 'exit_on_error=true', '-D', $node->data_dir, 'postgres' ],
	'<', \"SELECT 'rows ' || count(*) FROM load\n", '>', \$stdout, '2>', \$stderr);
my ($rows) = $contents =~ /^\w+\|(\d+)/;
like($stdout, qr/rows $rows/, 'recovery without a postmaster');

done_testing();
