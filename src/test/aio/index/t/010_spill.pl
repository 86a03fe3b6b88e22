# Copyright (c) 2026, the pgawait authors

# Index entries that do not fit into memory: when they are spilled to temporary
# files and when not, that they are all found, in order, and that nothing is left
# of a statement that fails.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	shared_buffers = 4MB
	autovacuum = off
	fsync = off
	max_wal_size = 4GB
	aio.index_batch_memory = 3MB
});
$node->start;

my $injection = ($ENV{enable_injection_points} // '') eq 'yes'
  && $node->check_extension('injection_points');
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points') if $injection;
my $assertions = $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';

$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION amcheck;
	CREATE FUNCTION key(n int) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT md5(n::text)::uuid';
	CREATE TABLE t (id int, u uuid, n int);
	CREATE TABLE small (LIKE t);
	CREATE INDEX small_u ON small (u);

	CREATE FUNCTION complaints() RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		i regclass;
	BEGIN
		FOR i IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
			JOIN pg_am am ON am.oid = relam WHERE amname = 'btree' AND relnamespace = 'public'::regnamespace AND relkind = 'i'
		LOOP
			PERFORM bt_index_parent_check(i, true, true);
		END LOOP;
	END$$;
	CREATE FUNCTION found(key uuid) RETURNS int LANGUAGE plpgsql VOLATILE
		SET enable_seqscan = off SET enable_bitmapscan = off AS
		$$BEGIN RETURN (SELECT count(*) FROM t WHERE u = key); END$$;
});

my $errors = '';

sub run
{
	my ($script) = @_;
	my ($code, $stdout, $stderr) = $node->psql('postgres', $script, on_error_stop => 0);
	$errors .= $stderr;
	return $stdout;
}

# The errors since this was asked last.
sub errors
{
	my $result = $errors;
	$errors = '';
	return $result;
}

# What a statement does, the last of a script.
sub batches
{
	my ($statement) = @_;
	my $said = run("$statement;\nSELECT entries, batches, memory_full, bytes_spilled FROM aio_session_batches();");
	my ($counts) = $said =~ /(\d+\|\d+\|\d+\|\d+)$/
	  or die "no counts: $said$errors";
	my %result;
	@result{qw(entries batches full spilled)} = split /\|/, $counts;
	return \%result;
}

# Indexes have what the heap has, and no temporary file is left.
sub check
{
	my ($why) = @_;
	run('SELECT complaints()');
	is(errors(), '', "$why: indexes are complete and in order");
	is(run('SELECT count(*) FROM pg_ls_tmpdir()'), '0', "$why: no temporary file is left");
	return;
}

sub rows
{
	return run('SELECT count(*) FROM t');
}

# Make the table anew, with an index whose leaves hold some thirty entries, and
# have room for more: many pages, quickly made.
sub renew
{
	run(q{DROP INDEX IF EXISTS t_u, t_id;
		TRUNCATE t;
		INSERT INTO t SELECT n, key(n), 0 FROM generate_series(1, 50000) n;
		CREATE INDEX t_u ON t (u) WITH (fillfactor = 10);
		CREATE INDEX t_id ON t (id) WITH (fillfactor = 10);});
	errors();
	return;
}

# so many rows are more than fit into memory
my $random = 'SELECT 0, gen_random_uuid(), n FROM generate_series(1, 90000) n';

# when entries are spilled
renew();
my $load = batches("INSERT INTO t $random");
is($load->{entries}, 2 * 89000, 'all entries are collected');
is($load->{spilled}, 24 * 89000, 'those of random keys are spilled');
my $file = $node->basedir . '/rows';
run("COPY ($random) TO '$file'");
cmp_ok(batches("COPY t FROM '$file'")->{spilled}, '>', 24 * 80000, 'so are those of COPY');
cmp_ok(batches("MERGE INTO t USING ($random) s (id, u, n) ON false WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.u, s.n)")->{spilled},
	'>', 24 * 80000, 'and of MERGE');
check('random keys');
my $reads = run("SELECT count(*) FROM pg_stat_database WHERE datname = 'postgres' AND temp_files > 0");
is($reads, '1', 'PostgreSQL counts the temporary files');
my $plan = run("BEGIN; EXPLAIN (ANALYZE, AIO, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) INSERT INTO t $random; ROLLBACK");
like($plan, qr/^ *Index t_u: entries=89000 .* spilled=2086kB$/m, 'EXPLAIN tells of it');
unlike($plan, qr/^ *Index t_id: .*spilled/m, 'and of no other index');

