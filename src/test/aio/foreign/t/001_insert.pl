
# Copyright (c) 2026, the pgawait authors

# Rows for foreign servers are sent without waiting: several servers work at
# the same time, and whatever goes wrong on one of them leaves nothing anywhere.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @shards = map { PostgreSQL::Test::Cluster->new("shard$_") } 0 .. 2;
foreach my $shard (@shards)
{
	$shard->init;
	$shard->append_conf('postgresql.conf', "max_connections = 10\nio_max_concurrency = 16\nmax_prepared_transactions = 2\nlog_statement = none");
	$shard->start;
	$shard->safe_psql('postgres', q{
		CREATE TABLE part (id int, v text);
		CREATE TABLE other (id int)});
}

my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 10\nio_max_concurrency = 16\nlog_statement = none\naio.await_foreign_inserts = on");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION postgres_fdw;
	CREATE EXTENSION aio;
	CREATE TABLE t (id int, v text) PARTITION BY HASH (id);
	CREATE TABLE part3 PARTITION OF t FOR VALUES WITH (MODULUS 4, REMAINDER 3);
	CREATE INDEX ON part3 (id)});
foreach my $i (0 .. 2)
{
	my ($host, $port) = ($shards[$i]->host, $shards[$i]->port);
	$node->safe_psql('postgres', qq{
		CREATE SERVER shard$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '100');
		CREATE USER MAPPING FOR CURRENT_USER SERVER shard$i;
		CREATE FOREIGN TABLE part$i PARTITION OF t FOR VALUES WITH (MODULUS 4, REMAINDER $i) SERVER shard$i OPTIONS (table_name 'part');
		CREATE FOREIGN TABLE other$i (id int) SERVER shard$i OPTIONS (table_name 'other')});
}
my $rows = "$PostgreSQL::Test::Utils::tmp_check/rows";
append_to_file($rows, join '', map { "$_\tvalue $_\n" } 1 .. 5000);
my $count = 'SELECT count(*), sum(id), count(DISTINCT v) FROM t';
my $all = '5000|12502500|5000';

# COPY and INSERT, into all of them
is($node->safe_psql('postgres', "COPY t FROM '$rows'; $count"), $all, 'COPY into partitions on several servers');
is($node->safe_psql('postgres', "TRUNCATE t; INSERT INTO t SELECT i, 'value ' || i FROM generate_series(1, 5000) i; $count"), $all, 'INSERT');
is($node->safe_psql('postgres', q{SELECT count(*) = 3 AND bool_and(n > 1000) FROM (SELECT tableoid, count(*) AS n FROM t WHERE tableoid <> 'part3'::regclass GROUP BY 1)}), 't', 'all servers have some');
is($node->safe_psql('postgres', "TRUNCATE t; SET aio.await_foreign_inserts = off; COPY t FROM '$rows'; $count; SELECT pg_stat_force_next_flush()") =~ s/\n$//r, $all, 'without awaiting, too');
is($node->safe_psql('postgres', q{SELECT started > 60 AND waited > 0 FROM pg_stat_aio WHERE kind = 'foreign' AND backend_type = 'client backend'}), 't', 'they are counted');

# A server that does not answer does not keep others from working.  Batches go
# to part0 first: INSERT flushes them in the order in which they are full.
my $blocker = $shards[0]->background_psql('postgres');
$blocker->query_safe('BEGIN; LOCK TABLE part');
my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $session->query('SELECT pg_backend_pid()');
$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT i, 'again' FROM generate_series(1, 1000) i;\n");
foreach my $i (1, 2)
{
	ok($shards[$i]->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'part'::regclass AND mode = 'RowExclusiveLock' AND granted}), "shard$i inserts while shard0 waits");
}
is($shards[0]->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE relation = 'part'::regclass AND NOT granted}), 1, 'which it does');
is($node->safe_psql('postgres', "SELECT wait_event IN ('AioForeignInserts', 'PostgresFdwGetResult') FROM pg_stat_activity WHERE pid = $pid"), 't', 'the statement waits for it');

