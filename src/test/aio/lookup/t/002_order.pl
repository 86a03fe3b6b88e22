
# Copyright (c) 2026, the pgawait authors

# What can be seen of the order in which a statement is executed is the same
# with lookups ahead: calls of functions, errors, locks, rows that others
# change.  With aio.debug_lookups everything is looked up ahead, whether it is
# in memory or not, and with debug_discard_caches caches are invalidated
# whenever they can be.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::BackgroundPsql;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my $method = $methods{io_uring} ? 'worker' : 'io_uring';

my $node = PostgreSQL::Test::Cluster->new('lookup_order');
$node->init;
$node->append_conf('postgresql.conf', qq{
	io_method = $method
	autovacuum = off
	max_prepared_transactions = 2
	statement_timeout = 0
	enable_hashjoin = off
	enable_mergejoin = off
	enable_memoize = off
	enable_material = off
	enable_bitmapscan = off
	random_page_cost = 1
	max_parallel_workers_per_gather = 0
});
$node->start;

my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
plan skip_all => 'lookups can be forced only in a build with assertions' unless $can_force;

$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION pg_buffercache;
	CREATE EXTENSION test_aio_lookup;
	CREATE FUNCTION note(int) RETURNS int STABLE LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'note %', $1; RETURN $1; END $$;
	CREATE TABLE items (id int PRIMARY KEY, a int, b int, h int, p point, q point, t text);
	INSERT INTO items SELECT i, i * 7 % 1000, i % 10, i % 500, point(i, i), point(i, i), 'text ' || i % 300 FROM generate_series(1, 1000) i;
	CREATE INDEX items_a ON items (a, b);
	CREATE INDEX items_h ON items USING hash (h);
	CREATE INDEX items_p ON items USING gist (p);
	CREATE INDEX items_q ON items USING spgist (q);
	CREATE INDEX items_t ON items (t);
	CREATE TABLE keys AS SELECT n, n * 13 % 1100 AS a, n % 3 AS b, 'text ' || n AS t, box(point(n, n), point(n + 3, n + 3)) AS x FROM generate_series(1, 200) n;
	CREATE TABLE parts (id int, a int) PARTITION BY LIST (a);
	SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES IN (%s)', i, i) FROM generate_series(0, 9) i \gexec
	INSERT INTO parts SELECT i, i % 10 FROM generate_series(1, 200) i;
	CREATE INDEX parts_a ON parts (a);
	VACUUM ANALYZE});

# What a client sees of these commands, with everything and with nothing ahead.
sub seen
{
	my ($commands, $settings, $ahead) = @_;
	my ($rows, $messages);

	$node->psql('postgres', "$settings; SET aio.debug_lookups = $ahead; $commands",
		stdout => \$rows, stderr => \$messages, on_error_stop => 0);
	$messages =~ s/^psql:<stdin>:\d+: //mg;
	return "$rows\n$messages";
}

