# Copyright (c) 2026, the pgawait authors

# A subscription's worker collects index entries of the changes that it applies:
# when they wait, who finds them, and what is left of a transaction that fails.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'server is built without injection points';
}

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'max_prepared_transactions = 5');
$publisher->start;
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
$subscriber->append_conf('postgresql.conf', "io_method = worker\nmax_prepared_transactions = 5\nlog_min_messages = debug1");
$subscriber->start;

foreach my $node ($publisher, $subscriber)
{
	$node->safe_psql(
		'postgres', q{
		CREATE TABLE t (id int PRIMARY KEY, a text, b int);
		CREATE TABLE keyless (a text, b int);
		ALTER TABLE keyless REPLICA IDENTITY FULL;
		CREATE TABLE parts (id int, a text) PARTITION BY HASH (id);
		CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	});
}
$subscriber->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE EXTENSION aio;
	CREATE EXTENSION injection_points;
	CREATE INDEX t_a ON t (a);
	CREATE INDEX t_b ON t USING hash (b);
	CREATE INDEX t_gin ON t USING gin (string_to_array(a, '0')) WITH (fastupdate = off);
	CREATE INDEX keyless_a ON keyless (a);
	CREATE INDEX parts_a ON parts (a);
});
$publisher->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE t, keyless, parts WITH (publish_via_partition_root = true)');
$subscriber->safe_psql('postgres',
	"CREATE SUBSCRIPTION sub CONNECTION '@{[ $publisher->connstr ]} dbname=postgres' PUBLICATION pub WITH (two_phase = on, streaming = on)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');

# Heap and indexes agree, and both nodes have the same rows.
sub check
{
	my ($what) = @_;

	$publisher->wait_for_catchup('sub');
	foreach my $table ('t', 'keyless', 'parts')
	{
		my $sum = "SELECT count(*), sum(hashtext(r::text)::bigint) FROM $table r";
		is($subscriber->safe_psql('postgres', $sum), $publisher->safe_psql('postgres', $sum), "$what: same rows in $table");
	}
	is( $subscriber->safe_psql(
			'postgres', q{
			SELECT count(bt_index_parent_check(indexrelid, true, true)) >= 5 FROM pg_index JOIN pg_class c ON c.oid = indexrelid
			 WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree');
			SET enable_seqscan = off;
			SELECT count(*) FROM t x WHERE NOT EXISTS (SELECT FROM t WHERE b = x.b AND id = x.id);
			SELECT count(*) FROM t WHERE string_to_array(a, '0') @> ARRAY['no such thing'];
			SELECT gin_index_check('t_gin')}),
		"t\n0\n0\n", "$what: heap and indexes agree");
}

# Run a transaction on the publisher, and expect the worker to drain or not to.
# Returns where the subscriber's log was.
sub drains
{
	my ($expected, $script, $what) = @_;
	my $offset = -s $subscriber->logfile;

	$subscriber->safe_psql('postgres', q{SELECT injection_points_attach('aio-drain', 'notice')});
	$publisher->safe_psql('postgres', $script);
	$publisher->wait_for_catchup('sub');
	$subscriber->safe_psql('postgres', q{SELECT injection_points_detach('aio-drain')});
	my $log = slurp_file($subscriber->logfile, $offset);
	my $count = () = $log =~ /notice triggered for injection point aio-drain/g;
	is($count, $expected, "$what: batches");
	check($what);
	return;
}

my $rows = 'INSERT INTO t SELECT n, md5(n::text), n * 7919 % 10007 FROM generate_series';

drains(1, "$rows(1, 3000) n", 'an INSERT');
drains(0, "$rows(3001, 4000) n", 'few rows');
drains(1, join('; ', 'BEGIN', (map { "$rows($_, $_) n" } 4001 .. 5500), 'COMMIT'), 'many statements in a transaction');
drains(0, join('; ', map { "$rows($_, $_) n" } 5501 .. 7000), 'many transactions');
drains(1, "BEGIN; $rows(7001, 9000) n; DELETE FROM t WHERE id % 5 = 0; $rows(9001, 11000) n; COMMIT",
	'a deletion in between');
drains(1, "BEGIN; UPDATE t SET a = md5(a), b = b + 1 WHERE id <= 3000; $rows(11000, 11000) n ON CONFLICT (id) DO UPDATE SET b = -1; DELETE FROM t WHERE id % 7 = 0; COMMIT",
	'updates');
drains(1, "BEGIN; UPDATE t SET b = b + 1 WHERE id <= 1500; UPDATE t SET b = b + 1 WHERE id <= 1500; $rows(11001, 11100) n; DELETE FROM t WHERE id <= 1000 OR id > 11000; COMMIT",
	'rows that are updated again, and deleted');
drains(0, q{BEGIN; INSERT INTO keyless SELECT md5(n::text), n FROM generate_series(1, 2000) n;
	UPDATE keyless SET b = -1 WHERE b = 1999; DELETE FROM keyless WHERE b BETWEEN 100 AND 200; COMMIT},
	'rows without a key are searched for in a common index');
drains(1, 'INSERT INTO parts SELECT n, md5(n::text) FROM generate_series(1, 3000) n', 'partitions');
drains(1, "BEGIN; $rows(11001, 12500) n; INSERT INTO parts SELECT n, md5(n::text) FROM generate_series(1, 1500) n; TRUNCATE parts; COMMIT",
	'several tables, one of which is truncated');
drains(1, "BEGIN; $rows(12501, 14500) n; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'", 'a prepared transaction');

# large transactions are spooled to a file, and then applied
$publisher->safe_psql('postgres', q{ALTER SYSTEM SET logical_decoding_work_mem = '64kB'; SELECT pg_reload_conf()});
drains(1, "BEGIN; $rows(20001, 23000) n; SAVEPOINT s; $rows(23001, 24000) n; ROLLBACK TO s; $rows(24001, 24500) n; COMMIT", 'a streamed transaction');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub SET (streaming = parallel)');
$publisher->safe_psql('postgres', "BEGIN; $rows(30001, 33000) n; SAVEPOINT s; $rows(33001, 34000) n; ROLLBACK TO s; $rows(34001, 36500) n; DELETE FROM t WHERE id = 34001; COMMIT");
check('one that parallel workers apply');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub SET (streaming = off)');

# a trigger that looks finds the rows before
$subscriber->safe_psql(
	'postgres', q{
	CREATE TABLE found (id int, n int);
	CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS
		$$BEGIN IF NEW.id % 1000 = 0 THEN INSERT INTO public.found SELECT NEW.id, count(*) FROM public.t WHERE a >= ' '; END IF; RETURN NEW; END$$;
	CREATE TRIGGER look BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION look();
	ALTER TABLE t ENABLE ALWAYS TRIGGER look;
});
my $before = $subscriber->safe_psql('postgres', 'SELECT count(*) FROM t');
drains(3, "$rows(40001, 43500) n", 'a trigger that looks');
is($subscriber->safe_psql('postgres', 'SELECT string_agg((n - ' . $before . ')::text, $$ $$ ORDER BY id) FROM found'), '999 1999 2999', 'it sees all rows before its own');
$subscriber->safe_psql('postgres', 'DROP TRIGGER look ON t');

# a trigger that wants a table for itself
foreach my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', 'CREATE TABLE staging (id int, a text); CREATE TABLE control (id int PRIMARY KEY); CREATE TABLE final (id int, a text)');
}
$subscriber->safe_psql(
	'postgres', q{
	CREATE INDEX ON staging (a);
	CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN INSERT INTO public.final SELECT * FROM public.staging; TRUNCATE public.staging; RETURN NULL; END$$;
	CREATE TRIGGER move AFTER INSERT ON control FOR EACH ROW EXECUTE FUNCTION move();
	ALTER TABLE control ENABLE ALWAYS TRIGGER move;
});
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE staging, control');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false)');
$subscriber->wait_for_subscription_sync($publisher, 'sub');
$publisher->safe_psql('postgres', 'BEGIN; INSERT INTO staging SELECT n, md5(n::text) FROM generate_series(1, 2500) n; INSERT INTO control VALUES (1); COMMIT');
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', 'SELECT (SELECT count(*) FROM staging), (SELECT count(*) FROM final)'), '0|2500', 'a trigger moves rows, and truncates their table');