# a cancel request ends it, on all of them, and the connections are of use
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$session->query('SELECT 1');
like($session->{stderr}, qr/canceling statement due to user request/, 'it can be cancelled');
$session->{stderr} = '';
$blocker->query_safe('ROLLBACK');
is($session->query("$count; SELECT string_agg(server_name, ' ' ORDER BY server_name) FROM postgres_fdw_get_connections() WHERE valid"), "$all\nshard0 shard1 shard2", 'and has left nothing');

# so does a lock timeout, of the server's own
$blocker->query_safe('BEGIN; LOCK TABLE part');
$node->safe_psql('postgres', q{ALTER SERVER shard0 OPTIONS (ADD options '-c lock_timeout=100ms')});
my ($ret, $out, $err) = $node->psql('postgres', q{INSERT INTO t SELECT i, 'again' FROM generate_series(1, 1000) i});
like($err, qr/ERROR:  canceling statement due to lock timeout\nCONTEXT:  .*remote SQL command: INSERT INTO public\.part\(id, v\) VALUES/s, 'a lock timeout on one server');
$blocker->query_safe('ROLLBACK');
$blocker->quit;
$node->safe_psql('postgres', q{ALTER SERVER shard0 OPTIONS (DROP options)});
is($session->query($count), $all, 'has left nothing');

# an error of one server, in the middle; its message and details
$shards[1]->safe_psql('postgres', q{ALTER TABLE part ADD CONSTRAINT small CHECK (id < 8000)});
foreach my $statement (q{INSERT INTO t SELECT i, 'again' FROM generate_series(6000, 9999) i}, "COPY t FROM PROGRAM 'seq 6000 9999 | sed \"s/\$/\\\\tagain/\"'")
{
	$session->query($statement);
	like($session->{stderr}, qr/ERROR:  new row for relation "part" violates check constraint "small".*DETAIL:  Failing row contains \(8\d\d\d, again\)\..*CONTEXT:  .*remote SQL command: INSERT INTO public\.part\(id, v\) VALUES/s, 'an error of one server');
	$session->{stderr} = '';
	is($session->query($count), $all, 'has left nothing');
}

# which does not wait for another server that is blocked
$blocker = $shards[0]->background_psql('postgres');
$blocker->query_safe('BEGIN; LOCK TABLE part');
$session->query(q{INSERT INTO t SELECT i, 'again' FROM generate_series(7500, 8500) i});
like($session->{stderr}, qr/ERROR:  new row for relation "part" violates check constraint "small"/, 'an error does not wait for a server that is blocked');
$session->{stderr} = '';
$blocker->query_safe('ROLLBACK');

# also if that one has answered some of it, and cannot take more
$shards[0]->safe_psql('postgres', 'CREATE UNIQUE INDEX part_id ON part (id)');
my $key = $node->safe_psql('postgres', q{SELECT min(i) FROM generate_series(22000, 23000) i WHERE satisfies_hash_partition('t'::regclass, 4, 0, i)});
$blocker->query_safe("BEGIN; INSERT INTO part VALUES ($key)");
foreach my $last (22600, 40000)
{
	$session->query("INSERT INTO t SELECT i, 'again' FROM generate_series(20000, $last) i");
	like($session->{stderr}, qr/ERROR:  new row for relation "part" violates check constraint "small"/, 'nor for one that is blocked in the middle');
	$session->{stderr} = '';
}
$blocker->query_safe('ROLLBACK');
$blocker->quit;
$shards[0]->safe_psql('postgres', 'DROP INDEX part_id');
is($session->query($count), $all, 'and nothing is left of what it would have done');

