# Copyright (c) 2026, the pgawait authors

# A table whose indexes have been in memory for long is inserted into without
# tasks, and with tasks again from the first read on.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $rows = 1_000;    # without a read, until tasks are given up

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "io_method = worker\naio.index_batch_memory = 0");
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE source AS SELECT n AS id, md5(n::text) AS a, md5((-n)::text) AS b FROM generate_series(1, 20000) n;
	CREATE TABLE t (LIKE source);
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_b ON t (b);
	CREATE FUNCTION evict() RETURNS void BEGIN ATOMIC
		SELECT pg_buffercache_evict_relation(i) FROM unnest('{t_a,t_b}'::regclass[]) i;
	END;
});

my $session = $node->background_psql('postgres');
my $file = $node->basedir . '/rows';
$node->safe_psql('postgres', "COPY (SELECT * FROM source LIMIT 3000) TO '$file'");

# Number of tasks that a statement runs.
sub tasks
{
	my ($statement) = @_;

	return $session->query_safe(
		"SELECT aio_session_stats_reset() \\g /dev/null\n$statement;\nSELECT tasks FROM aio_session_stats();");
}

my %loads = (
	'INSERT' => 'INSERT INTO t SELECT * FROM source LIMIT 3000',
	'COPY' => "COPY t FROM '$file'");

foreach my $load (sort keys %loads)
{
	$session->query_safe('TRUNCATE t; INSERT INTO t SELECT * FROM source LIMIT 5000; SELECT evict()');

	cmp_ok(tasks("INSERT INTO t SELECT * FROM source LIMIT $rows"), '>', $rows, "$load: tasks where pages are read");
	tasks("INSERT INTO t SELECT * FROM source LIMIT $rows");
	is(tasks($loads{$load}), 0, "$load: no tasks once everything is in memory");

	$session->query_safe('SELECT evict()');
	cmp_ok(tasks($loads{$load}), '>', 1000, "$load: tasks again after a read");
}

# COPY batches the rows of a single index, too
$session->query_safe('CREATE TABLE one (LIKE source); CREATE INDEX one_a ON one (a)');
tasks("COPY one FROM '$file'") foreach 1 .. 4;
is(tasks("COPY one FROM '$file'"), 0, 'one index: no tasks once everything is in memory');
$session->query_safe("SELECT pg_buffercache_evict_relation('one_a')");
cmp_ok(tasks("COPY one FROM '$file'"), '>', 1000, 'one index: tasks again after a read');

# a new relation is a new question
$session->query_safe('TRUNCATE t');
is(tasks('INSERT INTO t SELECT * FROM source LIMIT 100'), 200, 'a task for each entry at first');

$session->quit;
$node->stop;
done_testing();