# A support function of an operator class that does so in the middle of a row,
# which has an entry in the backlog already
$_->safe_psql('postgres', 'CREATE TABLE odd (id int PRIMARY KEY, a int, b int)') foreach ($publisher, $subscriber);
$subscriber->safe_psql(
	'postgres', q{
	CREATE TABLE log (n int);
	CREATE TABLE seen (n int);
	CREATE INDEX odd_a ON odd (a);
	CREATE FUNCTION odd_compare(int, int) RETURNS int LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS
		$$BEGIN
		IF greatest($1, $2) IN (2500, 4000) THEN TRUNCATE public.log; END IF;
		IF greatest($1, $2) = 5700 THEN INSERT INTO public.seen SELECT count(*) FROM public.odd WHERE a IS NOT NULL; END IF;
		RETURN btint4cmp($1, $2);
		END$$;
	CREATE OPERATOR CLASS odd_ops FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 odd_compare(int, int);
	CREATE INDEX odd_b ON odd (b odd_ops);
});
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE odd');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false)');
$subscriber->wait_for_subscription_sync($publisher, 'sub');
my $no_crash = -s $subscriber->logfile;
$publisher->safe_psql('postgres', 'INSERT INTO odd SELECT n, hashint4(n), n FROM generate_series(1, 6000) n');
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', q{SELECT count(*), bt_index_check('odd_a', true) FROM odd}), '6000|', 'a support function that truncates a table');
is($subscriber->safe_psql('postgres', 'SELECT DISTINCT n FROM seen'), '5700', 'it finds all rows');
unlike(slurp_file($subscriber->logfile, $no_crash), qr/terminated by signal/, 'no process has crashed');