# which tables, by default: those of servers that are said to be capable
my $sent = q{SELECT pg_stat_force_next_flush(); SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'foreign'};
$session->query_safe('SET aio.await_foreign_inserts = async_capable');
my $sent_before = $session->query_safe($sent);
is($session->query("BEGIN; INSERT INTO t SELECT i, 'gone' FROM generate_series(6000, 7000) i; ROLLBACK; $sent"), $sent_before, 'nothing is sent ahead to servers that are not async_capable');
$session->query_safe(q{ALTER SERVER shard0 OPTIONS (ADD async_capable 'true'); ALTER FOREIGN TABLE part1 OPTIONS (ADD async_capable 'true')});
$session->query_safe(q{BEGIN; INSERT INTO t SELECT i, 'gone' FROM generate_series(6000, 7000) i; ROLLBACK});
is($session->query($sent) =~ s/\D//gr - $sent_before =~ s/\D//gr, 6, 'but to a server and a table that are');
$session->query_safe(q{ALTER SERVER shard0 OPTIONS (DROP async_capable); ALTER FOREIGN TABLE part1 OPTIONS (DROP async_capable); SET aio.await_foreign_inserts = on});

# prepared, with a plan that stays
is($session->query(q{
	PREPARE p AS INSERT INTO t SELECT i, 'prepared' FROM generate_series($1::int, $2) i;
	SET plan_cache_mode = force_generic_plan;
	BEGIN;
	EXECUTE p(6001, 6900);
	EXECUTE p(6901, 7100);
	SELECT count(*) FROM t WHERE v = 'prepared';
	ROLLBACK;
	RESET plan_cache_mode;
	DEALLOCATE p}), 1100, 'a prepared statement');

# in a savepoint, and in a block that catches it; then the connection goes on
is($session->query(q{
	BEGIN;
	INSERT INTO t SELECT i, 'kept' FROM generate_series(10001, 10300) i WHERE i NOT IN (SELECT id FROM part1);
	ROLLBACK;
	BEGIN;
	INSERT INTO t SELECT i, 'kept' FROM generate_series(6001, 6300) i;
	SAVEPOINT s;
	INSERT INTO t SELECT i, 'gone' FROM generate_series(7000, 8400) i;
	ROLLBACK TO s;
	INSERT INTO t SELECT i, 'kept' FROM generate_series(6301, 6600) i;
	DO $$
	BEGIN
		INSERT INTO t SELECT i, 'gone' FROM generate_series(7000, 8400) i;
	EXCEPTION WHEN check_violation THEN
		INSERT INTO t SELECT i, 'kept' FROM generate_series(6601, 6700) i;
	END $$;
	COMMIT;
	SELECT count(*) FROM t WHERE v = 'kept';
	SELECT count(*) FROM t WHERE v = 'gone'}), "700\n0", 'errors in savepoints and blocks');
$session->{stderr} = '';
$session->query_safe(q{DELETE FROM t WHERE v = 'kept'});

# A function that catches the error of its caller's batch does not make it go
# away; and what was pending is given up.
$session->query_safe(q{
	CREATE FUNCTION catcher(i int) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		n bigint;
	BEGIN
		IF i > 8300 THEN
			SELECT count(*) INTO n FROM other1;
		END IF;
		RETURN i;
	EXCEPTION WHEN OTHERS THEN
		RAISE NOTICE 'caught %', sqlerrm;
		RETURN i;
	END $$});
foreach my $wrapped ('%s', 'BEGIN; SAVEPOINT s; %s; ROLLBACK TO s; COMMIT')
{
	$session->query(sprintf $wrapped, q{INSERT INTO part1 SELECT catcher(i), 'gone' FROM generate_series(7600, 8450) i WHERE satisfies_hash_partition('t'::regclass, 4, 1, i)});
	like($session->{stderr}, qr/NOTICE:  caught new row for relation "part" violates check constraint/, 'a function catches an error that is not its own');
	like($session->{stderr}, qr/ERROR:  new row for relation "part" violates check constraint "small"/, 'which its caller raises all the same');
	$session->{stderr} = '';
}
is($session->query(q{
	BEGIN;
	DO $$
	BEGIN
		FOR turn IN 1 .. 50 LOOP
			BEGIN
				INSERT INTO t SELECT i, 'gone' FROM generate_series(7600, 8450) i;
			EXCEPTION WHEN check_violation THEN NULL;
			END;
		END LOOP;
	END $$;
	SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'postgres_fdw pipeline';
	COMMIT;
	SELECT count(*) FROM t WHERE v = 'gone'}), "0\n0", 'nothing is left of what has failed');

# What does not fit into the connection does not keep it from being cancelled.
$blocker = $shards[0]->background_psql('postgres');
$blocker->query_safe('BEGIN; LOCK TABLE part');
$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO part0 SELECT i, repeat('x', 20000) FROM generate_series(1, 40000) i WHERE satisfies_hash_partition('t'::regclass, 4, 0, i);\n");
$shards[0]->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'part'::regclass AND NOT granted}) or die 'it does not come';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
ok($node->poll_query_until('postgres', "SELECT state <> 'active' FROM pg_stat_activity WHERE pid = $pid"), 'a cancel request does not wait for the server');
$blocker->query_safe('ROLLBACK');
$blocker->quit;
$session->query('SELECT 1');
$session->{stderr} = '';
is($session->query($count), $all, 'and nothing is left of it');