sub lookups
{
	return $node->safe_psql('postgres', q{
		SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'});
}

sub same
{
	my ($what, $commands, %options) = @_;
	my $settings = $options{settings} // 'SELECT';
	my $without = seen($commands, $settings, 0);
	my $before = lookups();
	my @with = map { seen($commands, $settings, $_) } (1, 3, 64);

	cmp_ok(length($without), '>', 20, "$what: something is seen");
	is($with[$_], $without, "$what: the same with lookups ahead ($_)") foreach (0 .. 2);
	my $made = lookups() - $before;
	$options{none} ? is($made, 0, "$what: no lookups are made")
	  : cmp_ok($made, '>', 10, "$what: lookups are made");
}

# Caches are invalidated whenever that is possible, while access methods read.
my $discard = 'SET debug_discard_caches = 1';
same('btree, invalidations', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a WHERE k.n <= 40', settings => $discard);
same('hash, invalidations', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.h = k.a WHERE k.n <= 40', settings => $discard);
same('gist, invalidations', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.p <@ k.x WHERE k.n <= 40', settings => $discard);
same('spgist, invalidations', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.q <@ k.x WHERE k.n <= 40', settings => $discard);
same('text, invalidations', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.t = k.t WHERE k.n <= 40', settings => $discard);

# Functions of users are called when it is their turn, wherever they stand.
same('function in the outer rows', 'SELECT k.n, i.id FROM (SELECT n, note(a) AS a FROM keys OFFSET 0) k JOIN items i ON i.a = k.a', none => 1);
same('function in a key', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = note(k.a)', none => 1);
same('function in a filter of the inner side', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a AND i.b <> note(k.b)');
same('function that prunes partitions', 'SELECT k.n, i.id FROM keys k JOIN parts i ON i.a = note(k.b) WHERE k.n <= 20', none => 1);
same('partitions pruned by row', 'SELECT k.n, i.id FROM keys k JOIN parts i ON i.a = k.b WHERE k.n <= 20');
same('function in the output', 'SELECT note(k.n), note(i.id) FROM keys k JOIN items i ON i.a = k.a');

# Subqueries that are evaluated once, when their value is needed first.
same('initialisation plans', q{
	SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a AND i.b > (SELECT min(note(b)) FROM keys WHERE n < 3);
	SELECT k.n, i.id FROM keys k JOIN LATERAL (SELECT * FROM items i WHERE i.a = k.a AND i.b > (SELECT min(note(b)) - 1 FROM keys WHERE n < 3) OFFSET 0) i ON true WHERE k.n > 100});
same('correlated subqueries', q{
	SELECT k.n, (SELECT count(*) FROM keys j JOIN items i ON i.a = j.a WHERE j.n BETWEEN k.n AND k.n + 5) FROM keys k WHERE k.n <= 50});

same('a cursor that is moved before its first row', q{BEGIN; DECLARE c SCROLL CURSOR FOR SELECT k.n, i.id FROM keys k JOIN items i ON i.id = k.a;
	FETCH BACKWARD 1 FROM c; FETCH 100 FROM c; FETCH BACKWARD 1 FROM c; FETCH 50 FROM c; COMMIT});

# A function that keeps something from call to call, beside what would be evaluated
# later.
same('a function that counts', q{SELECT count_calls(), n, (SELECT i.id FROM items i WHERE i.a = k.a) FROM keys k;
	SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a) FROM keys k WHERE (SELECT i.b FROM items i WHERE i.a = k.a) + count_calls() > 20}, none => 1);

# Subqueries in the target list, of scans, joins and others.
same('subqueries in the target list', q{
	SELECT note(k.n), (SELECT note(i.id) FROM items i WHERE i.a = k.a), k.t FROM keys k WHERE k.n % 3 <> 1;
	SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a), EXISTS (SELECT FROM items i WHERE i.a = k.b), k.b IN (SELECT i.b FROM items i WHERE i.a = k.a) FROM keys k LIMIT 90;
	SELECT k.n, k.ctid, k.tableoid::regclass, ARRAY(SELECT i.id FROM items i WHERE i.a BETWEEN k.a AND k.n ORDER BY 1) FROM keys k;
	SELECT k, (SELECT i.id FROM items i WHERE i.a = k.a) FROM keys k;
	SELECT k.n, CASE WHEN k.n > 10 THEN (SELECT note(i.id) FROM items i WHERE i.a = k.a) END FROM keys k;
	SELECT x.n, x.id, (SELECT j.t FROM items j WHERE j.id = x.id) FROM (SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a) AS id FROM keys k OFFSET 0) x;
	SELECT k.n, j.n, (SELECT i.id FROM items i WHERE i.a = k.a AND i.b < 10 + j.b) FROM keys k JOIN keys j ON j.a = k.a + 13;
	SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a), i.id FROM keys k JOIN items i ON i.a = k.a ORDER BY k.t LIMIT 40;
	SELECT x.n, i.b FROM (SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a) AS id FROM keys k OFFSET 0) x JOIN items i ON i.id = x.id;
	SELECT s.*, (SELECT i.b FROM items i WHERE i.id = s.a) FROM (SELECT k.n, k.a, (SELECT i.id FROM items i WHERE i.a = k.b) AS x FROM keys k ORDER BY k.t) s LIMIT 50;
	SELECT o.n, x.* FROM (VALUES (1, NULL), (2, 7), (3, 50), (4, 200)) o (n, m), LATERAL ((SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a) FROM keys k ORDER BY k.t) UNION ALL SELECT 1, 2 LIMIT o.m) x;
	SELECT n, (SELECT i.id FROM items i WHERE i.id = x.id) FROM (SELECT id, a AS n FROM items WHERE a > 10 ORDER BY a LIMIT 50) x;
	SELECT k.n, (SELECT string_agg(y.v::text, ',') FROM (SELECT (SELECT i.id FROM items i WHERE i.a = j.a) AS v FROM keys j WHERE j.n BETWEEN k.n AND k.n + 9) y) FROM keys k WHERE k.n < 60;
	SELECT k.n, (SELECT i.id FROM items i WHERE i.a = k.a) / (k.n - 77) FROM keys k;
	SELECT k.n, (SELECT i.id FROM items i WHERE i.b = k.b) FROM keys k;
	BEGIN;
	DECLARE c SCROLL CURSOR FOR SELECT k.n, (SELECT note(i.id) FROM items i WHERE i.a = k.a) FROM keys k;
	FETCH 20 FROM c; FETCH BACKWARD 5 FROM c; FETCH 7 FROM c;
	UPDATE keys SET b = (SELECT i.id FROM items i WHERE i.a = keys.a), t = t || 'x' WHERE n % 2 = 0 RETURNING n, b, (SELECT i.t FROM items i WHERE i.a = keys.a);
	FETCH 20 FROM c;
	ROLLBACK;
	PREPARE p AS SELECT (SELECT i.id FROM items i WHERE i.a = k.a AND i.id > $1) FROM keys k WHERE k.n > $1 - 3;
	EXECUTE p (3); EXECUTE p (30)});

# Outer rows of scans that begin with a rescan of their own, since their keys are computed.
same('computed keys of the outer rows', q{
	PREPARE p AS SELECT x.id, x.t, x.id, (SELECT i.t FROM items i WHERE i.id = x.b), x.h FROM items x WHERE x.a > $1 AND x.a < $1 + 300;
	EXECUTE p (3); EXECUTE p (500);
	PREPARE q AS SELECT x.id, x.t FROM items x WHERE x.a > $1 AND note((SELECT i.id FROM items i WHERE i.id = x.id)) > 100;
	EXECUTE q (700);
	SELECT o.m, x.* FROM (VALUES (1), (7), (50)) o (m), LATERAL (SELECT i.id, i.t, i.t, (SELECT j.id FROM items j WHERE j.id = i.id) FROM items i WHERE i.a > o.m AND i.a < o.m + 40) x},
	settings => 'SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off');
same('several searches of one lookup', q{
	SELECT k.n, i.id FROM keys k JOIN items i ON i.b = k.b AND i.a = ANY ('{1, 500, 900}');
	SELECT k.n, i.id FROM keys k JOIN items i ON i.a = ANY (ARRAY[k.a, k.b, k.n])});

# Subqueries in conditions, after others that have none and before others that may.
same('subqueries in conditions', q{
	SELECT k.n, k.t FROM keys k WHERE k.n % 3 <> 1 AND (SELECT note(i.id) FROM items i WHERE i.a = k.a) > 50;
	SELECT * FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) > note(k.n);
	SELECT k.n, k.ctid, k.tableoid::regclass FROM keys k WHERE (SELECT count(*) FROM items i WHERE i.a = k.a) > 0 AND k.ctid > '(0,3)' AND note(k.n) > 5;
	SELECT count(*) FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) % 2 = 0;
	SELECT k.n FROM keys k WHERE NOT ((SELECT i.id FROM items i WHERE i.a = k.a) % 2 = 0) AND (SELECT i.b FROM items i WHERE i.a = k.b) < 500;
	SELECT k.n FROM keys k WHERE CASE WHEN (SELECT i.id FROM items i WHERE i.a = k.a) < 300 THEN k.n > 20 ELSE note(k.n) > 30 END;
	SELECT k.n FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) > 100 LIMIT 40;
	SELECT k.n, (SELECT i.t FROM items i WHERE i.id = k.b) FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) > 100;
	SELECT k.n, j.n FROM keys k JOIN keys j ON j.a = k.a + 13 AND j.b < (SELECT note(i.id) FROM items i WHERE i.a = k.a) WHERE j.n + k.n > (SELECT i.b FROM items i WHERE i.a = j.a);
	SELECT k.n, j.n FROM keys k LEFT JOIN keys j ON j.a = k.a + 13 AND j.b < (SELECT i.id FROM items i WHERE i.a = k.a) WHERE k.n < 30;
	SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a AND i.b < (SELECT sum(j.b) FROM items j WHERE j.a = k.n);
	SELECT k.n FROM keys k WHERE EXISTS (SELECT FROM keys j WHERE j.n = k.n AND (SELECT i.id FROM items i WHERE i.a = j.a) > 100);
	SELECT k.n FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) / (k.n - 77) < 40;
	SELECT k.n FROM keys k WHERE (SELECT i.id FROM items i WHERE i.b = k.b) > 1;
	SELECT id FROM items x WHERE a > 10 AND b < (SELECT i.id FROM items i WHERE i.id = x.a) ORDER BY a LIMIT 50;
	SELECT o.m, x.* FROM (VALUES (1), (7), (50)) o (m), LATERAL (SELECT k.n FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) > o.m ORDER BY k.t LIMIT o.m) x;
	BEGIN;
	UPDATE keys SET b = b + 1 WHERE (SELECT i.id FROM items i WHERE i.a = keys.a) % 3 = 0 RETURNING n, b;
	DELETE FROM keys WHERE (SELECT note(i.id) FROM items i WHERE i.a = keys.a) % 5 = 0 RETURNING n;
	SELECT k.n FROM keys k WHERE (SELECT i.id FROM items i WHERE i.a = k.a) > 500 FOR UPDATE;
	ROLLBACK;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT k.n, j.n FROM keys k JOIN keys j ON j.a = k.a + 13 AND j.b < (SELECT i.id FROM items i WHERE i.a = k.a);
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT k.n FROM keys k WHERE k.n > 3 AND (SELECT i.id FROM items i WHERE i.a = k.a) > 500});