# a drain that fails, and a trigger that catches it
$subscriber->safe_psql(
	'postgres', q{
	CREATE TABLE other (id int);
	CREATE OR REPLACE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN BEGIN TRUNCATE public.other; EXCEPTION WHEN OTHERS THEN NULL; END; RETURN NULL; END$$;
	SELECT injection_points_attach('aio-drain', 'error');
});
my $failing = -s $subscriber->logfile;
$publisher->safe_psql('postgres', 'BEGIN; INSERT INTO staging SELECT n, md5(n::text) FROM generate_series(1, 2500) n; INSERT INTO control VALUES (2); COMMIT');
$subscriber->wait_for_log(qr/ERROR: .*error triggered for injection point/, $failing);
$subscriber->safe_psql('postgres', q{SELECT injection_points_detach('aio-drain')});
$publisher->wait_for_catchup('sub');
is( $subscriber->safe_psql('postgres', q{SELECT count(*), bt_index_check('staging_a_idx', true) FROM staging}),
	'2500|', 'a failed drain is not forgiven, and the transaction is applied again');

# A worker searches, without a query, in an index that lacks entries of its own
# transaction: the identity changes in the middle of it; two of the publisher's
# tables are one here.
foreach my $node ($publisher, $subscriber)
{
	$node->safe_psql('postgres', 'CREATE TABLE changing (a int, b int); CREATE TABLE pause (n int); CREATE TABLE moved (id int, r int, a int[])');
}
$publisher->safe_psql('postgres', q{
	CREATE TABLE two (a int, b int);
	CREATE TABLE two_1 (a int, b int);
	ALTER TABLE two_1 REPLICA IDENTITY FULL;
	INSERT INTO two_1 VALUES (4000, 4000), (4500, 4500);});
$subscriber->append_conf('postgresql.conf', 'allow_in_place_tablespaces = on');
$subscriber->reload;
$subscriber->safe_psql('postgres', $_) foreach (
	"CREATE TABLESPACE elsewhere LOCATION ''",
	q{CREATE TABLE two (a int, b int) PARTITION BY RANGE (a);
	CREATE TABLE two_1 PARTITION OF two FOR VALUES FROM (0) TO (100000);
	CREATE INDEX two_a ON two_1 (a);
	CREATE INDEX changing_a ON changing (a);
	CREATE INDEX moved_r ON moved (r);
	CREATE INDEX moved_a ON moved USING gin (a) WITH (fastupdate = off);
	-- waits without a query
	CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN IF pg_advisory_xact_lock(1) IS NULL THEN RETURN NULL; END IF; RETURN NEW; END$$;
	CREATE TRIGGER pause BEFORE INSERT ON pause FOR EACH ROW EXECUTE FUNCTION pause();
	ALTER TABLE pause ENABLE ALWAYS TRIGGER pause;});
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE changing, two, two_1, pause, moved');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false)');
$subscriber->wait_for_subscription_sync($publisher, 'sub');

my $not_found = -s $subscriber->logfile;
$publisher->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO changing SELECT n, n FROM generate_series(1, 5000) n;
	ALTER TABLE changing REPLICA IDENTITY FULL;
	UPDATE changing SET b = -1 WHERE a = 4000;
	DELETE FROM changing WHERE a = 4500;
	COMMIT;
	BEGIN;
	INSERT INTO two SELECT n, n FROM generate_series(1, 5000) n;
	UPDATE two_1 SET b = -1 WHERE a = 4000;
	DELETE FROM two_1 WHERE a = 4500;
	COMMIT;});
$publisher->wait_for_catchup('sub');
foreach my $table ('changing', 'two')
{
	is( $subscriber->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE b = -1), count(*) FILTER (WHERE a = 4500) FROM $table"),
		'4999|1|0', "$table: rows are found that the transaction has inserted");
	is($subscriber->safe_psql('postgres', "SELECT bt_index_parent_check('${table}_a', true, true)"), '', "$table: heap and index agree");
}
unlike(slurp_file($subscriber->logfile, $not_found), qr/conflict=/, 'none is missed');

# so it is by a trigger in C
$subscriber->safe_psql('postgres', q{
	CREATE EXTENSION test_aio_core;
	CREATE TRIGGER search BEFORE INSERT ON changing FOR EACH ROW EXECUTE FUNCTION search_before_row(1300);
	ALTER TABLE changing ENABLE ALWAYS TRIGGER search;});
