# Copyright (c) 2026, the pgawait authors

# What becomes of a table into which workers insert when one of them ends, when
# the statement is cancelled, and in a crash; with WAL and without.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	autovacuum = off
	parallel_setup_cost = 0
	parallel_tuple_cost = 0
	min_parallel_table_scan_size = 0
	max_parallel_workers_per_gather = 2
	parallel_leader_participation = off
});
$node->start;

# A worker waits at one row until there is a file.
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE TABLE source AS SELECT i, md5(i::text) AS t FROM generate_series(1, 50000) i;
	ANALYZE source;
	CREATE FUNCTION hold(i int) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS $$
	BEGIN
		WHILE i = 40000 AND pg_stat_file('gate', true) IS NULL LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN i;
	END $$;
});
my $statement = 'CREATE TABLE copy AS SELECT hold(i) AS i, t FROM source';
my $gate = $node->data_dir . '/gate';

# Start the statement, and wait until a worker is in the middle.
sub begin
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'parallel worker' AND wait_event = 'PgSleep'")
	  or die 'no worker';
	return $session;
}

# How the statement ends.
sub ends
{
	my ($session, $pattern, $name) = @_;

	$session->query('SELECT 1');
	like($session->{stderr}, $pattern, $name);
	$session->{stderr} = '';
	is($session->query("SELECT to_regclass('copy') IS NULL"), 't', "$name: there is no table");
	$session->quit;
}

sub complete
{
	my ($name) = @_;

	is( $node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT i), (SELECT count(*) FROM verify_heapam(\'copy\')) FROM copy JOIN source USING (i, t)'),
		'50000|50000|0', "$name: all rows are there, once");
}

my $session = begin();
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'parallel worker'");
ends($session, qr/terminating .*due to administrator command|lost connection to parallel worker/, 'a worker is terminated');

$session = begin();
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'CREATE TABLE copy%' AND backend_type = 'client backend'");
ends($session, qr/canceling statement due to user request/, 'the statement is cancelled');

$session = begin();
append_to_file($gate, '');
$session->query('SELECT 1');
$session->quit;
complete('a worker was held up');
unlink $gate;
$node->safe_psql('postgres', 'DROP TABLE copy');

$session = begin();
$node->stop('immediate');
$session->{run}->finish;
$node->start;
is($node->safe_psql('postgres', "SELECT to_regclass('copy') IS NULL"), 't', 'a crash in the middle: there is no table');

append_to_file($gate, '');
$node->safe_psql('postgres', $statement);
$node->stop('immediate');
$node->start;
complete('a crash after the end');
$node->safe_psql('postgres', 'DROP TABLE copy');

# without WAL, all must be on disk at the end
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = 0\n");
$node->restart;
$node->safe_psql('postgres', $statement);
$node->stop('immediate');
$node->start;
complete('without WAL, a crash after the end');
$node->safe_psql('postgres', 'DROP TABLE copy');
$node->append_conf('postgresql.conf', "wal_skip_threshold = 1GB\n");
$node->restart;
$node->safe_psql('postgres', $statement);
$node->stop('immediate');
$node->start;
complete('logged at the end, a crash after it');
$node->safe_psql('postgres', "DROP TABLE copy; BEGIN ISOLATION LEVEL SERIALIZABLE; $statement; COMMIT");
complete('serializable');

# Logical decoding wants the pieces of a row next to each other in the log.
$node->append_conf('postgresql.conf', "wal_level = logical\nmax_wal_senders = 10\n");
$node->restart;
unlike($node->safe_psql('postgres', 'EXPLAIN CREATE TABLE x AS SELECT * FROM source'), qr/Parallel Insert/, 'not where the log is decoded');
like($node->safe_psql('postgres', 'EXPLAIN CREATE UNLOGGED TABLE x AS SELECT * FROM source'), qr/Parallel Insert/, 'but where there is no log');

$node->stop;
command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], 'checksums are right');
done_testing();
