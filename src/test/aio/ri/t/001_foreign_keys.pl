
# Copyright (c) 2026, the pgawait authors

# Foreign keys: with checks that need no query, and with keys that are looked
# up ahead of need, rows, errors and row locks are those of a server that has
# neither; and pages are read ahead where somebody would wait for them.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($first) = grep { !$methods{$_} } qw(io_uring libaio worker);

# Rows of parents that somebody has locked in this transaction.
sub locked
{
	my ($table, $key) = (@_, 'id');
	return "SELECT count(*), sum(hashint8($key)) FROM $table WHERE xmax::text::bigint >= pg_current_xact_id()::text::bigint;";
}

# Each is executed in a transaction that is rolled back.  Those in 'cold' look
# up what is not in memory.
my @cold = (
	[ 'insert', 'INSERT INTO child SELECT n, a FROM keys;' . locked('parent') ],
	[ 'equal keys', 'INSERT INTO child SELECT k.n, p.a FROM keys k JOIN keys p ON p.n = 1 + k.n / 5;' . locked('parent') ],
	[ 'two columns', 'INSERT INTO child2 SELECT n, a, a % 7 FROM keys;' . locked('parent2', 'a') ],
	[ 'smaller type', 'INSERT INTO child_small SELECT n, a FROM keys;' . locked('parent') ],
	[ 'text', "INSERT INTO child_text SELECT n, 'key ' || a FROM keys;" . locked('parent_text') ],
	[ 'partitioned parent', 'INSERT INTO child_of_parts SELECT n, a FROM keys;' . locked('parts') ],
	[ 'partitioned child', 'INSERT INTO child_parts SELECT n, a FROM keys;' . locked('parent') ],
	[ 'two foreign keys', 'INSERT INTO child_both SELECT n, a, a, a % 7 FROM keys;' . locked('parent') . locked('parent2', 'a') ],
	[ 'deferred', 'INSERT INTO child_deferred SELECT n, a FROM keys; SELECT 1; SET CONSTRAINTS ALL IMMEDIATE;' . locked('parent') ],
	[ 'update', 'INSERT INTO child_deferred SELECT n, NULL FROM keys; UPDATE child_deferred c SET p = a FROM keys k WHERE k.n = c.n; SET CONSTRAINTS ALL IMMEDIATE;' . locked('parent') ],
	[ 'violation', 'INSERT INTO child SELECT n, CASE n WHEN 700 THEN -n ELSE a END FROM keys;' . locked('parent') ],
	[ 'delete', 'DELETE FROM parent p USING keys k WHERE p.id = k.a; SELECT count(*) FROM parent' ],
	[ 'delete, referenced', 'INSERT INTO refers SELECT 1, a FROM keys WHERE n = 600; DELETE FROM parent p USING keys k WHERE p.id = k.a' ],
	[ 'update of parents', 'UPDATE parent p SET id = id + 1000000 FROM keys k WHERE p.id = k.a; SELECT sum(id) FROM parent' ],
	[ 'cascade', 'DELETE FROM parent2 p USING keys k WHERE p.a = k.a; SELECT count(*), sum(n) FROM cascaded; SELECT count(*) FROM nulled WHERE a IS NULL' ],
	[ 'cascaded update', 'UPDATE parent2 p SET a = p.a + 1000000 FROM keys k WHERE p.a = k.a; SELECT count(*), sum(a) FROM cascaded' ],
	[ 'validation of each row', 'SET LOCAL ROLE ri_child; ALTER TABLE child_loose ADD FOREIGN KEY (p) REFERENCES parent; RESET ROLE; INSERT INTO child_loose VALUES (0, -1);' . locked('parent') ],
	[ 'validation that fails', 'UPDATE child_loose SET p = -p WHERE n = 700; SET LOCAL ROLE ri_child; ALTER TABLE child_loose ADD FOREIGN KEY (p) REFERENCES parent; RESET ROLE;' . locked('parent') ],
	[ 'delete, partitioned child', 'DELETE FROM parent3 p USING keys k WHERE p.id = k.a; SELECT count(*) FROM parent3' ],
);

