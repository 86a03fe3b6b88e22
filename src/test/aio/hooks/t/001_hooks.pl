# Copyright (c) 2026, the pgawait authors

# Every hook variable is free for extensions, whenever they are loaded, and what
# this server does for a plan does not depend on whether their hooks call ours.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Upstream gives these two a function at once.
my %set_by_upstream = map { $_ => 1 } qw(ldap_password_hook openssl_tls_init_hook);

my $node = create_cold_node('main', 'worker');
my ($bindir) = run_command([ 'pg_config', '--bindir' ]);
my ($symbols, $errors) = run_command([ 'nm', '-D', '--defined-only', "$bindir/postgres" ]);
is($errors, '', 'the names of variables can be had');
my @hooks = grep { !/^aio_/ && !$set_by_upstream{$_} } $symbols =~ /^[0-9a-f]+ [BbDd] (\w+_hook(?:_str|_permissive|_restrictive)?)$/mg;
cmp_ok(scalar @hooks, '>=', 25, 'there are as many hooks as there are known to be');

my $explain = 'EXPLAIN (ANALYZE, AIO, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF)';

# What is collected and looked up ahead with the extension there, as it says itself
sub check_what_is_done
{
	my ($how, $first) = @_;
	my $output = $node->safe_psql('postgres', qq{
		$first;
		CREATE FUNCTION pg_temp.called() RETURNS text LANGUAGE c AS 'test_aio_hooks', 'test_aio_hooks_called';
		BEGIN;
		$explain INSERT INTO t SELECT i, hashint4(i) FROM generate_series(100001, 104000) i;
		ROLLBACK;
		SELECT FROM pg_buffercache_evict_all();
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
		$explain SELECT * FROM keys JOIN t ON t.b = keys.b;
		SELECT pg_temp.called()});

	like($output, qr/Index t_b: entries=\d{3,} /, "$how: index entries are collected");
	like($output, qr/AIO lookup: started=[1-9]/, "$how: rows are looked up ahead");
	like($output, qr/runs=some finishes=some nodes=some/, "$how: hooks of the extension are called");
	return;
}

$node->safe_psql('postgres', q{
	CREATE TABLE t (a int, b int);
	INSERT INTO t SELECT i, hashint4(i) FROM generate_series(1, 40000) i;
	CREATE INDEX t_b ON t (b);
	CREATE TABLE keys AS SELECT b FROM t WHERE a % 20 = 0;
	VACUUM ANALYZE});

# Later, in a session: what only the server's start can use is ours then.
my $free = join ', ', grep { !/^shmem_/ } @hooks;
check_what_is_done('loaded by a session', qq{SET test_aio_hooks.names = '$free'; LOAD 'test_aio_hooks'});

# At the start of the server, alone and last of several
foreach my $libraries ('test_aio_hooks', 'test_aio_kinds, test_aio_hooks')
{
	$node->append_conf('postgresql.conf', qq{
		shared_preload_libraries = '$libraries'
		test_aio_hooks.names = '@{[ join ', ', @hooks ]}'
	});
	my $start = -s $node->logfile;
	$node->restart;
	ok($node->log_contains(scalar(@hooks) . ' hooks are free', $start), "$libraries: all hooks are free");
	check_what_is_done($libraries, '');
}

done_testing();
