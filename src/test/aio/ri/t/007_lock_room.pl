# Copyright (c) 2026, the pgawait authors

# The table of locks is nearly full.  What is only looked up ahead of need takes
# no lock for which there is no room, and a subscriber's worker does not keep so
# many indexes open that there is none for the next row.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $few = q{
max_connections = 10
max_locks_per_transaction = 10
autovacuum_worker_slots = 1
autovacuum_max_workers = 1
autovacuum = off
max_worker_processes = 6
max_wal_senders = 3
wal_level = logical
wal_retrieve_retry_interval = 100ms
};
my $node = PostgreSQL::Test::Cluster->new('few_locks');
$node->init;
$node->append_conf('postgresql.conf', $few);
$node->start;

# A key of another type than its parents': their partition is not known at once,
# so each of the 16 is one that may be looked at.
$node->safe_psql('postgres', q{
	CREATE TABLE parent (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	SELECT format('CREATE TABLE parent_%s PARTITION OF parent FOR VALUES FROM (%s) TO (%s)', n, n * 1000, n * 1000 + 1000)
	  FROM generate_series(0, 15) n \gexec
	INSERT INTO parent SELECT generate_series(0, 15999);
	CREATE TABLE child (id int REFERENCES parent);
	VACUUM ANALYZE parent;
	CREATE PROCEDURE lock_objects(n int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. n LOOP
			PERFORM pg_advisory_lock(i);
		END LOOP;
	END $$;
	CREATE FUNCTION room() RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		n int := 0;
	BEGIN
		LOOP
			PERFORM pg_advisory_lock(n + 1);
			n := n + 1;
		END LOOP;
	EXCEPTION
		WHEN out_of_memory THEN RETURN n;
	END $$});
my $room = $node->safe_psql('postgres', 'SELECT room()');
cmp_ok($room, '>', 100, "there is room for locks: $room");
my $holder = $node->background_psql('postgres');
my ($least, $stderr);
$holder->query_safe("CALL lock_objects($room)");

# How many more an INSERT needs that checks each row by a query
my $insert = 'INSERT INTO child SELECT 500 + i % 100 FROM generate_series(1, 3000) i';
sub unlock
{
	$holder->query_safe("SELECT pg_advisory_unlock($room)");
	$room--;
}
for ($least = 0; $least < 100; $least++)
{
	(my $status, undef, $stderr) = $node->psql('postgres', "SET aio.direct_foreign_key_checks = off; SET aio.lookup_ahead = 0; $insert");
	last if $status == 0;
	die $stderr if $stderr !~ /out of shared memory/;
	unlock();
}
cmp_ok($least, '<', 100, "an INSERT whose keys are checked by queries needs $least");
foreach my $more (0 .. 12)
{
	(my $status, undef, $stderr) = $node->psql('postgres', "SET aio.debug_lookups = 3; $insert");
	is($stderr, '', "with room for $more more, one that looks them up ahead ends well");
	unlock();
}
$holder->quit;

# A transaction that changes many tables with many indexes
my $tables = join ';', map { "CREATE TABLE t$_ (id int PRIMARY KEY, a int, b int)" } 1 .. 16;
$node->safe_psql('postgres', $tables);
$node->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE ' . join ', ', map { "t$_" } 1 .. 16);
$node->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('s', 'pgoutput')});
$node->safe_psql('postgres', 'CREATE DATABASE subscriber');
$node->safe_psql('subscriber', $tables);
foreach my $table (1 .. 16)
{
	$node->safe_psql('subscriber', join ';', map { "CREATE INDEX ON t$table (a, (b + $_))" } 1 .. 30);
}
my $rows = join ';', map { my $row = $_; map { "INSERT INTO t$_ VALUES ($row, $row, $row)" } 1 .. 16 } 1 .. 100;
$node->safe_psql('postgres', "BEGIN; $rows; COMMIT");
my $publisher = $node->connstr . ' dbname=postgres';
$node->safe_psql('subscriber', "CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p WITH (copy_data = false, create_slot = false)");
ok($node->poll_query_until('subscriber', q{SELECT count(*) = 100 FROM t16}), 'a subscriber has room for the indexes of the tables that it changes');
my $log = slurp_file($node->logfile);
# by now the only ones who lacked it are those from above, who are not workers
unlike($log, qr/logical replication worker.*out of shared memory|out of shared memory[^\n]*\n[^\n]*CONTEXT:  processing remote data/,
	'and its worker has not failed for want of it');
$node->safe_psql('subscriber', 'DROP SUBSCRIPTION s');
$node->stop;
done_testing();
