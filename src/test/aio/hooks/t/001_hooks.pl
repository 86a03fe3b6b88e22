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

# An error that an extension catches without a subtransaction leaves a plan that
# nobody runs any more, and whose memory goes before the outer one waits for pages.
is($node->safe_psql('postgres', q{
		CREATE FUNCTION swallow(text) RETURNS text LANGUAGE c AS 'test_aio_hooks', 'test_aio_hooks_swallow';
		SELECT FROM pg_buffercache_evict_all();
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
		SELECT (SELECT swallow('SELECT 1 / g FROM generate_series(0, 0) g')), count(t.a)
		FROM keys JOIN t ON t.b = keys.b
		WHERE (SELECT swallow('SELECT 1 / g FROM generate_series(0, 0) g')) = '22012'}), '22012|2000',
	'an error is swallowed');

# An extension stands before a node of a plan: no more rows are taken from it than
# PostgreSQL would.
$node->safe_psql('postgres', q{
	CREATE TABLE source AS SELECT i, CASE i WHEN 3001 THEN 1 ELSE i END AS k FROM generate_series(1, 4000) i;
	CREATE TABLE keyed (i int, k int UNIQUE);
	CREATE INDEX ON keyed (i);
	ANALYZE source});
my ($status, $stdout, $stderr) = $node->psql('postgres', 'SET test_aio_hooks.rows = 3500; INSERT INTO keyed SELECT * FROM source');
like($stderr, qr/duplicate key value/, 'rows after the one that fails are not taken from an extension');
($status, $stdout, $stderr) = $node->psql('postgres', q{
	SET test_aio_hooks.rows = 500;
	SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off;
	SELECT set_config(name, '64', false) FROM pg_settings WHERE name = 'aio.debug_lookups';
	SELECT sum(t.a / (500 - source.i)) FROM source JOIN t ON t.b = hashint4(source.i)});
like($stderr, qr/division by zero/, 'nor ahead');

# An extension stands in for a foreign-data wrapper, and counts what its parts of a
# batch have inserted.
$node->safe_psql('postgres', qq{
	CREATE EXTENSION postgres_fdw;
	CREATE FUNCTION parts_handler() RETURNS fdw_handler LANGUAGE c AS 'test_aio_hooks', 'test_aio_hooks_parts_handler';
	CREATE FOREIGN DATA WRAPPER parts HANDLER parts_handler VALIDATOR postgres_fdw_validator;
	CREATE SERVER loopback FOREIGN DATA WRAPPER parts
		OPTIONS (host '@{[ $node->host ]}', port '@{[ $node->port ]}', dbname 'postgres', async_capable 'true', batch_size '100');
	CREATE USER MAPPING FOR PUBLIC SERVER loopback;
	CREATE TABLE remote (a int PRIMARY KEY);
	CREATE FOREIGN TABLE parts (a int) SERVER loopback OPTIONS (table_name 'remote')});
is($node->safe_psql('postgres', q{
		WITH i AS (INSERT INTO parts SELECT generate_series(1, 1000) RETURNING 1) SELECT count(*) FROM i}), '1000', 'rows of parts are returned');
like($node->safe_psql('postgres', q{DO $$
		DECLARE n bigint;
		BEGIN
			INSERT INTO parts SELECT generate_series(1001, 2000);
			GET DIAGNOSTICS n = ROW_COUNT;
			CREATE TABLE counted AS SELECT n;
		END $$;
		SELECT n FROM counted}), qr/^1000$/, 'and all rows are counted');
is($node->safe_psql('postgres', 'SELECT count(*) FROM remote'), '2000', 'all are there');

# What PostgreSQL has room for in a process is there for extensions, though we
# have taken some of each kind before: as much as stock has left in a session and
# in a subscriber's worker for a partitioned table.
my $take_slots = q{CREATE FUNCTION take_slots(int, int, int) RETURNS void LANGUAGE c AS 'test_aio_hooks', 'test_aio_hooks_take_slots'};
$node->append_conf('postgresql.conf', "wal_level = logical\nmax_wal_senders = 4\n");
$node->restart;
$node->safe_psql('postgres', "$take_slots;" . q{
	CREATE TABLE parent (id int PRIMARY KEY);
	INSERT INTO parent VALUES (1);
	CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)});