$publisher->safe_psql('postgres', 'ALTER TABLE changing REPLICA IDENTITY DEFAULT; TRUNCATE changing; INSERT INTO changing SELECT n, n FROM generate_series(1, 4000) n');
$publisher->wait_for_catchup('sub');
is($subscriber->safe_psql('postgres', q{SELECT count(*), bt_index_check('changing_a', true) FROM changing}), '4000|', 'a trigger finds the rows before its own');
$subscriber->safe_psql('postgres', 'DROP TRIGGER search ON changing');

# Have the worker wait between two rows of a transaction, and do something.
sub while_it_waits
{
	my ($script, $sub) = @_;
	my $other = $subscriber->background_psql('postgres');

	$other->query_safe('SELECT pg_advisory_lock(1)');
	$publisher->safe_psql('postgres', $script);
	$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker' AND wait_event = 'advisory'});
	$sub->();
	$other->query_safe('SELECT pg_advisory_unlock(1)');
	$other->quit;
	$publisher->wait_for_catchup('sub');
	return;
}

my $moved_rows = 'INSERT INTO moved SELECT n, n * 7919 % 10007, ARRAY[n % 17, n % 1001] FROM generate_series';

# While the worker waits, no entries do, and no index is locked: others may move
# indexes and change their options.
while_it_waits(
	"BEGIN; $moved_rows(1, 3000) n; INSERT INTO pause VALUES (1); $moved_rows(3001, 3500) n; COMMIT",
	sub {
		is( $subscriber->safe_psql(
				'postgres', q{
				SELECT count(*) FROM pg_locks l JOIN pg_stat_activity USING (pid) JOIN pg_index ON indexrelid = relation
				 WHERE backend_type = 'logical replication apply worker' AND indexrelid >= 16384}),
			'0', 'no index is locked between two rows');
		$subscriber->safe_psql(
			'postgres', q{
			SET lock_timeout = '30s';
			ALTER INDEX moved_r SET TABLESPACE elsewhere;
			ALTER INDEX moved_r SET (fillfactor = 70);
			ALTER INDEX moved_a SET (fastupdate = on);
			ALTER INDEX moved_a SET TABLESPACE elsewhere;});
	});

# what must be true of them
sub check_moved
{
	my ($rows, $what) = @_;

	is($subscriber->safe_psql('postgres', q{SELECT bt_index_parent_check('moved_r', true, true); SELECT gin_index_check('moved_a')}), "\n", "$what: indexes are sound");
	is( $subscriber->safe_psql(
			'postgres', q{
			SET enable_seqscan = off;
			SELECT count(*) FROM moved;
			SELECT count(*) FROM moved x WHERE NOT EXISTS (SELECT FROM moved WHERE a @> x.a AND id = x.id)}),
		"$rows\n0", "$what: each row is in them");
	return;
}
check_moved(3500, 'indexes that were moved');

