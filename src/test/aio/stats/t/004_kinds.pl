# Copyright (c) 2026, the pgawait authors

# Extensions take the numbers for kinds of statistics that they have built in,
# and ours have others then.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', qq{
	io_method = worker
	autovacuum = off
	shared_buffers = 4MB
	max_connections = 10
	debug_io_direct = '@{[ direct_io_works() ? 'data' : '' ]}'
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE TABLE t (a uuid);
	CREATE INDEX t_a ON t (a) WITH (fillfactor = 40);
	INSERT INTO t SELECT gen_random_uuid() FROM generate_series(1, 60000);
	CHECKPOINT});
my $load = q{INSERT INTO t SELECT gen_random_uuid() FROM generate_series(1, 20000); SELECT pg_stat_force_next_flush()};
my $ours = q{SELECT entries FROM pg_stat_aio_relation WHERE indexrelname = 't_a'};
my $theirs = q{SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 't'};

# Files of statistics, which are there while the server is stopped.
sub files
{
	return join ' ', map { m{/([^/]*)$} ? $1 : () } sort glob($node->data_dir . '/pg_stat/pgawait*');
}

# Start it again, with the numbers from this to that one taken.
sub take
{
	my ($first, $last) = @_;
	$node->append_conf('postgresql.conf', qq{
		shared_preload_libraries = 'test_aio_kinds'
		test_aio_kinds.first = $first
		test_aio_kinds.last = $last
	});
	$node->start;
	return;
}

$node->safe_psql('postgres', "SELECT aio_stat_reset_index('t_a'::regclass)");
$node->safe_psql('postgres', $load);
my $counted = $node->safe_psql('postgres', $ours);
my $inserted = $node->safe_psql('postgres', $theirs);
cmp_ok($counted, '>', 0, 'entries of an index are counted');
$node->stop;
is(files(), 'pgawait-4-31-32.stat', 'the last numbers are taken');

take(31, 32);
is($node->safe_psql('postgres', $ours), '', 'with other numbers, they are counted anew');
is($node->safe_psql('postgres', $theirs), $inserted, 'and what PostgreSQL has counted is kept');
$node->safe_psql('postgres', $load);
$counted = $node->safe_psql('postgres', $ours);
cmp_ok($counted, '>', 0, 'they are counted');
$node->safe_psql('postgres', q{SELECT pg_stat_reset_shared()});
$node->stop;
is(files(), 'pgawait-4-29-30.stat', 'with the last numbers that are free');
$node->start;
is($node->safe_psql('postgres', $ours), $counted, 'and they are kept');
unlike(slurp_file($node->logfile), qr/WARNING/, 'nothing of it is unusual');
$node->stop;

take(25, 29);
is($node->safe_psql('postgres', $ours), '', 'with the numbers that they had at first, old ones are not taken for new ones');
$node->safe_psql('postgres', $load);
cmp_ok($node->safe_psql('postgres', $ours), '>', 0, 'they are counted');
$node->stop;

take(24, 31);
$node->safe_psql('postgres', $load);
like(slurp_file($node->logfile), qr/WARNING:  there are no statistics of asynchronous I\/O/, 'where nearly all numbers are taken, there are none');
is($node->safe_psql('postgres', q{SELECT (SELECT count(*) FROM pg_stat_aio) + (SELECT count(*) FROM pg_stat_aio_latency) + (SELECT count(*) FROM pg_stat_aio_depth) + (SELECT count(*) FROM pg_stat_aio_relation WHERE entries IS NOT NULL)}),
	0, 'they are empty');
is($node->psql('postgres', q{SELECT aio_stat_reset(), aio_stat_reset_index('t_a'::regclass); DROP INDEX t_a; REINDEX TABLE t; SELECT pg_stat_reset_shared()}),
	0, 'and can be reset');
$node->stop;

done_testing();