my @others = (
	[ 'null', 'INSERT INTO child VALUES (1, NULL); INSERT INTO child2 VALUES (1, NULL, 1), (2, 1, NULL); INSERT INTO child_full VALUES (1, NULL, NULL); INSERT INTO child_full VALUES (1, 1, NULL)' ],
	[ 'self', 'INSERT INTO tree SELECT i, i / 2 FROM generate_series(1, 100) i; INSERT INTO tree VALUES (0, 1); INSERT INTO tree VALUES (200, 201); DELETE FROM tree WHERE id > 50; DELETE FROM tree WHERE id = 3; UPDATE tree SET id = id + 1000, up = up + 1000;' . locked('tree') ],
	[ 'same key again', 'INSERT INTO few SELECT 1 FROM generate_series(1, 10); DELETE FROM few_parent WHERE id = 1; DELETE FROM few; DELETE FROM few_parent WHERE id = 1; INSERT INTO few VALUES (1)' ],
	[ 'moved key', 'UPDATE few_parent SET id = 4 - id; INSERT INTO few VALUES (1), (2), (3), (4); UPDATE few_parent SET id = id + 1; UPDATE few_parent SET id = 7 WHERE id = 1' ],
	[ 'equality that depends on a setting', q{SET LOCAL TimeZone = 'UTC'; INSERT INTO zoned SELECT i, '2020-01-01' FROM generate_series(1, 200) i} ],
	[ 'owner of the database', q{REVOKE ALL ON SCHEMA public FROM PUBLIC; ALTER DATABASE postgres OWNER TO ri_database; INSERT INTO owned SELECT generate_series(1, 50);
		ALTER DATABASE postgres OWNER TO ri_child; INSERT INTO owned SELECT generate_series(1, 50)} ],
	[ 'row that goes meanwhile', 'INSERT INTO few_watched SELECT 1, i FROM generate_series(1, 200) i' ],
	[ 'DDL meanwhile', 'INSERT INTO few_altering VALUES (1), (2), (1); INSERT INTO few_altering VALUES (5)' ],
	[ 'error that is caught', 'INSERT INTO few_catching VALUES (1), (2), (3), (1)' ],
	[ 'privileges', 'ALTER TABLE few_parent OWNER TO ri_owner; REVOKE SELECT ON few_parent FROM ri_owner; INSERT INTO few VALUES (1); GRANT SELECT ON few_parent TO ri_owner; INSERT INTO few VALUES (1); REVOKE UPDATE ON few_parent FROM ri_owner; INSERT INTO few VALUES (2); DELETE FROM few_parent WHERE id = 3' ],
	[ 'column privileges', 'ALTER TABLE few_parent OWNER TO ri_owner; REVOKE ALL ON few_parent FROM ri_owner; GRANT SELECT (id), UPDATE (id) ON few_parent TO ri_owner; INSERT INTO few VALUES (1), (5)' ],
	[ 'schema', 'CREATE SCHEMA ri_schema; ALTER TABLE few_parent SET SCHEMA ri_schema; ALTER TABLE ri_schema.few_parent OWNER TO ri_owner; INSERT INTO few VALUES (1); GRANT USAGE ON SCHEMA ri_schema TO ri_owner; INSERT INTO few VALUES (1); REVOKE USAGE ON SCHEMA ri_schema FROM ri_owner; INSERT INTO few VALUES (1)' ],
	[ 'row-level security', 'ALTER TABLE few_parent ENABLE ROW LEVEL SECURITY; ALTER TABLE few_parent FORCE ROW LEVEL SECURITY; INSERT INTO few VALUES (1), (9)' ],
	[ 'operators of users', 'INSERT INTO mine SELECT ROW(i)::ri_mine FROM generate_series(1, 3) i; INSERT INTO mine VALUES (ROW(9)::ri_mine); DELETE FROM mine_parent' ],
	[ 'collation', "INSERT INTO loose VALUES ('ABC'), ('abc'); INSERT INTO loose VALUES ('abd'); DELETE FROM loose_parent" ],
	[ 'validation', 'INSERT INTO few_loose VALUES (1), (2); ALTER TABLE few_loose ADD FOREIGN KEY (p) REFERENCES few_parent NOT VALID; ALTER TABLE few_loose VALIDATE CONSTRAINT few_loose_p_fkey; INSERT INTO few_loose VALUES (8)' ],
	[ 'dropped index', 'ALTER TABLE few DROP CONSTRAINT few_p_fkey; ALTER TABLE few_parent DROP CONSTRAINT few_parent_pkey CASCADE; ALTER TABLE few_parent ADD UNIQUE (id); ALTER TABLE few ADD FOREIGN KEY (p) REFERENCES few_parent (id) ON DELETE RESTRICT; INSERT INTO few VALUES (1); DELETE FROM few_parent WHERE id = 2; DELETE FROM few_parent WHERE id = 1; INSERT INTO few VALUES (2)' ],
	[ 'snapshot', 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; INSERT INTO few VALUES (1), (2); DELETE FROM few_parent WHERE id = 3; DELETE FROM few_parent WHERE id = 1' ],
	[ 'serializable', 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; INSERT INTO few VALUES (1), (2); DELETE FROM few_parent WHERE id = 3; DELETE FROM few_parent WHERE id = 1' ],
	[ 'older portal', q{DO $$
		DECLARE c refcursor; r record;
		BEGIN
			OPEN c FOR INSERT INTO few VALUES (1), (2), (99) RETURNING p;
			BEGIN
				FETCH c INTO r;
			EXCEPTION WHEN foreign_key_violation THEN RAISE NOTICE '%', SQLERRM;
			END;
			TRUNCATE few_loose;
			INSERT INTO few VALUES (1);
		END $$; INSERT INTO few VALUES (2), (99)} ],
	[ 'read-only', 'INSERT INTO few_deferred VALUES (1); SET TRANSACTION READ ONLY; SET CONSTRAINTS ALL IMMEDIATE' ],
	[ 'composite type', 'INSERT INTO wrapped SELECT ROW(ROW(i))::ri_wrapper FROM generate_series(1, 3) i; INSERT INTO wrapped VALUES (ROW(ROW(9))::ri_wrapper); DELETE FROM wrapped_parent' ],
	[ 'privileges of the referenced table', 'ALTER TABLE few_parent OWNER TO ri_owner; REVOKE ALL ON few_parent FROM ri_owner; DELETE FROM few_parent WHERE id = 3' ],
	[ 'prefix', 'DELETE FROM prefixed_parent WHERE b = 2; INSERT INTO prefixed VALUES (1, 1); DELETE FROM prefixed_parent WHERE b = 1; DELETE FROM prefixed; DELETE FROM prefixed_parent' ],
	# 1 and 2^32 have the same hash value
	[ 'hash index', 'INSERT INTO hashed VALUES (1, 1); INSERT INTO hashed VALUES (2, 1::bigint << 32)' ],
	[ 'hash index, no other', q{UPDATE hashed_parent SET pad = 'y'; ALTER TABLE hashed DROP CONSTRAINT hashed_p_fkey; ALTER TABLE hashed_parent DROP CONSTRAINT hashed_parent_pkey, ADD PRIMARY KEY (id); ALTER TABLE hashed ADD FOREIGN KEY (p) REFERENCES hashed_parent; INSERT INTO hashed VALUES (1, 1); INSERT INTO hashed VALUES (2, 1::bigint << 32)} ],
	[ 'hash index, row that is locked', q{INSERT INTO hashed_parent VALUES (1::bigint << 32); UPDATE hashed_parent SET pad = 'y'; ALTER TABLE hashed DROP CONSTRAINT hashed_p_fkey; ALTER TABLE hashed_parent DROP CONSTRAINT hashed_parent_pkey, ADD PRIMARY KEY (id); ALTER TABLE hashed ADD FOREIGN KEY (p) REFERENCES hashed_parent; INSERT INTO hashed VALUES (1, 1);} . locked('hashed_parent') . 'INSERT INTO hashed VALUES (2, 1::bigint << 32);' . locked('hashed_parent') ],
	[ 'hash index of the referencing table', 'INSERT INTO hashed VALUES (1, 1); INSERT INTO hashed_parent VALUES (1::bigint << 32); DELETE FROM hashed_parent WHERE id > 1; DELETE FROM hashed_parent' ],
	[ 'moved index', 'INSERT INTO reindexed VALUES (1, 1); INSERT INTO reindexed VALUES (2, 1::bigint << 32)' ],
	[ 'schema of the operator', 'ALTER TABLE schemed_parent OWNER TO ri_owner; ALTER TABLE schemed OWNER TO ri_owner; SAVEPOINT s; INSERT INTO schemed VALUES (1); ROLLBACK TO s; GRANT USAGE ON SCHEMA ri_operators TO ri_owner; INSERT INTO schemed VALUES (1); DELETE FROM schemed_parent WHERE id = 2; REVOKE USAGE ON SCHEMA ri_operators FROM ri_owner; SAVEPOINT s; INSERT INTO schemed VALUES (1); ROLLBACK TO s; DELETE FROM schemed_parent WHERE id = 3' ],
	[ 'schema of the operator type', 'ALTER TABLE typed_parent OWNER TO ri_owner; GRANT USAGE ON SCHEMA ri_operators TO ri_owner; INSERT INTO typed VALUES (1); REVOKE USAGE ON SCHEMA pg_catalog FROM PUBLIC; INSERT INTO typed VALUES (1)' ],
	[ 'temporary', 'CREATE TEMP TABLE tp (id int PRIMARY KEY); CREATE TEMP TABLE tc (p int REFERENCES tp); INSERT INTO tp VALUES (1); INSERT INTO tc VALUES (1); INSERT INTO tc VALUES (2); DELETE FROM tp; TRUNCATE tc; DELETE FROM tp' ],
);

my @settings = (
	'SET aio.direct_foreign_key_checks = on; SET aio.lookup_ahead = 0;',
	'SET aio.direct_foreign_key_checks = off; SET aio.lookup_ahead = 64;',
	'SET aio.direct_foreign_key_checks = on; SET aio.lookup_ahead = 7;',
	'SET aio.direct_foreign_key_checks = on; SET aio.lookup_ahead = 64;',
);
my $reference = 'SET aio.direct_foreign_key_checks = off; SET aio.lookup_ahead = 0;';

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("ri_$method", $method);
	$node->safe_psql('postgres', q{
		CREATE ROLE ri_owner;
		GRANT USAGE ON SCHEMA public TO ri_owner;

		CREATE TABLE parent (id bigint, pad text);
		INSERT INTO parent SELECT i, repeat('x', 200) FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE parent ADD PRIMARY KEY (id) WITH (fillfactor = 30);
		CREATE TABLE child (n int, p bigint REFERENCES parent);
		CREATE TABLE child_small (n int, p int REFERENCES parent);
		CREATE TABLE child_deferred (n int, p bigint REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
		CREATE TABLE child_parts (n int, p bigint REFERENCES parent) PARTITION BY HASH (n);
		SELECT format('CREATE TABLE child_parts_%s PARTITION OF child_parts FOR VALUES WITH (MODULUS 3, REMAINDER %s)', i, i) FROM generate_series(0, 2) i \gexec
		CREATE TABLE refers (n int, p bigint REFERENCES parent ON DELETE RESTRICT);
		INSERT INTO refers SELECT i, i FROM generate_series(1, 15000) i ORDER BY hashint8(i);
		CREATE INDEX ON refers (p) WITH (fillfactor = 20);

		CREATE TABLE parent2 (a int, b int, pad text);
		INSERT INTO parent2 SELECT i, i % 7, repeat('x', 200) FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE parent2 ADD PRIMARY KEY (b, a) WITH (fillfactor = 30);
		CREATE TABLE child2 (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES parent2 (a, b));
		CREATE TABLE child_full (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES parent2 (a, b) MATCH FULL);
		CREATE TABLE child_both (n int, p bigint REFERENCES parent, a int, b int, FOREIGN KEY (a, b) REFERENCES parent2 (a, b));
		CREATE TABLE cascaded (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES parent2 (a, b) ON DELETE CASCADE ON UPDATE CASCADE);
		CREATE TABLE nulled (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES parent2 (a, b) ON DELETE SET NULL ON UPDATE SET NULL);
		INSERT INTO cascaded SELECT i, i, i % 7 FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		INSERT INTO nulled SELECT i, i, i % 7 FROM generate_series(1, 30000, 3) i ORDER BY hashint8(i);
		CREATE INDEX ON cascaded (a, b) WITH (fillfactor = 20);
		CREATE INDEX ON nulled (a) WITH (fillfactor = 20);

		CREATE TABLE parent_text (id text, pad text);
		INSERT INTO parent_text SELECT 'key ' || i, repeat('x', 200) FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE parent_text ADD PRIMARY KEY (id) WITH (fillfactor = 30);
		CREATE TABLE child_text (n int, p text REFERENCES parent_text);

		CREATE TABLE parts (id bigint PRIMARY KEY, pad text) PARTITION BY RANGE (id);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (100000) PARTITION BY HASH (id);
		CREATE TABLE parts_21 PARTITION OF parts_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE parts_22 (pad text, id bigint NOT NULL);
		ALTER TABLE parts_2 ATTACH PARTITION parts_22 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		INSERT INTO parts SELECT i, repeat('x', 200) FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		CREATE TABLE child_of_parts (n int, p bigint REFERENCES parts);

		CREATE TABLE parent3 (id bigint PRIMARY KEY, pad text);
		INSERT INTO parent3 SELECT i, repeat('x', 200) FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		CREATE TABLE refers_parts (n int, p bigint REFERENCES parent3) PARTITION BY RANGE (n);
		CREATE TABLE refers_parts_1 PARTITION OF refers_parts FOR VALUES FROM (0) TO (10000);
		CREATE TABLE refers_parts_2 PARTITION OF refers_parts FOR VALUES FROM (10000) TO (100000);
		INSERT INTO refers_parts SELECT i, i FROM generate_series(1, 15000) i ORDER BY hashint8(i);
		CREATE INDEX ON refers_parts (p) WITH (fillfactor = 20);

		CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree DEFERRABLE);
		INSERT INTO tree VALUES (0, 0);
		CREATE TABLE few_parent (id int PRIMARY KEY);
		INSERT INTO few_parent VALUES (1), (2), (3);
		CREATE TABLE few (p int REFERENCES few_parent);
		CREATE INDEX ON few (p);
		CREATE TABLE few_loose (p int);
		CREATE TABLE few_watched (p int REFERENCES few_parent, n int);
		CREATE FUNCTION forget_parent() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				IF NEW.n = 100 THEN
					SET session_replication_role = replica;
					DELETE FROM few_parent WHERE id = NEW.p;
					SET session_replication_role = origin;
				END IF;
				RETURN NULL;
			END $$;
		CREATE FUNCTION alter_parent() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				EXECUTE 'ALTER TABLE few_parent ALTER id SET STATISTICS ' || 100 + NEW.p;
				EXECUTE 'ALTER TABLE few_parent ADD c' || (SELECT count(*) FROM pg_attribute WHERE attrelid = 'few_parent'::regclass) || ' int';
				RETURN NULL;
			END $$;
		CREATE FUNCTION catch() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				BEGIN
					INSERT INTO few VALUES (NEW.p), (NEW.p), (NEW.p + 1);
				EXCEPTION WHEN foreign_key_violation THEN
					RAISE NOTICE '%', SQLERRM;
				END;
				RETURN NULL;
			END $$;
		CREATE TRIGGER zz AFTER INSERT ON few_watched FOR EACH ROW EXECUTE FUNCTION forget_parent();
		CREATE TABLE few_altering (p int REFERENCES few_parent);
		CREATE TRIGGER zz AFTER INSERT ON few_altering FOR EACH ROW EXECUTE FUNCTION alter_parent();
		CREATE TABLE few_catching (p int REFERENCES few_parent);
		CREATE TRIGGER zz AFTER INSERT ON few_catching FOR EACH ROW EXECUTE FUNCTION catch();

		CREATE TYPE ri_mine AS (i int);
		CREATE FUNCTION mine_eq(ri_mine, ri_mine) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN ($1).i = ($2).i; END $$;
		CREATE FUNCTION mine_lt(ri_mine, ri_mine) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN ($1).i < ($2).i; END $$;
		CREATE FUNCTION mine_gt(ri_mine, ri_mine) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN ($1).i > ($2).i; END $$;
		CREATE FUNCTION mine_cmp(ri_mine, ri_mine) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN ($1).i - ($2).i; END $$;
		CREATE OPERATOR === (LEFTARG = ri_mine, RIGHTARG = ri_mine, PROCEDURE = mine_eq, COMMUTATOR = ===, RESTRICT = eqsel);
		CREATE OPERATOR <<< (LEFTARG = ri_mine, RIGHTARG = ri_mine, PROCEDURE = mine_lt, COMMUTATOR = >>>);
		CREATE OPERATOR >>> (LEFTARG = ri_mine, RIGHTARG = ri_mine, PROCEDURE = mine_gt, COMMUTATOR = <<<);
		CREATE OPERATOR CLASS mine_ops DEFAULT FOR TYPE ri_mine USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, OPERATOR 5 >>>, FUNCTION 1 mine_cmp(ri_mine, ri_mine);
		CREATE TABLE mine_parent (id ri_mine PRIMARY KEY);
		INSERT INTO mine_parent SELECT ROW(i)::ri_mine FROM generate_series(1, 3) i;
		CREATE TABLE mine (p ri_mine REFERENCES mine_parent);
		CREATE TYPE ri_wrapper AS (m ri_mine);
		CREATE TABLE wrapped_parent (id ri_wrapper PRIMARY KEY);
		INSERT INTO wrapped_parent SELECT ROW(ROW(i))::ri_wrapper FROM generate_series(1, 3) i;
		CREATE TABLE wrapped (p ri_wrapper REFERENCES wrapped_parent);
		CREATE TABLE few_deferred (p int REFERENCES few_parent DEFERRABLE INITIALLY DEFERRED);
		CREATE TABLE prefixed_parent (a int, b int, PRIMARY KEY (a, b));
		INSERT INTO prefixed_parent SELECT 1, i FROM generate_series(1, 5) i;
		CREATE TABLE prefixed (a int, b int, FOREIGN KEY (a, b) REFERENCES prefixed_parent);
		CREATE INDEX ON prefixed (a);

		CREATE COLLATION ri_loose (provider = libc, locale = 'C');
		CREATE TABLE loose_parent (id text COLLATE ri_loose PRIMARY KEY);
		INSERT INTO loose_parent VALUES ('ABC'), ('abc');
		CREATE TABLE loose (p text COLLATE "C" REFERENCES loose_parent);

		CREATE TABLE hashed_parent (id bigint NOT NULL, pad text);
		CREATE INDEX ON hashed_parent USING hash (id);
		INSERT INTO hashed_parent VALUES (1);
		ALTER TABLE hashed_parent ADD PRIMARY KEY (id);
		CREATE TABLE hashed (n int, p bigint REFERENCES hashed_parent);
		CREATE INDEX ON hashed USING hash (p);
		CREATE TABLE reindexed_parent (id bigint PRIMARY KEY);
		CREATE INDEX ON reindexed_parent USING hash (id);
		INSERT INTO reindexed_parent VALUES (1);
		CREATE TABLE reindexed (n int, p bigint REFERENCES reindexed_parent);

		-- an operator that not everybody may name
		CREATE SCHEMA ri_operators;
		CREATE OPERATOR ri_operators.=== (LEFTARG = int, RIGHTARG = int, PROCEDURE = int4eq, COMMUTATOR = OPERATOR(ri_operators.===), RESTRICT = eqsel);
		CREATE OPERATOR CLASS ri_operators.int_ops FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 3 ri_operators.===, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
		CREATE TABLE schemed_parent (id int);
		CREATE UNIQUE INDEX ON schemed_parent (id ri_operators.int_ops);
		INSERT INTO schemed_parent VALUES (1), (2), (3);
		CREATE TABLE schemed (p int REFERENCES schemed_parent (id));
		CREATE INDEX ON schemed (p ri_operators.int_ops);
		CREATE TABLE typed_parent (id varchar PRIMARY KEY);
		INSERT INTO typed_parent VALUES (1);
		CREATE TABLE typed (p varchar REFERENCES typed_parent);

		CREATE TABLE zoned_parent (t timestamptz PRIMARY KEY);
		INSERT INTO zoned_parent VALUES ('2020-01-01 00:00+00');
		CREATE TABLE zoned (id int, d date REFERENCES zoned_parent);
		CREATE FUNCTION move_zone() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN IF NEW.id = 100 THEN PERFORM set_config('TimeZone', 'Asia/Tokyo', true); END IF; RETURN NULL; END$$;
		CREATE TRIGGER a_trigger AFTER INSERT ON zoned FOR EACH ROW EXECUTE FUNCTION move_zone();
		CREATE ROLE ri_database;
		CREATE TABLE owned_parent AS SELECT generate_series(1, 100) AS k;
		ALTER TABLE owned_parent ADD PRIMARY KEY (k), OWNER TO ri_database;
		CREATE TABLE owned (k int REFERENCES owned_parent);
		ALTER TABLE owned OWNER TO ri_database;

		CREATE TABLE keys AS SELECT row_number() OVER (ORDER BY hashint4(i + 7)) AS n, i AS a FROM generate_series(15001, 30000, 15) i;
		-- who may not read the parent cannot validate by a query
		CREATE ROLE ri_child;
		GRANT CREATE, USAGE ON SCHEMA public TO ri_child;
		GRANT REFERENCES ON parent TO ri_child;
		CREATE TABLE child_loose (n int, p bigint);
		ALTER TABLE child_loose OWNER TO ri_child;
		INSERT INTO child_loose SELECT n, a FROM keys;
		REINDEX INDEX CONCURRENTLY reindexed_parent_pkey;
		VACUUM (FREEZE, ANALYZE);
		CHECKPOINT});

	# Output of a script.
	my $run = sub {
		my ($script, $settings) = @_;
		return join "\n", run_cold($node, $script, before => qq{
			SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
			SET plan_cache_mode = force_generic_plan;
			$settings});
	};

	foreach my $case ($method eq $first ? @cold : @cold[0 .. 2, 11])
	{
		my ($what, $script) = @$case;
		my ($wanted, $needed) = run_and_count($node, sub { $run->($script, $reference) });
		my $before = lookups_ahead($node, 'started');
		is($run->($script, $settings[0]), $wanted, "$method, $what: without queries");
		is(lookups_ahead($node, 'started'), $before, "$method, $what: nothing is looked up ahead if that is switched off");
		my ($result, $read) = run_and_count($node, sub { $run->($script, $settings[1]) });
		is($result, $wanted, "$method, $what: looked up ahead");
		$node->poll_query_until('postgres', qq{
			SELECT coalesce(sum(started), 0) >= $before + 100 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'})
		  or fail("$method, $what: something is looked up");
		is_needed("$method, $what: what is looked up is needed", $read, $needed, lookups_ahead($node, 'started') - $before);
		is($run->($script, $_), $wanted, "$method, $what: $_") foreach @settings[ 2, 3 ];
	}
	next if $method ne $first;
	foreach my $case (@others)
	{
		my ($what, $script) = @$case;
		my $wanted = $run->($script, $reference);
		is($run->($script, $_), $wanted, "$method, $what: $_") foreach @settings[ 0, 3 ];
	}
	$node->stop;
}

done_testing();
