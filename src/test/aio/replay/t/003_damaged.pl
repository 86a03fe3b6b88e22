# Copyright (c) 2026, the pgawait authors

# A page that a record will make anew is not read before, since it may be torn.
# A page that is damaged fails recovery as it does without reading ahead.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioLoad;
use AioReplay;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', replay_conf() . "restart_after_crash = off\nmaintenance_io_concurrency = 8\n");
$node->start;
$node->safe_psql('postgres', q{
	CREATE TABLE t (i int PRIMARY KEY, n int DEFAULT 0, filler text) WITH (fillfactor = 50);
	INSERT INTO t SELECT i, 0, repeat('x', 100) FROM generate_series(1, 20000) i;
	VACUUM (FREEZE, ANALYZE) t});
my $file = $node->safe_psql('postgres', "SELECT pg_relation_filepath('t')");
my $rows = 'SELECT count(*), sum(n), sum(i) FROM t';

# Crash after these statements, which come after a checkpoint.
sub crash_after
{
	my ($full_page_writes, @statements) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET full_page_writes = $full_page_writes");
	$node->reload;
	$node->poll_query_until('postgres', qq{SELECT setting = '$full_page_writes' FROM pg_settings WHERE name = 'full_page_writes'});
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->safe_psql('postgres', $_) foreach @statements;
	my $contents = $node->safe_psql('postgres', $rows);
	$node->stop('immediate');
	return $contents;
}

# What the log says from here on about pages, without the time and the process.
sub messages
{
	my ($from) = @_;
	my $log = slurp_file($node->logfile, $from);

	return grep { /page|block|checksum/ && !/redo|STATEMENT/ } map { s/^.*?\] *//r } split /\n/, $log;
}

# Torn: the image of a page is followed by other records about it, so soon that
# they are decoded before the image is replayed, and not so soon that upstream
# remembers the page.
my $wanted = crash_after('on', q{
	DO $$
	BEGIN
		FOR page IN 0 .. 500 BY 10 LOOP
			FOR line IN 1 .. 2 LOOP
				UPDATE t SET n = line WHERE ctid = ANY (ARRAY(SELECT format('(%s,%s)', p, line)::tid FROM generate_series(page, page + 9) p));
			END LOOP;
		END LOOP;
	END $$});
damage($node, $file, $_) foreach 3, 4, 100, 250;
my $from = -s $node->logfile;
$node->start;
is($node->safe_psql('postgres', $rows), $wanted, 'torn pages are made anew');
is_deeply([ messages($from) ], [], 'and were not looked at before');
cmp_ok($node->safe_psql('postgres', 'SELECT skip_fpw FROM pg_stat_recovery_prefetch'), '>', 500, 'images are counted');

# Damaged: no record has an image.  The pages before it are read ahead, and the
# damaged one is met at its record.
$wanted = crash_after('off', 'UPDATE t SET n = n + 1 WHERE i % 25 = 3');
my $aside = set_aside($node);
my (%said, %fatal);
foreach my $prefetch ('off', 'on')
{
	put_back($node, $aside);
	damage($node, $file, 200);
	$node->append_conf('postgresql.conf', "recovery_prefetch = $prefetch\nio_method = worker\n");
	$from = -s $node->logfile;
	ok(!$node->start(fail_ok => 1), "recovery_prefetch = $prefetch: recovery fails");
	$said{$prefetch} = [ messages($from) ];
	($fatal{$prefetch}) = grep { /^FATAL/ } @{ $said{$prefetch} };
}
like($fatal{off}, qr/invalid page in block 200 of relation/, 'the damaged page is named');
is($fatal{on}, $fatal{off}, 'in the same words, if pages are read ahead');
$node->stop('immediate', fail_ok => 1);

# What the user takes in spite of its checksum, he takes when redo needs it.
foreach my $setting ('ignore_checksum_failure', 'zero_damaged_pages')
{
	my %found;

	foreach my $way ([ 'off', 'worker', '' ], map { [ 'on', @$_ ] } (replay_ways())[0, -1])
	{
		my ($prefetch, $method, $direct) = @$way;

		put_back($node, $aside);
		damage($node, $file, 200);
		$node->append_conf('postgresql.conf',
			"recovery_prefetch = $prefetch\nio_method = $method\ndebug_io_direct = '$direct'\n$setting = on\n");
		$from = -s $node->logfile;
		$node->start;
		$found{"$prefetch $method $direct"} = $node->safe_psql('postgres', $rows) . ', warnings: ' . grep { /^WARNING/ } messages($from);
		$node->stop('immediate');
	}
	my $without = delete $found{'off worker '};
	is($found{$_}, $without, "$setting: the same result with recovery_prefetch = $_") foreach sort keys %found;
}

done_testing();