# So it is before somebody's code runs for a row of another table, wherever that
# comes in; but that of a column that the publisher sends, or of PostgreSQL's own.
$publisher->safe_psql('postgres', 'TRUNCATE moved');
$subscriber->safe_psql(
	'postgres', q{
	CREATE FUNCTION takes_time(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
		$$BEGIN
		-- a lock that is waited for has the worker give back its own
		WHILE NOT pg_try_advisory_xact_lock_shared(2) LOOP PERFORM pg_sleep(0.01); END LOOP;
		RETURN $1;
		END$$;
	CREATE DOMAIN slow_int AS int CHECK (takes_time(VALUE) IS NOT NULL);
	CREATE DOMAIN quick_int AS int CHECK (VALUE > 0);
	CREATE FUNCTION slow_compare(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
		$$BEGIN RETURN btint4cmp(public.takes_time($1), $2); END$$;
	CREATE OPERATOR CLASS slow_ops FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 slow_compare(int, int);
	CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'});
my %slow = (
	default => 'CREATE TABLE slow_default (n int, d int DEFAULT takes_time(1))',
	check => 'CREATE TABLE slow_check (n int CHECK (takes_time(n) > 0))',
	generated => 'CREATE TABLE slow_generated (n int, d int GENERATED ALWAYS AS (takes_time(n)) STORED)',
	virtual => 'CREATE TABLE slow_virtual (n int, d int CHECK (d + n > 0) DEFAULT 0, e int GENERATED ALWAYS AS (d + n) VIRTUAL CHECK (takes_time(n) > 0))',
	expression => 'CREATE TABLE slow_expression (n int); CREATE INDEX ON slow_expression ((takes_time(n)))',
	predicate => 'CREATE TABLE slow_predicate (n int); CREATE INDEX ON slow_predicate (n) WHERE takes_time(n) > 0',
	opclass => 'CREATE TABLE slow_opclass (n int); CREATE INDEX ON slow_opclass (n slow_ops); INSERT INTO slow_opclass VALUES (0)',
	domain => 'CREATE TABLE slow_domain (n slow_int)',
	domain_default => 'CREATE DOMAIN with_default AS int DEFAULT takes_time(1); CREATE TABLE slow_domain_default (n int, d with_default)',
	array => 'CREATE TABLE slow_array (n int, d slow_int[] DEFAULT ARRAY[1])',
	partition => 'CREATE TABLE slow_partition (n int) PARTITION BY RANGE (takes_time(n)); CREATE TABLE key_partition PARTITION OF slow_partition FOR VALUES FROM (0) TO (100)',
	leaf => 'CREATE TABLE slow_leaf (n int) PARTITION BY LIST (n); CREATE TABLE leaf_1 PARTITION OF slow_leaf (CHECK (takes_time(n) > 0)) FOR VALUES IN (1)',
	json => q{CREATE TYPE mood AS ENUM ('good', 'bad'); CREATE TABLE slow_json (n int CHECK (to_jsonb(CASE WHEN n > 0 THEN 'good' ELSE 'bad' END::mood) <> '0'));
		CREATE FUNCTION as_json(mood) RETURNS json LANGUAGE sql AS 'SELECT to_json(public.takes_time(1))'; CREATE CAST (mood AS json) WITH FUNCTION as_json(mood)},
	condition => 'CREATE TABLE slow_condition (n int); CREATE TRIGGER nothing AFTER INSERT ON slow_condition FOR EACH ROW WHEN (takes_time(NEW.n) = 0) EXECUTE FUNCTION nothing();
		ALTER TABLE slow_condition ENABLE ALWAYS TRIGGER nothing',
);
$subscriber->safe_psql('postgres', join(';', values %slow)
	. '; CREATE EXTENSION citext; CREATE TABLE quick (n int CHECK (n > 0), c citext, d quick_int DEFAULT 1, s int DEFAULT takes_time(1), i bigint GENERATED ALWAYS AS IDENTITY, t timestamptz DEFAULT now());
	CREATE INDEX quick_n ON quick (n); CREATE INDEX quick_d ON quick (d)');
$publisher->safe_psql('postgres', join(';', map { "CREATE TABLE slow_$_ (n int)" } keys %slow) . '; CREATE TABLE quick (n int, s int, c text)');
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE ' . join(',', 'quick', map { "slow_$_" } keys %slow));
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false)');
$subscriber->wait_for_subscription_sync($publisher, 'sub');
{
	my $other = $subscriber->background_psql('postgres');

	foreach my $kind (sort keys %slow)
	{
		$other->query_safe('SELECT pg_advisory_lock(2)');
		$publisher->safe_psql('postgres', "TRUNCATE moved; BEGIN; $moved_rows(1, 3000) n; INSERT INTO slow_$kind VALUES (1); $moved_rows(3001, 3500) n; COMMIT");
		$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker' AND wait_event = 'PgSleep'})
		  or die "$kind: the worker does not wait";
		is( $subscriber->safe_psql(
				'postgres', q{
				SELECT count(*) FROM pg_locks l JOIN pg_stat_activity USING (pid) JOIN pg_index ON indexrelid = relation
				 WHERE backend_type = 'logical replication apply worker' AND indrelid = 'moved'::regclass}),
			'0', "no index is locked while a function runs: $kind");
		$other->query_safe('SELECT pg_advisory_unlock(2)');
		$publisher->wait_for_catchup('sub');
		is($subscriber->safe_psql('postgres', "SELECT count(*) FROM slow_$kind WHERE n = 1"), '1', "and the row is there: $kind");
	}
	$other->quit;
}
check_moved(3500, 'functions between rows');
drains(1, "BEGIN; $rows(44001, 46500) n; INSERT INTO quick SELECT n, n, n FROM generate_series(1, 1500) n; COMMIT", 'nothing of the kind');
ok($subscriber->poll_query_until('postgres', q{SELECT coalesce(sum(entries), 0) > 0 FROM pg_stat_aio_relation WHERE indexrelname = 'quick_n'}), 'which is collected');

# A session moves the index while the worker waits, and then wants the table,
# which it gets when the worker has committed.
{
	my $session = $subscriber->background_psql('postgres');

	$publisher->safe_psql('postgres', 'TRUNCATE moved');
	while_it_waits(
		"BEGIN; $moved_rows(4001, 7000) n; INSERT INTO pause VALUES (3); COMMIT",
		sub {
			$session->query_until(qr/^begun/m, "BEGIN; ALTER INDEX moved_r SET TABLESPACE pg_default; \\echo begun\nLOCK TABLE moved IN EXCLUSIVE MODE; \\echo locked\n");
			$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'moved'::regclass AND NOT granted}) or die 'it does not wait';
		});
	$session->query_until(qr/^locked/m, '');
	is($session->{stderr}, '', 'who has moved an index, and wants its table, meets no deadlock');
	$session->query_safe('COMMIT; ALTER INDEX moved_r SET TABLESPACE elsewhere');
	$session->quit;
}
check_moved(3000, 'an index that was moved before the worker commits');

# The worker waits for a session that wants an index whose entries wait.
{
	my $session = $subscriber->background_psql('postgres');

	$publisher->safe_psql('postgres', 'TRUNCATE moved');
	$publisher->wait_for_catchup('sub');
	$session->query_safe('BEGIN; LOCK TABLE changing');
	$publisher->safe_psql('postgres', "BEGIN; $moved_rows(7001, 9500) n; INSERT INTO changing VALUES (-1, -1); COMMIT");
	$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE relation = 'changing'::regclass AND NOT granted}) or die 'the worker does not wait';
	$session->query_safe(q{SET LOCAL lock_timeout = '30s'; ALTER INDEX moved_r SET TABLESPACE pg_default; COMMIT});
	$session->quit;
	$publisher->wait_for_catchup('sub');
}
check_moved(2500, 'an index that somebody wants for whom the worker waits');