# when they are not
renew();
is(batches('INSERT INTO t SELECT n, NULL, n FROM generate_series(1, 100000) n')->{spilled}, 0, 'keys that grow are not spilled');
is(batches('INSERT INTO t SELECT -n, NULL, n FROM generate_series(1, 100000) n')->{spilled}, 0, 'nor those that fall');
is(batches('INSERT INTO t SELECT 0, key(n % 50), n FROM generate_series(1, 90000) n')->{spilled}, 0, 'nor those of few pages');
is(batches("INSERT INTO small $random")->{spilled}, 0, 'nor those of an index that fits into shared_buffers');
is(batches("SET aio.index_batch_memory = '2MB'; INSERT INTO t $random")->{spilled}, 0, 'nor are they with less memory than a sort should have');
is(batches("SET aio.index_batch_memory = '64MB'; INSERT INTO t $random")->{spilled}, 0, 'nor if they fit into memory');

# pages that should stay in memory from one batch to the next, but do not
$node->append_conf('postgresql.conf', 'shared_buffers = 32MB');
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_buffercache');
renew();
run('DROP INDEX t_id');
my $forgetting = q{SET aio.index_batch_memory = '1280kB'; INSERT INTO t SELECT 0, gen_random_uuid(),
	CASE n % 1000 WHEN %d THEN length(pg_buffercache_evict_all()::text) END FROM generate_series(1, 150000) n};
$load = batches($forgetting =~ s/%d/1000/r);
is($load->{spilled}, 0, 'entries of an index that stays in memory are not spilled');
cmp_ok($load->{full}, '>', 1, 'but drained early, more than once');
renew();
run('DROP INDEX t_id');
$load = batches($forgetting =~ s/%d/0/r);
cmp_ok($load->{spilled}, '>', 0, 'those of one that does not stay are');
cmp_ok($load->{spilled}, '<', 24 * 140000, 'from the second batch on');
check('an index that does not stay in memory');
$node->append_conf('postgresql.conf', 'shared_buffers = 4MB');
$node->restart;

# too little room
renew();
$load = batches("SET temp_file_limit = '2MB'; INSERT INTO t $random");
is($load->{spilled}, 0, 'a low temp_file_limit: not spilled');
cmp_ok($load->{full}, '>', 0, 'but drained early');
my $more = $random =~ s/90000/150000/r;
$load = batches("SET temp_file_limit = '14MB'; INSERT INTO t $more");
cmp_ok($load->{spilled}, '>', 0, 'a higher one: spilled');
cmp_ok($load->{batches}, '>', 2, 'and drained before it is reached');
$load = batches("SET temp_file_limit = '30MB'; INSERT INTO t $random ORDER BY random()");
cmp_ok($load->{spilled}, '>', 0, 'a limit with room for a sort of the statement, too');
my $growing = 'WITH w AS MATERIALIZED (SELECT repeat($$w$$, 7000) AS w FROM generate_series(1, 1700))
	SELECT 0, gen_random_uuid(), n FROM (SELECT generate_series(1, 90000) AS n) x UNION ALL SELECT 0, gen_random_uuid(), length(w) FROM w';