same('WHERE CURRENT OF', q{
	BEGIN;
	DECLARE c NO SCROLL CURSOR FOR SELECT n, (SELECT i.id FROM items i WHERE i.a = keys.a) FROM keys;
	FETCH 30 FROM c; DELETE FROM keys WHERE CURRENT OF c RETURNING n; FETCH 5 FROM c; UPDATE keys SET b = 7 WHERE CURRENT OF c RETURNING n;
	ROLLBACK}, none => 1);

# Joins that are executed again for each row of another, and from the start.
same('nested loops', q{
	SELECT k.n, j.n, i.id FROM keys k JOIN LATERAL (SELECT * FROM keys j WHERE j.n > k.n LIMIT 7) j ON true JOIN items i ON i.a = j.a AND i.b = k.b WHERE k.n <= 60});
# Each row is alone, and so is what is looked up for it.
same('recursion', q{
	WITH RECURSIVE r (n, id) AS (SELECT 1, 3 UNION ALL SELECT r.n + 1, i.id FROM r JOIN items i ON i.a = r.id WHERE r.n < 200 AND r.id < 1000)
	SELECT * FROM r}, none => 1);
same('the same tables on both sides', 'SELECT i.id, j.id FROM items i JOIN items j ON j.a = i.id WHERE i.b = 3');
same('array keys, backward', q{
	SELECT id FROM items WHERE a = ANY ('{7, 70, 700, 14, 21}') ORDER BY a DESC, b DESC;
	SELECT id FROM items WHERE a = ANY (ARRAY(SELECT a FROM keys)) AND b = ANY ('{1, 3, 5, 7}') ORDER BY a, b;
	SELECT id FROM items WHERE a = ANY (ARRAY(SELECT a FROM keys)) AND a = ANY ('{13, 26, 39, 52}'::bigint[]) ORDER BY a DESC;
	SELECT n, (SELECT array_agg(id) FROM items WHERE a = ANY (ARRAY[n, n + 200, n + 400])) FROM keys;
	SELECT id FROM items WHERE b = 3 AND a BETWEEN 10 AND 500 ORDER BY a DESC}, settings => 'SET enable_seqscan = off; SET enable_sort = off');

