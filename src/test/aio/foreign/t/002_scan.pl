
# Copyright (c) 2026, the pgawait authors

# Scans of foreign servers are read ahead, and return the rows that they return
# otherwise.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Whoever reads the view passes a gate, when rows are fetched.
my $gate = q{
	CREATE FUNCTION gate() RETURNS bool LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
		RETURN true;
	END $$};
my @shards = map { PostgreSQL::Test::Cluster->new("shard$_") } 0 .. 2;
foreach my $shard (@shards)
{
	$shard->init;
	$shard->append_conf('postgresql.conf', "max_connections = 10\nio_max_concurrency = 16");
	$shard->start;
	$shard->safe_psql('postgres', qq{$gate;
		CREATE TABLE part (id int PRIMARY KEY, k int, v text);
		CREATE VIEW gated AS SELECT part.* FROM (SELECT gate() AS open OFFSET 0) g, part WHERE open});
}

my $node = PostgreSQL::Test::Cluster->new('coordinator');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 10\nio_max_concurrency = 16");
$node->start;
$node->safe_psql('postgres', qq{$gate;
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE t (id int, k int, v text) PARTITION BY HASH (id);
	CREATE TABLE g (id int, k int, v text) PARTITION BY HASH (id);
	CREATE TABLE mixed (id int, k int, v text) PARTITION BY RANGE (id);
	CREATE TABLE mixed3 PARTITION OF mixed FOR VALUES FROM (100000) TO (200000);
	INSERT INTO mixed SELECT 100000 + i, i % 7, i FROM generate_series(1, 5000) i;
	CREATE FUNCTION caught(i int) RETURNS int LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN (SELECT 1 / (count(*) - 1) FROM mixed3 WHERE id = 100001);
	EXCEPTION WHEN division_by_zero THEN
		RETURN i;
	END \$\$;
	CREATE FUNCTION looked_up(i int) RETURNS int LANGUAGE plpgsql AS \$\$
	BEGIN
		RETURN (SELECT count(*) FROM t WHERE id = i);
	EXCEPTION WHEN OTHERS THEN
		RETURN 0;
	END \$\$;
	-- servers cannot compute this, and the planner makes it a function in C, which is believed
	CREATE FUNCTION here(int) RETURNS int LANGUAGE internal IMMUTABLE AS 'int4up';
	CREATE FUNCTION mine(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT here(\$1) % 10';
	CREATE FUNCTION pass(bigint) RETURNS void LANGUAGE internal IMMUTABLE AS 'pg_advisory_lock_shared_int8';
	CREATE FUNCTION told(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \$\$
	BEGIN
		RETURN (SELECT count(*) FROM part0 WHERE id = i);
	EXCEPTION WHEN OTHERS THEN
		RAISE NOTICE 'told of %', SQLERRM;
		RETURN 0;
	END \$\$;
	CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM told(NEW.id); RETURN NEW; END';
	CREATE TABLE told_before (id int);
	CREATE TRIGGER told BEFORE INSERT ON told_before FOR EACH ROW EXECUTE FUNCTION told();
	CREATE TABLE told_if (id int);
	CREATE TRIGGER told AFTER INSERT ON told_if FOR EACH ROW WHEN (told(NEW.id) < 0) EXECUTE FUNCTION told();
	CREATE TABLE told_checked (id int CHECK (told(id) >= 0));
	CREATE TABLE told_indexed (id int);
	CREATE INDEX ON told_indexed (told(id));
	CREATE TABLE told_parent (id int) PARTITION BY RANGE (id);
	CREATE TABLE told_child PARTITION OF told_parent (CHECK (told(id) >= 0)) FOR VALUES FROM (0) TO (2000);
	CREATE DOMAIN told_domain AS int CHECK (told(VALUE) >= 0);
	CREATE TABLE kept (n serial, id int, u uuid PRIMARY KEY DEFAULT gen_random_uuid());
	CREATE FUNCTION put(i int) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN INSERT INTO part0 VALUES (i, 1, 1); RETURN i; END';
	CREATE FUNCTION put_stable(i int) RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN put(i); END'});
foreach my $i (0 .. 2)
{
	my ($host, $port) = ($shards[$i]->host, $shards[$i]->port);
	$node->safe_psql('postgres', qq{
		CREATE SERVER shard$i FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', fetch_size '10', async_capable 'true', batch_size '100');
		CREATE USER MAPPING FOR CURRENT_USER SERVER shard$i;
		CREATE FOREIGN TABLE part$i PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER $i) SERVER shard$i OPTIONS (table_name 'part');
		CREATE FOREIGN TABLE gated$i PARTITION OF g FOR VALUES WITH (MODULUS 3, REMAINDER $i) SERVER shard$i OPTIONS (table_name 'gated');
		CREATE FOREIGN TABLE mixed$i PARTITION OF mixed FOR VALUES FROM (@{[$i * 1000]}) TO (@{[$i * 1000 + 1000]}) SERVER shard$i OPTIONS (table_name 'part')});
}
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE failing (id int, k int, v text, q int) SERVER shard0;
	CREATE FOREIGN TABLE told_told (id told_domain, k int) SERVER shard1 OPTIONS (table_name 'part');
	CREATE FOREIGN TABLE told_foreign (id int, k int) SERVER shard1 OPTIONS (table_name 'part');
	CREATE TRIGGER told BEFORE INSERT ON told_foreign FOR EACH ROW EXECUTE FUNCTION told();
	CREATE FOREIGN TABLE told_back (id int, a told_domain[]) SERVER shard1});
$shards[1]->safe_psql('postgres', 'CREATE TABLE told_back (id int, a int[])');
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i % 7, i FROM generate_series(1, 1000) i');

my $bad = $node->safe_psql('postgres', 'SELECT min(id) FROM part0 WHERE id > 700');
$shards[0]->safe_psql('postgres', "CREATE VIEW failing AS SELECT *, 1 / (id - $bad) AS q FROM part");

# All servers have been asked when the first one has not answered yet.
my $blocker = $shards[0]->background_psql('postgres');
my $session = $node->background_psql('postgres', on_error_stop => 0);
# the time limit is of a statement, not of the test
$_->set_query_timer_restart foreach $blocker, $session;
my $pid = $session->query('SELECT pg_backend_pid()');
$session->query_safe('SELECT count(*) FROM g WHERE false; SELECT id FROM g LIMIT 1');
my %plans = (
	'Merge Append' => 'SELECT count(*) FROM (SELECT id FROM g ORDER BY id OFFSET 0) s',
	'Append of sorts' => 'SELECT count(*) FROM ((SELECT id FROM gated0 ORDER BY to_char(id % 10, $$9$$)) UNION ALL (SELECT id FROM gated1 ORDER BY to_char(id % 10, $$9$$)) UNION ALL (SELECT id FROM gated2 ORDER BY to_char(id % 10, $$9$$))) s',
	'Append of aggregates' => 'SELECT count(*) FROM (SELECT to_char(id % 10, $$9$$), count(*) FROM gated0 GROUP BY 1 UNION ALL SELECT to_char(id % 10, $$9$$), count(*) FROM gated1 GROUP BY 1 UNION ALL SELECT to_char(id % 10, $$9$$), count(*) FROM gated2 GROUP BY 1) s');
my %rows = ('Merge Append' => 1000, 'Append of sorts' => 1000, 'Append of aggregates' => 30);
foreach my $plan (sort keys %plans)
{
	$blocker->query_safe('SELECT pg_advisory_lock(1)');
	my $asked = q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'FETCH%' AND state = 'idle in transaction'};
	$session->query_until(qr/begun/, "\\echo begun\n$plans{$plan};\n");
	foreach my $i (1, 2)
	{
		ok($shards[$i]->poll_query_until('postgres', $asked, 1), "$plan: shard$i has been asked");
	}
	is($shards[0]->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'}), 1, "$plan: while shard0 waits");
	$blocker->query_safe('SELECT pg_advisory_unlock(1)');
	is($session->query(''), $rows{$plan}, "$plan: all rows");
}

# It can be cancelled then, and the connections are of use.
$blocker->query_safe('SELECT pg_advisory_lock(1)');
$session->query_until(qr/begun/, "\\echo begun\n$plans{'Merge Append'};\n");
$shards[0]->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or die 'it does not come';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$session->query('SELECT 1');
like($session->{stderr}, qr/canceling statement due to user request/, 'it can be cancelled');
$session->{stderr} = '';
$blocker->query_safe('SELECT pg_advisory_unlock(1)');
$blocker->quit;
is($session->query("$plans{'Merge Append'}; SELECT count(*) FROM postgres_fdw_get_connections() WHERE valid"), "1000\n3", 'and goes on');

# A child that is scanned here does not keep back what servers have sent.
my $here = $node->background_psql('postgres');
$here->query_safe('SELECT pg_advisory_lock(100500)');
$session->query_until(qr/begun/, "\\echo begun\nSELECT min(n) FILTER (WHERE tableoid <> 'mixed3'::regclass) < max(n) FILTER (WHERE tableoid = 'mixed3'::regclass), count(*) FILTER (WHERE tableoid <> 'mixed3'::regclass AND n < 3000) > 10 FROM (SELECT row_number() OVER () AS n, tableoid FROM mixed WHERE id <> 100500 OR pass(id) IS NOT NULL) s;\n");
foreach my $shard (@shards)
{
	ok($shard->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'FETCH%' AND state = 'idle in transaction'}), $shard->name . ' has answered');
}
$here->query_safe('SELECT pg_advisory_unlock(100500)');
is($session->query(''), 't|t', 'rows of servers come among those from here, and more of them are asked for');
$here->quit;