is($node->safe_psql('postgres', q{
		INSERT INTO child SELECT i, 1 FROM generate_series(1, 3000) i;
		SELECT take_slots(8, 24, 10);
		CREATE TABLE other AS TABLE child;
		INSERT INTO child SELECT id + 10000, parent FROM other;
		SELECT count(*) FROM child}), "\n6000", 'an extension registers as much in a session as in PostgreSQL');

$node->safe_psql('postgres', q{
	CREATE TABLE r (id int PRIMARY KEY, k int);
	CREATE PUBLICATION p FOR TABLE r;
	SELECT pg_create_logical_replication_slot('s', 'pgoutput');
	CREATE DATABASE subscriber});
my $publisher = $node->connstr . ' dbname=postgres';
$node->safe_psql('subscriber', "$take_slots;" . qq{
	CREATE TABLE r (id int PRIMARY KEY, k int) PARTITION BY RANGE (id);
	CREATE TABLE r1 PARTITION OF r DEFAULT;
	CREATE INDEX ON r (k);
	CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM public.take_slots(5, 24, 10); RETURN NEW; END \$\$;
	CREATE TRIGGER fires BEFORE INSERT ON r FOR EACH ROW EXECUTE FUNCTION fire();
	ALTER TABLE r ENABLE ALWAYS TRIGGER fires;
	CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p WITH (create_slot = false, copy_data = false)});
$node->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO r SELECT i, i FROM generate_series(1, 5000) i;
	UPDATE r SET k = k + 1 WHERE id < 1500;
	COMMIT});
$node->wait_for_catchup('s');
is($node->safe_psql('subscriber', 'SELECT count(*), sum(k - id) FROM r'), '5000|1499', 'and in the worker of a subscription');
ok(!$node->log_contains(qr/out of \w+ slots|cannot add more timeout/, 0), 'no process has run out of places');
is($node->safe_psql('postgres', q{
	CREATE FUNCTION take_wait_events(int) RETURNS void LANGUAGE c AS 'test_aio_hooks', 'test_aio_hooks_take_wait_events';
	SELECT take_wait_events(127)}), '', 'an extension names as many wait events as in PostgreSQL');
$node->safe_psql('subscriber', 'DROP SUBSCRIPTION s');

# An extension's redo writes pages past the buffers: none of them is read ahead,
# for a later record, before.
$node->append_conf('postgresql.conf', "full_page_writes = off\nautovacuum = off\ncheckpoint_timeout = 1h\n");
foreach my $direct ('', 'data')
{
	$node->append_conf('postgresql.conf', "debug_io_direct = '$direct'\n");
	$node->restart;
	$node->safe_psql('postgres', q{
		CREATE OR REPLACE FUNCTION add(regclass, int, int) RETURNS void LANGUAGE c AS 'test_aio_hooks', 'test_aio_hooks_add';
		DROP TABLE IF EXISTS written;
		CREATE TABLE written (i int, v int, pad text) WITH (fillfactor = 50);
		INSERT INTO written SELECT i, 0, repeat('x', 500) FROM generate_series(1, 3000) i;
		CHECKPOINT;
		DO $$
		BEGIN
			FOR b IN 0 .. pg_relation_size('written') / 8192 - 1 LOOP
				PERFORM add('written', b, 1000);
				UPDATE written SET pad = 'y' WHERE ctid = format('(%s,1)', b)::tid;
			END LOOP;
		END $$});
	my $sum = 'SELECT count(*), sum(v) FROM written';
	is($node->safe_psql('postgres', $sum), '3000|3000000', 'an extension changes pages');
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', $sum), '3000|3000000', "they are what they were after a crash, with debug_io_direct = '$direct'");
}
$node->stop;

done_testing();