# Cursors: backward, with savepoints, and left open.
same('cursors', q{
	BEGIN;
	DECLARE c SCROLL CURSOR FOR SELECT id, a FROM items ORDER BY a, b;
	FETCH 200 FROM c; FETCH BACKWARD 50 FROM c; FETCH 100 FROM c; FETCH ABSOLUTE 3 FROM c; FETCH LAST FROM c; FETCH BACKWARD 20 FROM c;
	DECLARE d CURSOR FOR SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a;
	FETCH 20 FROM d; SAVEPOINT s; FETCH 20 FROM d; ROLLBACK TO s; FETCH 20 FROM d; SAVEPOINT t; FETCH 1 FROM d; RELEASE t; FETCH ALL FROM d;
	COMMIT;
	BEGIN;
	DECLARE d CURSOR WITH HOLD FOR SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a;
	FETCH 20 FROM d;
	COMMIT;
	FETCH ALL FROM d}, settings => 'SET enable_seqscan = on; SET enable_sort = off');

# Errors: those of outer rows come when the rows before them have been joined.
same('errors', q{
	SELECT note(k.n) FROM (SELECT n, a, 1 / (n - 77) AS x FROM keys OFFSET 0) k JOIN items i ON i.a = k.a WHERE k.x IS NOT NULL;
	DO $$ BEGIN
		PERFORM k.n, i.id FROM (SELECT n, 1000 / (n - 50) AS a FROM keys OFFSET 0) k JOIN items i ON i.a = k.a;
	EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught';
	END $$;
	SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a WHERE k.n < 30;
	SELECT k.n, i.id, 1 / (k.n - 40) FROM keys k JOIN items i ON i.a = k.a});