run('CREATE TABLE bare (LIKE t)');
foreach my $table ('bare', 't')
{
	$load = batches("SET temp_file_limit = '12MB'; SET work_mem = '64kB'; INSERT INTO $table $growing");
	is(errors(), '', "$table: a file of the statement that grows later than entries are spilled has room");
}
cmp_ok($load->{spilled}, '>', 24 * 80000, 'which they were');
SKIP:
{
	skip 'server is built without injection points', 2 unless $injection;

	$load = batches("SELECT injection_points_set_local();
		SELECT injection_points_attach('aio-no-temp-room', 'notice');
		INSERT INTO t $random;
		SELECT injection_points_detach('aio-no-temp-room')");
	is($load->{spilled}, 0, 'a full disk: not spilled');
	is($load->{entries}, 2 * 89000, 'but collected');
}
is(errors(), '', 'and no error');
renew();
run(qq{CREATE TABLESPACE elsewhere LOCATION '@{[ PostgreSQL::Test::Utils::tempdir ]}'});
is( run(qq{SET temp_tablespaces = elsewhere;
	INSERT INTO t SELECT 0, gen_random_uuid(), CASE WHEN n = 80000 THEN
		(SELECT count(*) FROM pg_ls_tmpdir((SELECT oid FROM pg_tablespace WHERE spcname = 'elsewhere')) WHERE n > 0) END
		FROM generate_series(1, 90000) n;
	SELECT max(n) FROM t WHERE id = 0 AND n < 10}) > 0 ? 1 : 0, 1, 'files are in a tablespace of temp_tablespaces');
check('too little room');

# whoever looks finds the rows
renew();
is( run('SELECT aio_session_stats_reset();
	INSERT INTO t SELECT -1, key(-n), CASE WHEN n % 80000 = 79999 THEN found(key(-n + 1)) + found(key(-1)) ELSE n END FROM generate_series(1, 240000) n;
	SELECT bytes_spilled > 24 * 200000 FROM aio_session_batches();
	SELECT string_agg(n::text, $$ $$ ORDER BY n) FROM t WHERE id = -1 AND n < 10 AND u NOT IN (SELECT key(-g) FROM generate_series(1, 9) g)'),
	"\nt\n2 2 2", 'a function finds rows whose entries were spilled');
run(q{CREATE FUNCTION looks_in_vain(k uuid) RETURNS int LANGUAGE plpgsql AS $$
	DECLARE
		result int;
	BEGIN
		BEGIN
			result := found(k);
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
			RETURN result;
		END;
	END$$});
is( run('INSERT INTO t SELECT -2, key(-300000 - n), CASE WHEN n % 80000 = 79999 THEN looks_in_vain(key(-300001)) ELSE n END FROM generate_series(1, 240000) n;
	SELECT count(*) FROM t WHERE id = -2 AND n = 1'), '4', 'also in a subtransaction that is rolled back');
check('whoever looks');

# statements that fail
renew();
my $before = rows();
run('INSERT INTO t SELECT 1 / (89000 - n), gen_random_uuid(), n FROM generate_series(1, 90000) n');
like(errors(), qr/division by zero/, 'an error of a later row');
is( run(q{DO $$
	BEGIN
		INSERT INTO t SELECT 1 / (89000 - n), gen_random_uuid(), n FROM generate_series(1, 90000) n;
	EXCEPTION WHEN division_by_zero THEN
		RAISE NOTICE 'caught, % files', (SELECT count(*) FROM pg_ls_tmpdir());
		INSERT INTO t SELECT 1, gen_random_uuid(), n FROM generate_series(1, 90000) n;
	END$$}), '', 'an error in a subtransaction');
like(errors(), qr/caught, 0 files/, 'closes the files');
is(rows(), $before + 90000, 'and the next statement succeeds');
run(q{INSERT INTO t SELECT 0, gen_random_uuid(), CASE n WHEN 60000 THEN length(set_config('temp_file_limit', '1kB', false)) END
	FROM generate_series(1, 90000) n});
my $error = errors();
ok($error eq '' || $error =~ /temporary file size exceeds/, 'a limit that is lowered meanwhile');
$before = rows();

SKIP:
{
	skip 'server is built without injection points', 9 unless $injection;

	# All entries are spilled, earlier than if there were two indexes, such that
	# spilling pays by far, however many leaves a sample finds them on.
	run(q{DROP INDEX t_id; ALTER DATABASE postgres SET aio.index_batch_memory = '1500kB'});
	run(qq{SELECT injection_points_set_local();
		SELECT injection_points_attach('aio-spill', 'error');
		INSERT INTO t $random;});
	like(errors(), qr/error triggered for injection point aio-spill/, 'an error after entries have been spilled');
	run(qq{SELECT injection_points_set_local();
		SELECT injection_points_attach('aio-leaf-planned', 'error');
		INSERT INTO t $random;});
	like(errors(), qr/error triggered for injection point aio-leaf-planned/, 'an error when they are drained');
	is(run('SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left');
	run(q{CREATE FUNCTION careless(key uuid) RETURNS int LANGUAGE plpgsql AS
			$$BEGIN RETURN found(key); EXCEPTION WHEN OTHERS THEN RETURN -1; END$$;
		SELECT injection_points_set_local();
		SELECT injection_points_attach('aio-leaf-planned', 'error');
		INSERT INTO t SELECT 0, gen_random_uuid(), CASE n WHEN 85000 THEN careless(key(1)) END FROM generate_series(1, 90000) n;});
	like(errors(), qr/error triggered for injection point aio-leaf-planned/, 'nor is it forgiven');

	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	foreach my $point ('aio-spill', 'aio-leaf-planned')
	{
		$session->query_safe("SELECT injection_points_set_local(); SELECT injection_points_attach('$point', 'wait')");
		$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO t $random;\n");
		$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $pid AND wait_event = '$point'")
		  or die "nobody waits at $point, but " . run("SELECT state, wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $pid; SELECT * FROM pg_aios");
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $pid AND state = 'idle'")
		  or die 'not cancelled';
		$session->query("SELECT injection_points_detach('$point')");
		like($session->{stderr}, qr/canceling statement due to user request/, "cancelled at $point");
		$session->{stderr} = '';
	}
	$session->query_safe("INSERT INTO t $random");
	$session->quit;
	is(rows(), $before + 90000, 'of failed statements nothing is left');
	check('cancelled');
	run('ALTER DATABASE postgres RESET aio.index_batch_memory');
}

# The pages of an index that is larger than the entries, but fits into memory, are
# not read again by each batch.
$node->append_conf('postgresql.conf', 'shared_buffers = 64MB');
$node->restart;
renew();
is(batches("INSERT INTO t $random")->{spilled}, 0, 'with more memory for pages, nothing is spilled');
check('more memory for pages');

# every kind of key, with merges of many small sorts
SKIP:
{
	skip 'server is built without assertions', 5 unless $assertions;

	run(q{
		CREATE TABLE k (id int, a text, b int, p point) PARTITION BY LIST ((id % 2));
		CREATE TABLE k_0 PARTITION OF k FOR VALUES IN (0);
		CREATE TABLE k_1 PARTITION OF k FOR VALUES IN (1);
		CREATE TABLE source AS SELECT n AS id, CASE WHEN n % 5 > 0 THEN repeat(md5((n % 4000)::text), n % 9) END AS a,
			CASE WHEN n % 7 > 0 THEN (n * 7919) % 1009 END AS b, point(n, n) AS p FROM generate_series(1, 4000) n;
		CREATE INDEX ON k (a COLLATE "C", b DESC);
		CREATE INDEX ON k (b DESC NULLS LAST, a) INCLUDE (id, p);
		CREATE INDEX ON k (a text_pattern_ops NULLS FIRST);
		CREATE INDEX ON k ((b % 10)) WHERE b > 500;
		CREATE INDEX ON k (lower(a), (id % 3));
		CREATE INDEX ON k (b) WITH (deduplicate_items = off);
		CREATE INDEX ON k ((md5(id::text)::uuid));
		CREATE INDEX ON k USING hash (a);
		CREATE INDEX ON k USING gist (p);
		CREATE INDEX ON k USING gin (string_to_array(a, '0')) WITH (fastupdate = off);
		CREATE UNIQUE INDEX k_0_key ON k_0 ((md5(id::text)));
		ALTER DATABASE postgres SET aio.debug_spill = on;
		ALTER DATABASE postgres SET aio.debug_rows_before_batch = 0;});
	cmp_ok(batches('INSERT INTO k SELECT * FROM source')->{spilled}, '>', 1_000_000, 'every kind of key');
	run("COPY source TO '$file'; COPY k FROM '$file'");
	like(errors(), qr/duplicate key value violates unique constraint "k_0_key"/, 'a duplicate key');
	run("SELECT aio_session_stats_reset(); UPDATE k SET b = b + 1, a = a || 'x' WHERE id % 2 = 1;");
	run(q{INSERT INTO k SELECT id + 4001, a, b, p FROM source; INSERT INTO k SELECT 4001 + id * 2, NULL, NULL, NULL FROM source});
	check('every kind of key');
	is( run(q{SET enable_seqscan = off; SET enable_bitmapscan = off;
		SELECT count(*), count(*) FILTER (WHERE b > before) FROM
			(SELECT b, lag(b) OVER () AS before FROM (SELECT b FROM k WHERE b IS NOT NULL ORDER BY b DESC NULLS LAST, a) s) s}),
		run(q{SELECT count(b), 0 FROM k}), 'are found in order');
}

$node->stop;
done_testing();