# Somebody waits for an index while the worker is busy with its table: he has it
# before the worker's transaction ends.
$subscriber->safe_psql('postgres', q{
	CREATE FUNCTION await() RETURNS trigger LANGUAGE plpgsql AS $$
	DECLARE done boolean := false;
	BEGIN
		WHILE NOT done LOOP
			IF NEW.id = 12000 THEN
				done := EXISTS (SELECT FROM pg_locks WHERE relation = 'public.moved_r'::regclass AND NOT granted);
			ELSE
				done := EXISTS (SELECT FROM pg_class WHERE relname = 'moved_r' AND reltablespace <> 0);
			END IF;
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN NEW;
	END$$;
	CREATE TRIGGER await BEFORE INSERT ON moved FOR EACH ROW WHEN (NEW.id IN (12000, 12500)) EXECUTE FUNCTION await();
	ALTER TABLE moved ENABLE ALWAYS TRIGGER await;});
{
	my $session = $subscriber->background_psql('postgres');

	$publisher->safe_psql('postgres', "TRUNCATE moved");
	$publisher->safe_psql('postgres', "BEGIN; $moved_rows(10501, 13000) n; COMMIT");
	$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker' AND wait_event = 'PgSleep'}) or die 'the worker does not wait';
	$session->query_safe(q{SET lock_timeout = '60s'; ALTER INDEX moved_r SET TABLESPACE elsewhere});
	$session->quit;
	$publisher->wait_for_catchup('sub');
	$subscriber->safe_psql('postgres', 'DROP TRIGGER await ON moved');
}
check_moved(2500, 'an index that somebody waits for');
$publisher->safe_psql('postgres', 'TRUNCATE moved');
$publisher->wait_for_catchup('sub');

# A table that is not worth collecting for, while entries of one of its indexes
# are in temporary files.
$subscriber->safe_psql('postgres', $_) foreach (
	"ALTER SYSTEM SET aio.debug_spill = on", "ALTER SYSTEM SET aio.index_batch_memory = '200kB'", 'SELECT pg_reload_conf()',
	'ALTER INDEX moved_a SET (fastupdate = off)');
my $large = 'INSERT INTO moved SELECT n, n * 7919 % 10007, (SELECT array_agg(hashint4(n * 1000 + m)) FROM generate_series(1, 100) m) FROM generate_series';
while_it_waits("BEGIN; $large(10001, 14000) n; INSERT INTO pause VALUES (2); INSERT INTO changing SELECT n, n FROM generate_series(1, 50) n; COMMIT",
	sub { $subscriber->safe_psql('postgres', q{ALTER INDEX moved_r SET (fillfactor = 80); ALTER INDEX moved_r SET TABLESPACE pg_default}) });
check_moved(4000, 'entries that were spilled');
$subscriber->safe_psql('postgres', $_)
  foreach ('ALTER SYSTEM RESET aio.debug_spill', 'ALTER SYSTEM RESET aio.index_batch_memory', 'SELECT pg_reload_conf()');