# The rows are the same as without reading ahead.
my @statements = (
	'SELECT * FROM t ORDER BY id',
	'SELECT * FROM t ORDER BY k, id LIMIT 25',
	'SELECT * FROM mixed ORDER BY id DESC LIMIT 100',
	# scans that share a connection
	'SELECT a.id, b.k FROM part0 a JOIN (SELECT DISTINCT mine(id) AS id, k FROM part0) b ON a.k = b.id ORDER BY 1, 2',
	'SELECT a.id, b.id FROM part0 a, gated0 b WHERE mine(a.id) = mine(b.id) AND a.id < 50 ORDER BY 1, 2',
	'SELECT x.id, (SELECT count(*) FROM part0 p WHERE mine(p.id) = mine(x.id)) FROM (SELECT id FROM t ORDER BY id) x WHERE mine(x.id) < 3 ORDER BY 1',
	# scans that begin anew
	'SELECT v.i, s.id FROM (VALUES (1), (2), (3)) v(i), LATERAL (SELECT id FROM t WHERE k = v.i ORDER BY id OFFSET 3) s ORDER BY 1, 2',
	'SELECT v.i, s.id FROM (VALUES (1), (2), (3)) v(i), LATERAL (SELECT id FROM t WHERE mine(k) = v.i ORDER BY id LIMIT 30) s ORDER BY 1, 2',
	# nested
	'SELECT * FROM (SELECT id FROM t WHERE k = 1 UNION ALL (SELECT id FROM t WHERE k = 2 ORDER BY id) UNION ALL SELECT mine(id) FROM mixed GROUP BY 1) s ORDER BY 1',
	'SELECT k, count(*), sum(id) FROM mixed GROUP BY k ORDER BY k',
	'SELECT * FROM t WHERE id IN (SELECT mine(id) FROM t) ORDER BY id FOR UPDATE',
	'WITH m AS MATERIALIZED (SELECT * FROM t ORDER BY id) SELECT count(*), (SELECT sum(id) FROM m) FROM m',
	# a prepared statement's generic plan
	'PREPARE p AS SELECT id FROM t WHERE k > $1 AND mine(id) < $2 ORDER BY id; SET plan_cache_mode = force_generic_plan; EXECUTE p(2, 8); EXECUTE p(5, 3); DEALLOCATE p; RESET plan_cache_mode',
	# with workers
	'SET debug_parallel_query = on; SELECT count(*), sum(id) FROM mixed; SELECT count(*) FROM mixed3 JOIN t USING (k); RESET debug_parallel_query',
	'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SELECT k, count(*) FROM mixed GROUP BY 1 ORDER BY 1; RESET ALL',
	# what writes
	"UPDATE t SET v = v || 'x' WHERE mine(id) = 3; SELECT count(*) FROM t WHERE v LIKE '%x'; UPDATE t SET v = id",
	'BEGIN; DELETE FROM t USING mixed m WHERE m.id = t.id AND mine(t.id) = 4; SELECT count(*) FROM t; ROLLBACK',
	'BEGIN; INSERT INTO t SELECT id + 10000, k, v FROM t ORDER BY id; SELECT count(*), sum(id) FROM t; ROLLBACK',
	'BEGIN; INSERT INTO t SELECT id + 10000, k, v FROM t; SELECT count(*), sum(id) FROM t; ROLLBACK',
	# cursors, over the ends of subtransactions
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 25 FROM c; SAVEPOINT a; FETCH 25 FROM c; RELEASE a; FETCH 25 FROM c; SELECT count(*) FROM t; FETCH 25 FROM c; SAVEPOINT b; FETCH 3 FROM c; ROLLBACK TO b; FETCH 100 FROM c; COMMIT',
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 95 FROM c; SAVEPOINT a; SELECT count(*) FROM t; FETCH 95 FROM c; ROLLBACK TO a; FETCH 95 FROM c; COMMIT',
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM part0; MOVE 25 IN c; SAVEPOINT b; SELECT count(*) FROM part0 WHERE mine(id) = 1; MOVE 10 IN c; ROLLBACK TO b; FETCH 100 FROM c; COMMIT',
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; SAVEPOINT a; FETCH 35 FROM c; SELECT count(*) FROM t; FETCH 95 FROM c; ROLLBACK TO a; FETCH 95 FROM c; COMMIT',
	'BEGIN; SAVEPOINT a; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 35 FROM c; RELEASE a; FETCH 35 FROM c; COMMIT',
	'BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id; FETCH 35 FROM c; COMMIT; FETCH 35 FROM c; CLOSE c',
	'BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 35 FROM c; FETCH BACKWARD 12 FROM c; MOVE FIRST IN c; FETCH 2 FROM c; CLOSE c; SELECT count(*) FROM t; COMMIT',
	# a cursor whose scan fails in a subtransaction, while the one around it goes on
	'BEGIN; DECLARE c CURSOR FOR SELECT 1 / (id - 60) FROM t ORDER BY id; FETCH 25 FROM c; SAVEPOINT a; MOVE 60 IN c; ROLLBACK TO a; SELECT count(*) FROM t; COMMIT',
	'BEGIN; DECLARE c CURSOR FOR SELECT 1 / (id - 26) FROM t ORDER BY id; FETCH 25 FROM c; SAVEPOINT a; MOVE 60 IN c; ROLLBACK TO a; COMMIT; SELECT count(*) FROM t',
	q{DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT id FROM t ORDER BY id LOOP BEGIN IF r.id % 40 = 0 THEN RAISE division_by_zero; END IF; n := n + 1; EXCEPTION WHEN division_by_zero THEN PERFORM count(*) FROM part1; END; END LOOP; RAISE NOTICE '% rows', n; END $$},
	q{DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN SELECT id, looked_up(id) AS found FROM t WHERE mine(id) < 5 ORDER BY id LOOP n := n + r.found; END LOOP; RAISE NOTICE '% rows', n; END $$},
	'SELECT sum(looked_up(id)) FROM t WHERE mine(id) < 5',
	'SELECT sum(looked_up(id)) FROM (SELECT id FROM t WHERE mine(id) < 5 ORDER BY id OFFSET 0) s',
	# subqueries among the parameters, which stop early
	'SELECT * FROM part0 WHERE id = (SELECT id FROM part0 WHERE mine(id) = 3 OFFSET 4 LIMIT 1)',
	'BEGIN; WITH u AS (UPDATE part0 SET v = 7 WHERE id = (SELECT id FROM part0 WHERE mine(id) = 3 OFFSET 4 LIMIT 1) RETURNING *) SELECT count(*) FROM u; ROLLBACK',
	'WITH d AS (DELETE FROM part0 WHERE mine(id) = 30 RETURNING *) SELECT count(*), (SELECT count(*) FROM t) FROM d',
	# a cursor that fails while others are to come, and an error that nobody has seen
	'BEGIN; UPDATE part0 SET v = 1; DECLARE c CURSOR FOR SELECT 1 / (id - 45), v FROM failing ORDER BY mine(id); SAVEPOINT a; FETCH 1 FROM c; ROLLBACK TO a; SELECT count(*) FROM t; ROLLBACK',
	q{BEGIN; UPDATE part0 SET k = k + 100; DECLARE c CURSOR FOR SELECT CASE WHEN mine(id) = 7 THEN 1 / (mine(id) - 7) ELSE id END FROM failing; MOVE 1 IN c; DO $$ BEGIN MOVE FORWARD 100 FROM c; EXCEPTION WHEN OTHERS THEN RAISE NOTICE 'caught'; END $$; COMMIT; SELECT count(*) FROM part0 WHERE k >= 100; UPDATE part0 SET k = k - 100 WHERE k >= 100},
	q{BEGIN; UPDATE part0 SET k = k + 100; SAVEPOINT s; SELECT CASE WHEN mine(id) = 7 THEN 1 / (mine(id) - 7) ELSE id END FROM (SELECT id FROM failing UNION ALL SELECT id FROM part1) f; ROLLBACK TO s; COMMIT; SELECT count(*) FROM part0 WHERE k >= 100; UPDATE part0 SET k = k - 100 WHERE k >= 100},
	'SELECT k, mine(id), count(q) FROM failing GROUP BY GROUPING SETS ((k), (mine(id))) LIMIT 2',
	'BEGIN; DECLARE c CURSOR FOR SELECT k, mine(id), count(q) FROM failing GROUP BY GROUPING SETS ((k), (mine(id))); FETCH 2 FROM c; SAVEPOINT a; SELECT count(*) FROM part0; ROLLBACK TO a; SAVEPOINT b; FETCH 1 FROM c; ROLLBACK TO b; CLOSE c; SAVEPOINT d; SELECT count(*) FROM part0; COMMIT',
	q{DO $$ DECLARE n bigint; BEGIN BEGIN SELECT count(q) INTO n FROM failing WHERE looked_up(id) >= 0; EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END; SELECT count(*) INTO n FROM part0; RAISE NOTICE '%', n; END $$},
	# an error of rows that nobody has asked for yet is not that of a function which the statement calls
	'SELECT count(told(id)) FROM failing WHERE q IS NOT NULL',
	'SELECT told(id), count(*) FROM failing WHERE q IS NOT NULL GROUP BY 1',
	'SELECT told(id) FROM failing WHERE q IS NOT NULL ORDER BY 1',
	'CREATE TABLE not_made AS SELECT told(id) FROM failing WHERE q IS NOT NULL',
	'SELECT count(told(id)) FROM (SELECT id FROM failing WHERE q IS NOT NULL UNION ALL SELECT id FROM mixed3 WHERE id < 101000) s',
	'SELECT count(*) FROM (SELECT id FROM failing WHERE q IS NOT NULL UNION ALL (SELECT told(id) FROM part1 ORDER BY mine(id))) s',
	'SELECT count(t.id) FROM failing, LATERAL (SELECT id FROM told_told WHERE k = failing.k LIMIT 1) t WHERE q IS NOT NULL',
	(map { "INSERT INTO $_ (id) SELECT id FROM failing WHERE q IS NOT NULL" } qw(told_before told_if told_checked told_indexed told_parent told_foreign)),
	# what is done for rows before, which a scan that begins then sees
	'BEGIN; SELECT put(n) FROM generate_series(20001, 20003) n UNION ALL SELECT count(*) FROM part0 WHERE mine(id) >= 0; ROLLBACK',
	'BEGIN; SELECT put(id) AS n FROM mixed3 WHERE id < 100003 UNION ALL (SELECT id FROM part0 WHERE mine(id) = 1 ORDER BY id DESC LIMIT 5); ROLLBACK',
	'BEGIN; SELECT * FROM ((SELECT put(id) AS n FROM mixed3 WHERE id < 100003) UNION ALL (SELECT id FROM part0 WHERE mine(id) = 1)) s ORDER BY n DESC LIMIT 5; ROLLBACK',
	'BEGIN; INSERT INTO part0 SELECT n, 1, 1 FROM generate_series(20001, 20003) n UNION ALL SELECT 30000 + count(*), 2, 2 FROM part0 WHERE mine(id) >= 0; SELECT max(id) FROM part0; ROLLBACK',
	"SET my.min = 1; SELECT length(set_config('my.min', '500', false)) UNION ALL SELECT count(*) FROM part0 WHERE mine(id) >= 0 AND id >= (SELECT current_setting('my.min')::int)",
	'BEGIN; SELECT put_stable(n) FROM generate_series(20001, 20003) n UNION ALL SELECT count(*) FROM part0 WHERE mine(id) >= 0; ROLLBACK',
	# errors of servers
	"SELECT v, id FROM t WHERE 1 / (id - 500) > -1 ORDER BY id",
	"BEGIN; SAVEPOINT a; SELECT id FROM t WHERE 1 / (id - 500) > -1 ORDER BY id; ROLLBACK TO a; SELECT count(*) FROM t; COMMIT",
);
foreach my $statement (@statements)
{
	my ($off, $on) = map {
		my ($ret, $out, $err) = $node->psql('postgres', "SET aio.foreign_read_ahead = $_; $statement", on_error_stop => 0);
		$err =~ s/^psql:<stdin>:\d+: //mg;
		"$out\n$err";
	} qw(off on);
	ok($off ne "\n", 'there is a result: ' . substr($statement, 0, 60));
	is($on, $off, $statement);
}