# A server that does not answer gets 16 batches, however many rows there are.
# The 17th is collected, and one row more is what sends it.
$blocker = $shards[0]->background_psql('postgres');
$blocker->query_safe('BEGIN; LOCK TABLE other');
$session->query_safe('CREATE SEQUENCE taken');
$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO other0 SELECT nextval('taken') FROM generate_series(1, 10000);\n");
ok($node->poll_query_until('postgres', "SELECT wait_event = 'AioForeignInserts' AND last_value > 1600 FROM taken, pg_stat_activity WHERE pid = $pid"), 'a server has 16 batches to answer');
is($node->safe_psql('postgres', 'SELECT last_value FROM taken'), 1701, 'and gets no more before it does');
$blocker->query_safe('ROLLBACK');
$blocker->quit;
is($session->query_safe('SELECT count(*) FROM other0; DELETE FROM other0'), 10000, 'it gets all of them then');

# a statement sees what it has sent; other tables of the server share the connection
$session->query_safe(q{
	CREATE FUNCTION seen() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM part0';
	CREATE TABLE local (id int, n bigint);
	CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := seen(); RETURN NEW; END $$});
my $before = $session->query_safe('SELECT seen()');
is($session->query_safe(q{
	WITH a AS (INSERT INTO part0 SELECT i, 'mixed' FROM generate_series(1, 500) i),
		 b AS (INSERT INTO other0 SELECT i FROM generate_series(1, 450) i)
	INSERT INTO other0 SELECT i FROM generate_series(1, 150) i;
	SELECT count(*) FROM other0;
	SELECT seen() - } . $before), "600\n500", 'several tables of one server');
$session->query_safe(q{DELETE FROM other0; DELETE FROM part0 WHERE v = 'mixed'});

# rows that the server leaves out do not count
$shards[2]->safe_psql('postgres', q{
	CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id % 2 = 0 THEN RETURN NULL; END IF; RETURN NEW; END $$;
	CREATE TRIGGER leave_out BEFORE INSERT ON other FOR EACH ROW EXECUTE FUNCTION leave_out()});
like($session->query("\\set QUIET off\nINSERT INTO other2 SELECT i FROM generate_series(1, 1001) i;\n\\set QUIET on"), qr/^INSERT 0 501$/m, 'rows that the server leaves out are not counted');
append_to_file("$rows.ids", join '', map { "$_\n" } 1 .. 1001);
like($session->query("\\set QUIET off\nCOPY other2 FROM '$rows.ids';\n\\set QUIET on"), qr/^COPY 501$/m, 'nor by COPY');

