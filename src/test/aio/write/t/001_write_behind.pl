# Copyright (c) 2026, the pgawait authors

# Dirty victims are written without waiting: with little memory and many
# clients, through crashes, and with every I/O method.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

foreach my $case (writing_ways())
{
	my ($io_method, $direct) = @$case;
	my $method = $io_method . ($direct ? '' : '_buffered');
	my $node = PostgreSQL::Test::Cluster->new($method);
	$node->init;
	$node->append_conf('postgresql.conf',
		"io_method = $io_method\nshared_buffers = 1MB\nio_max_concurrency = 32\ndebug_io_direct = '$direct'\nmax_connections = 20\nautovacuum = on\nautovacuum_naptime = 1s\nmax_wal_size = 64MB");
	$node->start;
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION amcheck;
		CREATE TABLE t (id int PRIMARY KEY, a uuid DEFAULT gen_random_uuid(), b uuid DEFAULT gen_random_uuid(), n int DEFAULT 0);
		CREATE INDEX t_a ON t (a);
		CREATE INDEX t_b ON t (b);
		INSERT INTO t (id) SELECT generate_series(1, 20000);
	});
	my $script = $node->basedir . '/script';
	append_to_file($script, q{
\set id random(1, 20000)
UPDATE t SET n = n + 1, b = gen_random_uuid() WHERE id = :id;
SELECT count(*) FROM t WHERE id BETWEEN :id AND :id + 500;
});
	my $vacuum = $node->basedir . '/vacuum';
	append_to_file($vacuum, 'VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) t;');
	my $sum = sub { $node->safe_psql('postgres', 'SELECT sum(n) FROM t') };
	my $check = sub {
		my ($what) = @_;
		is( $node->safe_psql(
				'postgres', q{SELECT count(bt_index_parent_check(c, true, true)) FROM unnest('{t_pkey,t_a,t_b}'::regclass[]) c;
					SELECT count(*) FROM verify_heapam('t')}),
			"3\n0", "$method: $what");
	};

	$node->command_ok([ 'pgbench', '-n', '-c' => 8, '-t' => 300, '-f' => $script, 'postgres' ], "$method: load");
	is($sum->(), 2400, "$method: all updates are there");
	$node->command_ok([ 'pgbench', '-n', '-c' => 8, '-t' => 100, '-f' => "$script\@40", '-f' => "$vacuum\@1", 'postgres' ],
		"$method: load while VACUUM waits for pages that nobody uses");
	$check->('heap and indexes agree');

	# crash in the middle, twice
	foreach my $round (1, 2)
	{
		my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c' => 8, '-T' => 1000, '-f' => $script, '-h' => $node->host, '-p' => $node->port, 'postgres' ],
			'>' => \my $out, '2>' => \my $err);
		my $before = $sum->();
		$node->poll_query_until('postgres', "SELECT sum(n) > $before + 500 FROM t") or die 'no progress';
		$node->stop('immediate');
		$pgbench->finish;
		$node->start;
		cmp_ok($sum->(), '>', $before + 500, "$method: round $round: committed updates survive");
		$check->("round $round: heap and indexes agree after recovery");
	}
	# a session that has just caused writes, and is idle now
	my $idle = $node->background_psql('postgres');
	$idle->query_safe('UPDATE t SET n = n');
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_aios WHERE state NOT LIKE 'COMPLETED%'})
	  or die 'an idle session leaves I/O in flight';
	pass("$method: an idle session leaves no I/O in flight");
	$idle->query_safe('SELECT pg_stat_force_next_flush()');
	cmp_ok($node->safe_psql('postgres', q{SELECT sum(writes) FROM pg_stat_io WHERE backend_type = 'client backend' AND object = 'relation' AND context = 'normal'}), '>', 100,
		"$method: backends have written");
	is($node->safe_psql('postgres', q{SELECT sum(write_bytes) >= 8192 * sum(writes) FROM pg_stat_io WHERE object = 'relation'}), 't',
		"$method: a write has at least one page");
	$idle->quit;

	# relations go away while their pages are on their way
	$node->safe_psql('postgres', join(';', map { "CREATE TABLE d$_ AS SELECT n, repeat('x', 100) FROM generate_series(1, 3000) n; DROP TABLE d$_" } 1 .. 5));
	$node->safe_psql('postgres', 'CREATE DATABASE other STRATEGY wal_log; DROP DATABASE other');
	$node->stop;
	command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], "$method: checksums after a clean shutdown");
}
done_testing();