# INVARIANT-96: what a server sends is made values by input functions, and that of
# a domain calls a function of a user.
$node->safe_psql('postgres', q{
	CREATE FUNCTION note(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.n', i::text, false); RETURN i; END $$;
	CREATE DOMAIN noting AS int CHECK (note(VALUE) > 0);
	CREATE FOREIGN TABLE noted (id int, k noting) SERVER shard0 OPTIONS (table_name 'noted', use_remote_estimate 'true', async_capable 'false');
	CREATE FOREIGN TABLE plain (id int, k int) SERVER shard0 OPTIONS (table_name 'noted', use_remote_estimate 'true', async_capable 'false');
	CREATE TABLE a AS SELECT i AS id, 1 + i * 13 % 1000 AS fk, 0 AS zero FROM generate_series(1, 300) i;
	CREATE TABLE b (id int PRIMARY KEY, t text);
	INSERT INTO b SELECT i, 'text ' || i FROM generate_series(1, 1000) i;
	CREATE EXTENSION aio;
	VACUUM (FREEZE, ANALYZE) a, b});
$shards[0]->safe_psql('postgres', q{
	CREATE TABLE noted (id int PRIMARY KEY, k int);
	INSERT INTO noted SELECT i, i FROM generate_series(1, 300) i;
	ANALYZE noted});
my $early = q{SET my.n = 1; SELECT max(mine(k)) FROM %s UNION ALL SELECT count(*) FROM part1 WHERE mine(id) >= 0 AND id >= (SELECT current_setting('my.n')::int)};
foreach my $table (qw(noted plain))
{
	my ($off, $on) = map { $node->safe_psql('postgres', "SET aio.foreign_read_ahead = $_; " . sprintf($early, $table)) } qw(off on);
	is($on, $off, "a scan that comes later, after columns of $table");
}
SKIP:
{
	skip 'lookups can be forced only in a build with assertions', 4
	  unless $node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_lookups'});
	foreach my $table (qw(noted plain))
	{
		my ($before, $off, $made, $on) = map {
			my $n = $node->safe_psql('postgres', q{SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'});
			($n, $node->safe_psql('postgres', qq{
				SET aio.debug_lookups = $_; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off;
				SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET join_collapse_limit = 1; SET my.n = 0;
				SELECT a.id, b.t, f.k FROM (a JOIN b ON b.id = a.fk) JOIN $table f ON f.id = a.id WHERE current_setting('my.n')::int + a.zero < 50}))
		} 0, 64;
		$made = $node->safe_psql('postgres', q{SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'}) - $made;
		is($on, $off, "columns of $table: the same with lookups ahead");
		$table eq 'plain' ? cmp_ok($made, '>', 100, 'lookups are made') : is($made, 0, 'no lookups are made');
	}
}

# A FETCH gets more rows as the scan goes on, unless they are wide.
$shards[0]->safe_psql('postgres', q{
	ALTER SYSTEM SET log_statement = 'all';
	SELECT pg_reload_conf();
	CREATE TABLE wide AS SELECT i AS id, repeat('x', 200000) AS v FROM generate_series(1, 50) i});
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE wide (id int, v text) SERVER shard0});
sub fetches
{
	my ($setting, $statement) = @_;
	my $offset = -s $shards[0]->logfile;

	$node->safe_psql('postgres', "SET aio.foreign_read_ahead = $setting; $statement");
	my %sizes = map { $_ => 1 } slurp_file($shards[0]->logfile, $offset) =~ /FETCH (\d+) FROM/g;
	return join ' ', sort { $a <=> $b } keys %sizes;
}

# How many of them a statement takes.
sub fetched
{
	my ($setting, $statement) = @_;
	my $offset = -s $shards[0]->logfile;

	$node->safe_psql('postgres', "SET aio.foreign_read_ahead = $setting; $statement");
	return scalar(() = slurp_file($shards[0]->logfile, $offset) =~ /FETCH \d+ FROM/g);
}
$shards[0]->poll_query_until('postgres', q{SELECT setting = 'all' FROM pg_settings WHERE name = 'log_statement'});

# While the rows of the second FETCH are used, the third one is on its way, if
# nobody else can use the connection meanwhile.  The statement waits at one of
# these rows.
my $row = $node->safe_psql('postgres', 'SELECT id FROM part0 OFFSET 14 LIMIT 1');
$here = $node->background_psql('postgres');
my $other = $node->background_psql('postgres');
my $other_pid = $other->query('SELECT pg_backend_pid()');
my $passing = 'FROM part0 WHERE pass(part0.id) IS NOT NULL';
foreach my $case (
	['SELECT id %s', 1],
	['SELECT count(*), random() %s', 1],
	['SELECT count(*) FROM mixed3 JOIN (SELECT k %s) p USING (k)', 1],
	['SELECT k, count(*) %s GROUP BY k ORDER BY mine(k)', 1],
	['CREATE TABLE made AS SELECT id %s', 1],
	['COPY (SELECT id %s) TO STDOUT', 1],
	['INSERT INTO kept (id) SELECT id %s', 1],
	['INSERT INTO part1 SELECT id, k, v %s', 1],
	['SELECT count(id) FROM (SELECT id %s) p WHERE told(id) = 1', 0],
	['INSERT INTO told_before SELECT id %s', 0],
	['INSERT INTO told_back (id) SELECT id %s RETURNING a', 0])
{
	my ($statement, $ahead) = (sprintf($case->[0], $passing), $case->[1]);
	my $offset = -s $shards[0]->logfile;

	$here->query_safe("SELECT pg_advisory_lock($row)");
	$other->query_until(qr/begun/, "\\echo begun\nBEGIN; $statement; ROLLBACK; SELECT pg_advisory_unlock_all();\n");
	$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $other_pid") or die 'it does not come';
	$shards[0]->wait_for_log(qr/(?:FETCH 10 FROM c1\b.*){3}/s, $offset) if $ahead;
	is(scalar(() = slurp_file($shards[0]->logfile, $offset) =~ /FETCH 10 FROM c1\b/g), $ahead ? 3 : 2, ($ahead ? '' : 'not ') . "ahead: $statement");
	$here->query_safe('SELECT pg_advisory_unlock_all()');
	$other->query_safe('');
}
$_->quit foreach $here, $other;

my $all_rows = 'SELECT v FROM part0 ORDER BY mine(id)';
my $by_append = 'SELECT count(v) FROM t WHERE mine(id) >= 0';
is(fetches('on', $all_rows), '10 20 40 80 160', 'more and more rows are fetched at a time');
is(fetches('on', $by_append), '10 20 40 80 160', 'by an asynchronous scan, too');
is(fetches('off', $all_rows), '10', 'but not without reading ahead');
is(fetches('on', 'SELECT v FROM wide ORDER BY mine(id)'), '10', 'nor if they are wide');
is(fetches('on', 'SELECT sum(caught(id)) FROM part0'), '10 20 40 80 160', 'nor do errors that are caught keep it from that');
is(fetches('on', "$all_rows LIMIT 5"), '10 20 40 80 160', 'a sort wants all rows');

# What may not be needed is not asked for.
foreach my $statement (
	'SELECT v FROM part0 WHERE mine(id) >= 0 LIMIT 45',
	'SELECT v FROM part1 WHERE mine(id) >= 0 UNION ALL (SELECT v FROM part0 ORDER BY mine(id)) LIMIT 5',
	'BEGIN; DECLARE c CURSOR FOR SELECT v FROM part0; MOVE 45 IN c; COMMIT',
	'SELECT EXISTS (SELECT FROM part0 WHERE mine(id) = 9)',
	'SET enable_mergejoin = off; SET enable_nestloop = off; SELECT count(*) FROM (SELECT id FROM mixed3 UNION ALL (SELECT id FROM part0 ORDER BY mine(id))) s JOIN (SELECT id FROM mixed3 WHERE k * 2 < 0 OFFSET 0) b ON b.id = s.id',
	'SELECT count(*) FROM (SELECT id FROM mixed WHERE mine(id) >= 0 LIMIT 4000) s',
	'BEGIN; SELECT id FROM mixed WHERE mine(id) >= 0 LIMIT 4000 FOR UPDATE; COMMIT',
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM mixed WHERE mine(id) >= 0; MOVE 4000 IN c; COMMIT',
	q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM part0 LOOP EXIT WHEN mine(r.id) = 9; END LOOP; END $$},
	'SELECT count(*) FROM (VALUES (1), (2)) v(i) WHERE EXISTS (SELECT FROM part0 WHERE mine(id) = v.i)')
{
	cmp_ok(fetched('on', $statement), '<=', fetched('off', $statement), "nothing more is fetched: $statement");
}

# A cursor keeps its place, also if answers have been taken while it scanned
# what is here.
foreach my $setting (qw(off on))
{
	my ($ret, $out, $err) = $node->psql('postgres', qq{
		SET aio.foreign_read_ahead = $setting;
		BEGIN;
		DECLARE c CURSOR FOR SELECT 'row ' || id FROM mixed WHERE mine(id) >= 0;
		FETCH 5 FROM c;
		SAVEPOINT a;
		SELECT count(*) FROM part0;
		SELECT count(*) FROM part1;
		FETCH 2000 FROM c;
		ROLLBACK TO a;
		FETCH 2000 FROM c;
		SAVEPOINT b;
		SELECT count(*) FROM part2;
		FETCH 1000 FROM c;
		RELEASE b;
		FETCH ALL FROM c;
		COMMIT}, on_error_stop => 0);
	my %seen = map { $_ => 1 } $out =~ /^row (\d+)$/mg;

	is(scalar(keys %seen) . $err, 6000, "all rows of a cursor over servers and what is here, with reading ahead $setting");
}

# A connection that is lost while rows are fetched ahead: the transaction cannot
# be committed, even if somebody has caught the error, and says so as it does
# otherwise.
$shards[0]->safe_psql('postgres', qq{
	CREATE FUNCTION leave(i int) RETURNS int LANGUAGE plpgsql AS \$\$
	BEGIN
		IF i = $bad THEN
			PERFORM pg_terminate_backend(pg_backend_pid());
		END IF;
		RETURN i;
	END \$\$;
	CREATE VIEW leaving AS SELECT leave(id) AS id FROM part});
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE leaving (id int) SERVER shard0');
foreach my $setting (qw(off on))
{
	(undef, undef, my $lost) = $node->psql('postgres', qq{
		\\set VERBOSITY sqlstate
		SET aio.foreign_read_ahead = $setting;
		BEGIN;
		SAVEPOINT a;
		SELECT count(mine(id)) FROM leaving;
		ROLLBACK TO a;
		COMMIT}, on_error_stop => 0);
	is(join(' ', $lost =~ /ERROR:  (\w+)/g), '08006 08000', "a lost connection is caught, with reading ahead $setting");
}

# A server that dies.
$session->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id; FETCH 50 FROM c');
$shards[1]->stop('immediate');
$session->query('FETCH ALL FROM c');
like($session->{stderr}, qr/ERROR:  (?:server closed the connection unexpectedly|terminating connection|could not receive data|no connection to the server|FATAL)/, 'a server that dies');
$session->{stderr} = '';
$session->query('ROLLBACK');
$shards[1]->start;
is($session->query($plans{'Merge Append'}), 1000, 'is found again');
$session->quit;
unlike(slurp_file($node->logfile), qr/TRAP|PANIC/, 'nothing unusual in the log');
$_->stop foreach $node, @shards;
done_testing();