# a server dies in the middle, and comes back
$blocker = $shards[2]->background_psql('postgres', on_error_stop => 0);
$blocker->query_safe('BEGIN; LOCK TABLE part');
$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT i, 'again' FROM generate_series(1, 1000) i;\n");
$shards[2]->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE relation = 'part'::regclass AND NOT granted}) or die 'it does not come';
$shards[2]->stop('immediate');
$session->query('SELECT 1');
like($session->{stderr}, qr/ERROR:  (?:server closed the connection unexpectedly|terminating connection|could not receive data)/, 'a server that dies');
$session->{stderr} = '';
eval { $blocker->quit };
$shards[2]->start;
is($session->query($count), $all, 'has left nothing, and is found again');
is($session->query(q{INSERT INTO t SELECT i, 'more' FROM generate_series(5001, 6000) i; SELECT count(*) FROM t}), 6000, 'and inserts');
$session->quit;

# without a postmaster, too
$node->stop;
my $input = "INSERT INTO t SELECT i, 'single' FROM generate_series(6001, 7900) i;\n";
my $said = '';
ok(IPC::Run::run([ 'postgres', '--single', '-F', '-D', $node->data_dir, 'postgres' ], '<', \$input, '>&', \$said), 'a server in single-user mode');
unlike($said, qr/ERROR/, 'raises no error');
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*) FROM t WHERE v = 'single'}), '1900', 'and inserts');

# an error that is caught takes no memory until the transaction ends
$node->safe_psql('postgres', q{
	CREATE TABLE used (n int, bytes bigint);
	CREATE PROCEDURE catch_errors(times int) LANGUAGE plpgsql AS $$
	BEGIN
		FOR turn IN 1 .. times LOOP
			BEGIN
				INSERT INTO t SELECT i, 'caught' FROM generate_series(8001, 8400) i;
			EXCEPTION WHEN check_violation THEN NULL;
			END;
		END LOOP;
		INSERT INTO used SELECT times, used_bytes FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
	END $$});
is($node->safe_psql('postgres', q{
		BEGIN; CALL catch_errors(5); CALL catch_errors(5); CALL catch_errors(40); COMMIT;
		SELECT count(*), max(bytes) - min(bytes) < 40000 FROM used WHERE n = 40 OR bytes = (SELECT max(bytes) FROM used WHERE n = 5)}),
	'2|t', 'errors that are caught take no memory');

# a server's session that ends in the middle of a batch is a connection that is lost
$shards[0]->safe_psql('postgres', q{
	CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF NEW.v = 'leave' THEN
			PERFORM pg_terminate_backend(pg_backend_pid());
		END IF;
		RETURN NEW;
	END $$;
	CREATE TRIGGER leave BEFORE INSERT ON part FOR EACH ROW EXECUTE FUNCTION leave()});
my $leaving = q{DO $$
	BEGIN
		INSERT INTO t SELECT i, CASE WHEN i = %d THEN 'leave' END FROM generate_series(4001, 7000) i;
	EXCEPTION WHEN connection_failure THEN
		RAISE NOTICE 'lost: %%', split_part(SQLERRM, E'\n', 1);
	END $$};
$key = $node->safe_psql('postgres', q{SELECT min(i) FROM generate_series(6000, 7000) i WHERE satisfies_hash_partition('t'::regclass, 4, 0, i)});
foreach my $awaiting ('on', 'off')
{
	(undef, undef, my $lost) = $node->psql('postgres', "SET aio.await_foreign_inserts = $awaiting; " . sprintf($leaving, $key));
	like($lost, qr/NOTICE:  lost: FATAL:  terminating connection due to administrator command/, "a session of a server ends, awaiting $awaiting");
}
$shards[0]->safe_psql('postgres', 'DROP TRIGGER leave ON part');

# nobody has anything open
foreach my $shard (@shards)
{
	ok($shard->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()}), $shard->name . ' has no transaction open');
}
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing unusual in the log');
$_->stop foreach $node, @shards;
done_testing();