# Somebody alters a table that the worker has open for its entries alone.  The
# worker finds that out when it opens the next table, and has to wait in the
# middle for the catalog: the table stays open.
{
	my $session = $subscriber->background_psql('postgres');
	my $applied = qq{backend_type = 'logical replication apply worker'};

	foreach my $node ($publisher, $subscriber)
	{
		$node->safe_psql('postgres', 'CREATE TABLE altered (id int, r int); CREATE TABLE next (id int)');
	}
	$subscriber->safe_psql('postgres', q{
		CREATE INDEX altered_r ON altered (r);
		CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM public.injection_points_run('hold');
			RETURN NEW;
		END$$;
		CREATE TRIGGER hold BEFORE INSERT ON altered FOR EACH ROW WHEN (NEW.id = 3000) EXECUTE FUNCTION hold();
		ALTER TABLE altered ENABLE ALWAYS TRIGGER hold;
		SELECT injection_points_attach('hold', 'wait')});
	$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE altered, next');
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = off)');
	$subscriber->wait_for_subscription_sync($publisher, 'sub');
	# what is looked up for these tables is known from then on
	$publisher->safe_psql('postgres', 'BEGIN; INSERT INTO altered VALUES (0, 0); INSERT INTO next VALUES (0); COMMIT');
	$publisher->wait_for_catchup('sub');
	$publisher->safe_psql('postgres', 'BEGIN; INSERT INTO altered SELECT n, n * 7919 % 1009 FROM generate_series(1, 3000) n; INSERT INTO next VALUES (1); COMMIT');
	$subscriber->wait_for_event('logical replication apply worker', 'hold');
	my $pid = $subscriber->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $applied");
	$session->query_safe('ALTER TABLE altered SET (parallel_workers = 2)');
	$session->query_safe(q{BEGIN; LOCK TABLE pg_class; ALTER TABLE altered SET (parallel_workers = 3); ALTER INDEX altered_r SET (fillfactor = 70);
		SELECT injection_points_wakeup('hold')});
	# nobody else can ask
	for (my $i = 0; $i < 10 * $PostgreSQL::Test::Utils::timeout_default; $i++)
	{
		last if $session->query_safe("SELECT count(*) > 0 FROM pg_locks WHERE relation = 'pg_class'::regclass AND NOT granted AND pid = $pid") eq 't';
		usleep(100_000);
	}
	$session->query_safe(q{COMMIT; SELECT injection_points_detach('hold')});
	$session->quit;
	$publisher->wait_for_catchup('sub');
	is($subscriber->safe_psql('postgres', q{SELECT (SELECT count(*) FROM altered), (SELECT count(*) FROM next), bt_index_check('altered_r', true)}),
		'3001|2|', 'a table is altered, and the worker waits for a catalog');
	$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub DROP TABLE altered, next');
}

# The publisher updates a row of a table, whose insertion on the subscriber waits for
# an advisory lock that the session has: until a worker waits for it, or misses it.
sub update_while_inserted
{
	my ($locker, $table, $lock) = @_;

	$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or die 'it does not wait';
	$publisher->safe_psql('postgres', "UPDATE $table SET v = 1 WHERE id = 3400");
	$subscriber->poll_query_until('postgres', q{
		SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker' AND wait_event = 'transactionid')
			OR EXISTS (SELECT FROM pg_stat_subscription_stats WHERE confl_update_missing > 0)}) or die 'it does neither';
	$locker->query_safe("SELECT pg_advisory_unlock($lock)");
	return;
}

# A row that a session of the subscriber has inserted, whose statement is running
# yet, is not missing: the worker waits for it.  It is one of those that would
# not even be in the table.
{
	my $locker = $subscriber->background_psql('postgres');
	my $session = $subscriber->background_psql('postgres');

	foreach my $node ($publisher, $subscriber)
	{
		$node->safe_psql('postgres', q{
			CREATE TABLE local (id int, v int) PARTITION BY RANGE (id);
			CREATE TABLE local_part PARTITION OF local FOR VALUES FROM (0) TO (10000);
			CREATE INDEX ON local (id);
			ALTER TABLE local REPLICA IDENTITY FULL;
			ALTER TABLE local_part REPLICA IDENTITY FULL});
	}
	$publisher->safe_psql('postgres', q{
		INSERT INTO local SELECT n, 0 FROM generate_series(1, 3500) n;
		ALTER PUBLICATION pub ADD TABLE local});
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = off)');
	$locker->query_safe('SELECT pg_advisory_lock(2)');
	$session->query_until(qr/begun/, q{\echo begun
		INSERT INTO local_part SELECT n, 0 FROM generate_series(1, 3500) n UNION ALL SELECT 0, 0 WHERE pg_advisory_lock_shared(2)::text = 'never';
});
	update_while_inserted($locker, 'local', 2);
	$session->query_safe('SELECT 1');
	$_->quit foreach ($locker, $session);
	$publisher->wait_for_catchup('sub');
	is($subscriber->safe_psql('postgres', 'SELECT v FROM local WHERE id = 3400'), '1', 'a row that a session inserts meanwhile is updated');
	$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub DROP TABLE local');
}