# Triggers that change the tables that are read.
same('triggers', q{
	BEGIN;
	CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		DELETE FROM keys WHERE n = NEW.id % 200;
		UPDATE keys SET a = a + 1 WHERE n = (NEW.id + 50) % 200;
		RETURN NEW;
	END $$;
	CREATE TRIGGER change BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION change();
	UPDATE items i SET b = i.b + 100, a = i.a + 1 FROM keys k WHERE i.a = k.a;
	SELECT sum(hashint4(id) # hashint4(a) # hashint4(b)), count(*) FROM items;
	SELECT * FROM keys ORDER BY n;
	ROLLBACK});

# Workers of a parallel plan.
same('parallel workers', 'SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a ORDER BY 1, 2',
	settings => 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET debug_parallel_query = on');

# Locks on rows, and predicate locks, are those of rows that are returned.
same('locks', q{
	BEGIN ISOLATION LEVEL SERIALIZABLE;
	SELECT count(*) FROM (SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a LIMIT 30) x;
	SELECT locktype, relation::regclass, page, tuple FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() ORDER BY 1, 2, 3, 4;
	COMMIT;
	BEGIN;
	SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a ORDER BY i.id LIMIT 5 FOR UPDATE OF i;
	SELECT id, a FROM items WHERE xmax::text::int > 0 ORDER BY id LIMIT 3 OFFSET 10;
	ROLLBACK});

# A row that another session has changed is looked at again.
foreach my $ahead (0, 64)
{
	my $holder = $node->background_psql('postgres');
	my $waiter = $node->background_psql('postgres');

	$holder->query_safe('BEGIN; UPDATE items SET b = b + 1000 WHERE a = 13; DELETE FROM items WHERE a = 26; UPDATE items SET a = -1 WHERE a = 39');
	$waiter->query_safe("SET aio.debug_lookups = $ahead; BEGIN");
	$waiter->query_until(qr/begins/, qq{\\echo begins
		UPDATE items i SET b = i.b + 1 FROM keys k WHERE i.a = k.a AND k.n <= 10 RETURNING k.n, i.id, i.b;
		});
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'transactionid'");
	$holder->query_safe('COMMIT');
	$waiter->query_safe('COMMIT');
	is($node->safe_psql('postgres', 'SELECT count(*) FILTER (WHERE b > 1000), count(*) FILTER (WHERE a = -1), count(*) FROM items'),
		'1|1|999', "rows that somebody else changes meanwhile, $ahead ahead");
	$holder->quit;
	$waiter->quit;
	$node->safe_psql('postgres', 'UPDATE items SET b = 0, a = id * 7 % 1000');
}

# A session that is idle is in nobody's way.
my $idle = $node->background_psql('postgres');
$idle->query_safe('SET aio.debug_lookups = 64; BEGIN; DECLARE c CURSOR FOR SELECT k.n, i.id FROM keys k JOIN items i ON i.a = k.a; FETCH 50 FROM c');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_aios WHERE operation LIKE 'read%'"), '0', 'an idle session reads nothing');
is($node->safe_psql('postgres', "SELECT count(*) <= 2 FROM pg_buffercache WHERE pinning_backends > 0 AND relfilenode IN (pg_relation_filenode('items'), pg_relation_filenode('items_a'))"),
	't', 'an idle session has no pages but those that the plan is at');
$idle->query_safe('FETCH ALL FROM c; COMMIT');
$idle->quit;

# Statements that are cancelled anywhere leave nothing.
foreach my $i (1 .. 30)
{
	$node->psql('postgres', "SET aio.debug_lookups = 64; SET statement_timeout = $i; SELECT count(*) FROM keys k JOIN items i ON i.a >= k.a; SELECT count(*) FROM keys k JOIN items i ON i.a = k.a");
}
is($node->safe_psql('postgres', 'SET aio.debug_lookups = 64; SELECT count(*) FROM keys k JOIN items i ON i.a = k.a'),
	$node->safe_psql('postgres', 'SELECT count(*) FROM keys k JOIN items i ON i.a = k.a'), 'statements after those that were cancelled');

$node->stop;
unlike(slurp_file($node->logfile), qr/leak|TRAP|still referenced|PANIC/, 'nothing has leaked');
done_testing();
