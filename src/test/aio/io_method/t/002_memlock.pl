
# Copyright (c) 2026, the pgawait authors

# Several servers of one account start with io_uring under the limit of locked
# memory that many systems have, and tasks work in them, with settings that
# nobody has touched.

use strict;
use warnings FATAL => 'all';

use Config;
use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $limit_kb = 8192;
my $servers = 4;

my %methods = io_methods();
plan skip_all => $methods{io_uring} if defined $methods{io_uring};

my $current = `sh -c 'ulimit -l'`;
chomp $current;
if ($current eq 'unlimited' || $current > $limit_kb)
{
	# limits are inherited: begin again below this one
	$ENV{PERL5LIB} = join($Config{path_sep}, @INC);
	exec('sh', '-c', "ulimit -l $limit_kb && exec \"\$@\"", 'sh', $^X, $0, @ARGV);
	die "could not begin again: $!";
}
note "limit of locked memory: $current kB";

my @nodes;
foreach my $i (1 .. $servers)
{
	my $node = PostgreSQL::Test::Cluster->new("memlock_$i");

	$node->init;
	$node->append_conf('postgresql.conf', 'io_method = io_uring');
	ok($node->start(fail_ok => 1), "server $i of $servers starts")
	  or diag(slurp_file($node->logfile));
	push @nodes, $node;
}
foreach my $node (@nodes)
{
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION aio;
		CREATE EXTENSION pg_buffercache;
		CREATE TABLE t AS SELECT n, md5(n::text) AS a, md5((-n)::text) AS b FROM generate_series(1, 40000) n;
		CREATE INDEX t_a ON t (a);
		CREATE INDEX t_b ON t (b);
		SELECT pg_buffercache_evict_relation(i) FROM unnest('{t_a,t_b}'::regclass[]) i;
	});
	# as many tasks as aio.max_tasks promises
	is( $node->safe_psql(
			'postgres', q{
			COPY t FROM PROGRAM 'for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4 5 6 7 8 9; do printf "%d\t%s\t%s\n" $i$j x$j$i x$i$j; done; done';
			COPY (SELECT n, md5('x' || n), md5('y' || n) FROM generate_series(1, 1000) n) TO '}
			  . $node->basedir . q{/rows';
			SELECT count(pg_buffercache_evict_relation(i)) FROM unnest('{t_a,t_b}'::regclass[]) i;
			SELECT aio_session_stats_reset();
			COPY t FROM '} . $node->basedir . q{/rows';
			SELECT tasks_suspended > 0, max_reads_in_flight > 1 FROM aio_session_stats()}),
		"2\n\nt|t",
		$node->name . ': tasks work');
}
$_->stop foreach @nodes;

done_testing();