# Nor is it if the worker of another subscription has inserted it.
{
	my $locker = $subscriber->background_psql('postgres');

	$_->safe_psql('postgres', q{
		CREATE TABLE mine (id int PRIMARY KEY);
		CREATE TABLE across (id int, v int);
		CREATE INDEX ON across (id);
		ALTER TABLE across REPLICA IDENTITY FULL}) foreach ($publisher, $subscriber);
	$publisher->safe_psql('postgres', q{
		INSERT INTO across SELECT n, 0 FROM generate_series(1, 3500) n;
		ALTER PUBLICATION pub ADD TABLE mine;
		CREATE PUBLICATION pub_across FOR TABLE across});
	$subscriber->safe_psql('postgres', q{
		CREATE FUNCTION spread() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO public.across SELECT n, 0 FROM generate_series(1, 3500) n UNION ALL SELECT 0, 0 WHERE pg_advisory_xact_lock_shared(3)::text = 'never';
			RETURN NULL;
		END$$;
		CREATE TRIGGER spread AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION spread();
		ALTER TABLE mine ENABLE ALWAYS TRIGGER spread;
		SELECT pg_stat_reset_subscription_stats(NULL)});
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = off)');
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub_across CONNECTION '@{[ $publisher->connstr ]} dbname=postgres' PUBLICATION pub_across WITH (copy_data = off)");
	$subscriber->wait_for_subscription_sync;
	$locker->query_safe('SELECT pg_advisory_lock(3)');
	$publisher->safe_psql('postgres', 'INSERT INTO mine VALUES (1)');
	update_while_inserted($locker, 'across', 3);
	$locker->quit;
	$publisher->wait_for_catchup($_) foreach ('sub', 'sub_across');
	is($subscriber->safe_psql('postgres', 'SELECT v FROM across WHERE id = 3400'), '1', 'a row that the worker of another subscription inserts meanwhile is updated');
	$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION sub_across');
	$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub DROP TABLE mine');
}

# ALTER SUBSCRIPTION has its catalog locked while it talks to the publisher: who
# inserts rows does not wait for that.
{
	my $session = $subscriber->background_psql('postgres');

	$subscriber->safe_psql('postgres', 'CREATE TABLE own (n int, r int); CREATE INDEX ON own (r)');
	$session->query_safe('BEGIN; LOCK TABLE pg_subscription_rel');
	is($subscriber->safe_psql('postgres', q{SET lock_timeout = '10s'; INSERT INTO own SELECT n, n * 7919 % 1009 FROM generate_series(1, 3000) n; SELECT count(*) FROM own}),
		'3000', 'rows are inserted while the catalog of subscriptions is locked');
	$session->query_safe('ROLLBACK');

	# who connects while it is made anew waits for its index
	my $other = $subscriber->background_psql('postgres');
	my $insert = 'INSERT INTO own SELECT n, n * 7919 % 1009 FROM generate_series(1, 3000) n';
	$other->query_safe("BEGIN; SET lock_timeout = '10s'; INSERT INTO own VALUES (0, 0)");
	$session->query_safe('BEGIN; REINDEX INDEX pg_subscription_rel_srrelid_srsubid_index');
	is($other->query_safe("$insert; SELECT count(*) FROM own; ROLLBACK"), '6001', 'or while its index is');
	$other->quit;
	$session->query_safe('ROLLBACK');
	$session->quit;
}

# more tables than are kept open
my $many = join('; ', 'CREATE TABLE many (id int, a text) PARTITION BY HASH (id)',
	(map { "CREATE TABLE many_$_ PARTITION OF many FOR VALUES WITH (MODULUS 70, REMAINDER $_)" } 0 .. 69));
$_->safe_psql('postgres', $many) foreach ($publisher, $subscriber);
$subscriber->safe_psql('postgres', 'CREATE INDEX ON many (a); CREATE INDEX ON many (id)');
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE many');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false)');
$subscriber->wait_for_subscription_sync($publisher, 'sub');
$publisher->safe_psql('postgres', 'INSERT INTO many SELECT n, md5(n::text) FROM generate_series(1, 5000) n');
$publisher->wait_for_catchup('sub');
is( $subscriber->safe_psql(
		'postgres', q{
		SELECT count(*) FROM many;
		SELECT count(bt_index_parent_check(indexrelid, true, true)) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
		 WHERE relkind = 'i' AND relname LIKE 'many%'}),
	"5000\n140", 'many partitions');
$subscriber->safe_psql('postgres', 'DROP TABLE many');
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub DROP TABLE many');

# a transaction that fails leaves nothing, and is applied when it can be
my $offset = -s $subscriber->logfile;
$subscriber->safe_psql('postgres', q{INSERT INTO t VALUES (52500, 'in the way', 0)});
$publisher->safe_psql('postgres', "$rows(50001, 53000) n");
$subscriber->wait_for_log(qr/conflict detected on relation "public.t": conflict=insert_exists.*Key \(id\)=\(52500\)/s, $offset);
is($subscriber->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id BETWEEN 50001 AND 52499'), '0', 'a failing row leaves nothing of its transaction');
$subscriber->safe_psql('postgres', 'DELETE FROM t WHERE id = 52500');
check('after a conflict');

# a worker that is killed while it drains
$subscriber->safe_psql('postgres', q{SELECT injection_points_attach('aio-drain', 'wait')});
$publisher->safe_psql('postgres', "$rows(60001, 63000) n");
$subscriber->wait_for_event('logical replication apply worker', 'aio-drain');
$subscriber->safe_psql('postgres', q{SELECT injection_points_detach('aio-drain');
	SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker'});
check('after the worker was terminated');

$subscriber->stop;
$publisher->stop;
done_testing();
