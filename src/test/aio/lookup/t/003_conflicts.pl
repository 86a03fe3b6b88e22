
# Copyright (c) 2026, the pgawait authors

# INSERT ... ON CONFLICT and MERGE: with what they search for looked up ahead of
# need, and index entries collected, rows, errors and the order of rows that are
# returned are those of a server that does neither; and pages are read ahead.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($first) = grep { !$methods{$_} } qw(io_uring libaio worker);
my $update = 'DO UPDATE SET n = excluded.n, v = excluded.v, w = target.w || excluded.n';

# What a statement has left behind, found through each index.
sub contents
{
	my ($table) = @_;
	return "SELECT count(*), sum(hashtext(t::text)) FROM $table t;" .
	  "SELECT sum(hashtext(t::text)) FROM keys k JOIN $table t USING (id); SELECT sum(hashtext(t::text)) FROM keys k JOIN $table t ON t.v = k.v;";
}

# Each is executed in a transaction that is rolled back; those in 'cold' look up
# what is not in memory.
my @cold = (
	[ 'do update', "INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) $update;" . contents('target') ],
	[ 'do nothing', "INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT DO NOTHING RETURNING n;" . contents('target') ],
	[ 'returning', "INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) $update WHERE target.n % 3 > 0 RETURNING n, id, xmax <> 0;" . contents('target') ],
	[ 'sequence', "INSERT INTO counted (id, n, v) SELECT id, n, v FROM keys ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING serial, id; SELECT last_value FROM counted_serial_seq;" . contents('counted') ],
	[ 'unique text', "INSERT INTO target SELECT id + 1000000, n, id || ' text', v, 'w' FROM keys ON CONFLICT (u) $update;" . contents('target') ],
	[ 'expression', "INSERT INTO by_expression SELECT id, n, 'KEY ' || id, v FROM keys ON CONFLICT (lower(u)) DO UPDATE SET n = excluded.n;" . contents('by_expression') ],
	[ 'predicate', "INSERT INTO by_predicate SELECT id, n, v FROM keys ON CONFLICT (id) WHERE v % 2 = 0 DO UPDATE SET n = excluded.n;" . contents('by_predicate') ],
	[ 'two columns', "INSERT INTO two SELECT id % 1000, n, id / 1000, v, id FROM keys ON CONFLICT (b, a) DO UPDATE SET n = excluded.n;" . contents('two') ],
	[ 'exclusion', "INSERT INTO excluded_ranges SELECT int8range(id * 10, id * 10 + 5), n, v, id FROM keys ON CONFLICT DO NOTHING RETURNING n;" . contents('excluded_ranges') ],
	[ 'partitions', "INSERT INTO parts SELECT id, n, v FROM keys ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING tableoid::regclass, id;" . contents('parts') ],
	[ 'values', "PREPARE p AS INSERT INTO target VALUES " . join(', ', map { "($_, $_, '$_ text', $_, 'w')" } map { 1 + $_ * 7919 % 40000 } 1 .. 1000) . " ON CONFLICT (id) $update; EXECUTE p;" . contents('target') ],
	[ 'merge', "MERGE INTO target t USING keys k ON t.id = k.id WHEN MATCHED THEN UPDATE SET n = k.n, v = k.v WHEN NOT MATCHED THEN INSERT VALUES (k.id, k.n, k.id || ' text', k.v, 'w') RETURNING merge_action(), t.id;" . contents('target') ],
	[ 'merge of new rows', "MERGE INTO merged t USING keys k ON false WHEN NOT MATCHED THEN INSERT VALUES (k.id + 100000, k.n, k.id * 10 + 5, k.v) RETURNING t.id;" . contents('merged') ],
	[ 'merge of some new rows', "MERGE INTO merged t USING keys k ON false WHEN NOT MATCHED AND k.n % 3 > 0 THEN INSERT (u, v, id) VALUES (abs(k.id) * 10 + 5, k.v, k.id + 100000);" . contents('merged') ],
	[ 'merge, exclusion', "MERGE INTO merged_ranges t USING keys k ON false WHEN NOT MATCHED THEN INSERT VALUES (int8range(k.id * 10 + 6, k.id * 10 + 8), k.n, k.v, k.id);" . contents('merged_ranges') ],
	[ 'merge, partitions', "MERGE INTO merged_parts t USING keys k ON false WHEN NOT MATCHED THEN INSERT VALUES (k.id, k.n, k.v) RETURNING t.tableoid::regclass, t.id;" . contents('merged_parts') ],
	[ 'not exists', "INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys k WHERE NOT EXISTS (SELECT FROM target t WHERE t.id = k.id);" . contents('target') ],
);
my @others = (
	[ 'same key twice', "INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys UNION ALL SELECT 5, 5, 'x', 5, 'w' UNION ALL SELECT 5, 6, 'y', 5, 'w' ON CONFLICT (id) $update;" . contents('target') ],
	[ 'same new key twice', "INSERT INTO target SELECT 50000 + n % 700, n, n || ' new', n, 'w' FROM keys ON CONFLICT (id) DO NOTHING RETURNING n;" . contents('target') ],
	[ 'another index', "INSERT INTO target SELECT id + 1000000, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) DO NOTHING;" . contents('target') ],
	[ 'error in a row', "INSERT INTO target SELECT id, 1 / (n - 600), id || ' text', v, 'w' FROM keys ON CONFLICT (id) $update;" . contents('target') ],
	[ 'error in an expression', "INSERT INTO failing SELECT n, n - 600, v FROM keys ON CONFLICT ((1000 / a)) DO NOTHING;" . contents('failing') ],
	[ 'errors of keys that are not inserted', "INSERT INTO failing_trigger SELECT n, n - 600, v FROM keys ON CONFLICT ((1000 / a)) DO NOTHING;" . contents('failing_trigger') ],
	[ 'a check that fails', "INSERT INTO checked SELECT id, n FROM keys ON CONFLICT (id) DO UPDATE SET n = -1;" ],
	[ 'trigger that looks', "INSERT INTO watched SELECT id, n, v FROM keys ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING id, n;" . contents('watched') ],
	[ 'trigger that changes keys', "INSERT INTO moved SELECT id, n, v FROM keys ON CONFLICT (id) DO NOTHING RETURNING id;" . contents('moved') ],
	[ 'generated key', "INSERT INTO generated (a, n, v) SELECT id, n, v FROM keys ON CONFLICT (id) DO UPDATE SET n = excluded.n;" . contents('generated') ],
	[ 'nulls', "INSERT INTO target SELECT nullif(id, 5), n, NULL, v, 'w' FROM keys ON CONFLICT (u) DO NOTHING" ],
	[ 'limit', "INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ORDER BY n LIMIT 300 ON CONFLICT (id) $update RETURNING n;" . contents('target') ],
	[ 'in a CTE', "WITH i AS (INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) $update RETURNING n, id) SELECT count(*), sum(n) FROM i;" . contents('target') ],
	[ 'subquery in a row', "INSERT INTO target SELECT id, (SELECT max(x.n) FROM keys x WHERE x.id = k.id), id || ' text', v, 'w' FROM keys k ON CONFLICT (id) $update;" . contents('target') ],
	[ 'view with a check', "INSERT INTO few_view SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) DO UPDATE SET n = excluded.n;" . contents('target') ],
	[ 'repeatable read', "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) $update RETURNING n;" . contents('target') ],
	[ 'serializable', "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; INSERT INTO target SELECT id, n, id || ' text', v, 'w' FROM keys ON CONFLICT (id) $update;" . contents('target') ],
	[ 'partitions and a sequence', "INSERT INTO counted_parts (id, n, v) SELECT id, n, v FROM keys ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING id, serial;" . contents('counted_parts') ],
	[ 'no partition', "INSERT INTO parts SELECT CASE n WHEN 600 THEN 1000000 ELSE id END, n, v FROM keys ON CONFLICT (id) DO NOTHING;" . contents('parts') ],
	[ 'merge that moves', "MERGE INTO parts t USING keys k ON t.id = k.id WHEN MATCHED AND k.n % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET id = 40001 + k.n, v = k.v WHEN NOT MATCHED THEN INSERT VALUES (k.id, k.n, k.v);" . contents('parts') ],
	[ 'merge, a condition that fails', "MERGE INTO merged t USING keys k ON t.id = k.id + 100000 WHEN NOT MATCHED AND 1000 / (k.n - 600) < 5 THEN INSERT VALUES (k.id + 100000, k.n, k.id * 10 + 5, k.v);" . contents('merged') ],
	[ 'merge, a value that fails', "MERGE INTO merged t USING keys k ON t.id = k.id + 100000 WHEN NOT MATCHED THEN INSERT VALUES (k.id + 100000, k.n, 1 / (k.n - 600), k.v);" . contents('merged') ],
	[ 'merge, a key that is there', "MERGE INTO merged t USING keys k ON t.id = k.id + 100000 WHEN NOT MATCHED THEN INSERT VALUES (k.id + 100000, k.n, CASE k.n WHEN 600 THEN 5000 * 10 ELSE k.id * 10 + 5 END, k.v);" . contents('merged') ],
	[ 'merge, several actions', "MERGE INTO merged t USING keys k ON t.id = k.id WHEN MATCHED AND k.n % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET u = t.u + 3, v = k.v WHEN NOT MATCHED AND k.n % 3 = 0 THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES (k.id + 100000, k.n, k.id * 10 + 5, k.v) WHEN NOT MATCHED BY SOURCE AND t.n % 100 = 0 THEN DELETE RETURNING merge_action(), t.id;" . contents('merged') ],
	[ 'merge, all kinds of rows', "MERGE INTO merged t USING keys k ON t.id = k.id WHEN MATCHED THEN UPDATE SET u = t.u + 3, v = k.v WHEN NOT MATCHED AND k.n % 3 > 0 THEN INSERT VALUES (k.id + 100000, k.n, k.id * 10 + 5, k.v) WHEN NOT MATCHED BY SOURCE AND t.n % 100 = 0 THEN DELETE RETURNING merge_action(), t.id;" . contents('merged') ],
	[ 'merge, sequence and subquery', "MERGE INTO counted t USING keys k ON t.id = k.id WHEN NOT MATCHED THEN INSERT (id, n, v) VALUES (k.id, (SELECT max(x.n) FROM keys x WHERE x.id = k.id), k.v) RETURNING serial, id; SELECT last_value FROM counted_serial_seq;" . contents('counted') ],
	[ 'merge, trigger that changes keys', "MERGE INTO moved t USING keys k ON t.id = k.id WHEN NOT MATCHED THEN INSERT VALUES (k.id * 2, k.n, k.v) RETURNING t.id;" . contents('moved') ],
	[ 'merge into a parent', "MERGE INTO merged_parent t USING keys k ON t.id = k.id WHEN MATCHED THEN UPDATE SET n = -k.n WHEN NOT MATCHED THEN INSERT VALUES (k.id, k.n, k.v) RETURNING t.tableoid::regclass, t.id;" . contents('merged_parent') ],
	[ 'merge into a view', "MERGE INTO few_view t USING keys k ON t.id = k.id WHEN NOT MATCHED AND k.n < 700 THEN INSERT VALUES (k.id + 100000, k.n, k.id || ' more', k.v, 'w');" . contents('target') ],
	[ 'merge, same row twice', "MERGE INTO target t USING (SELECT * FROM keys UNION ALL SELECT * FROM keys WHERE id < 500) k ON t.id = k.id WHEN MATCHED THEN UPDATE SET n = k.n, v = k.v" ],
);

my $reference = 'SET aio.lookup_ahead = 0; SET aio.index_batch_memory = 0;';
my @settings = ('SET aio.lookup_ahead = 64;', 'SET aio.lookup_ahead = 7; SET aio.batch_unique_keys = on;',
	'SET aio.lookup_ahead = 64; SET aio.index_batch_memory = 64;');

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	my $node = create_cold_node("conflicts_$method", $method);
	my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
	push @settings, 'SET aio.debug_lookups = 7; SET aio.debug_rows_before_batch = 0;' if $can_force && @settings == 3;
	$node->safe_psql('postgres', q{
		CREATE TABLE target (id bigint PRIMARY KEY, n int, u text UNIQUE, v int, w text);
		INSERT INTO target SELECT i, i, i || ' text', i, repeat('x', 200) FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE INDEX ON target (v);
		CREATE TABLE counted (serial bigserial PRIMARY KEY, id bigint UNIQUE, n int, v int, w text DEFAULT repeat('x', 200));
		INSERT INTO counted (id, n, v) SELECT i, i, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE INDEX ON counted (v);
		CREATE TABLE by_expression (id bigint, n int, u text, v int);
		INSERT INTO by_expression SELECT i, i, 'Key ' || i, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE UNIQUE INDEX ON by_expression (lower(u)) WITH (fillfactor = 30);
		CREATE INDEX ON by_expression (id);
		CREATE INDEX ON by_expression (v);
		CREATE TABLE by_predicate (id bigint, n int, v int);
		INSERT INTO by_predicate SELECT i, i, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE UNIQUE INDEX ON by_predicate (id) WITH (fillfactor = 20) WHERE v % 2 = 0;
		CREATE INDEX ON by_predicate (v);
		CREATE TABLE two (a int, n int, b int, v int, id int, pad text DEFAULT repeat('x', 200));
		INSERT INTO two SELECT i % 1000, i, i / 1000, i, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE UNIQUE INDEX ON two (a, b) WITH (fillfactor = 20);
		CREATE INDEX ON two (v);
		CREATE TABLE excluded_ranges (r int8range, n int, v int, id int, EXCLUDE USING gist (r WITH &&));
		INSERT INTO excluded_ranges SELECT int8range(i * 10, i * 10 + 5), i, i, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE INDEX ON excluded_ranges (v);
		CREATE TABLE parts (id bigint PRIMARY KEY, n int, v int) PARTITION BY RANGE (id);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (100000) PARTITION BY HASH (id);
		CREATE TABLE parts_21 PARTITION OF parts_2 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE parts_22 (v int, dropped int, id bigint NOT NULL, n int);
		ALTER TABLE parts_22 DROP dropped;
		ALTER TABLE parts_2 ATTACH PARTITION parts_22 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		INSERT INTO parts SELECT i, i, i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		CREATE INDEX ON parts (v);
		CREATE TABLE counted_parts (serial bigserial, id bigint PRIMARY KEY, n int, v int) PARTITION BY HASH (id);
		CREATE TABLE counted_parts_1 PARTITION OF counted_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE counted_parts_2 PARTITION OF counted_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE TABLE merged (id bigint PRIMARY KEY, n int, u bigint UNIQUE, v int, pad text DEFAULT repeat('x', 200));
		INSERT INTO merged SELECT i, i, i * 10, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE INDEX ON merged (v);
		CREATE TABLE merged_ranges (r int8range, n int, v int, id int, EXCLUDE USING gist (r WITH &&));
		INSERT INTO merged_ranges SELECT int8range(i * 10, i * 10 + 5), i, i, i FROM generate_series(1, 20000) i ORDER BY hashint8(i);
		CREATE TABLE merged_parts (id bigint, n int, v int, UNIQUE (id) DEFERRABLE) PARTITION BY RANGE (id);
		CREATE TABLE merged_parts_1 PARTITION OF merged_parts FOR VALUES FROM (0) TO (10000);
		CREATE TABLE merged_parts_2 (v int, dropped int, id bigint, n int);
		ALTER TABLE merged_parts_2 DROP dropped;
		ALTER TABLE merged_parts ATTACH PARTITION merged_parts_2 FOR VALUES FROM (10000) TO (100000);
		INSERT INTO merged_parts SELECT i, i, i FROM generate_series(1, 40000) i WHERE i % 33 <> 10 ORDER BY hashint8(i);
		CREATE TABLE merged_parent (id bigint PRIMARY KEY, n int, v int);
		CREATE TABLE merged_child (PRIMARY KEY (id)) INHERITS (merged_parent);
		INSERT INTO merged_parent SELECT i, i, i FROM generate_series(1, 10000) i ORDER BY hashint8(i);
		INSERT INTO merged_child SELECT i, i, i FROM generate_series(10001, 20000) i ORDER BY hashint8(i);
		CREATE TABLE failing (id bigint, a int, v int);
		CREATE UNIQUE INDEX ON failing ((1000 / a));
		CREATE TABLE failing_trigger (id bigint, a int, v int);
		CREATE UNIQUE INDEX ON failing_trigger ((1000 / a));
		CREATE FUNCTION mend() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := coalesce(nullif(NEW.a, 0), 1); RETURN NEW; END $$;
		CREATE TRIGGER mend BEFORE INSERT ON failing_trigger FOR EACH ROW EXECUTE FUNCTION mend();
		CREATE TABLE checked (id bigint PRIMARY KEY, n int CHECK (n > 0));
		INSERT INTO checked SELECT i, i FROM generate_series(1, 5000) i;
		CREATE TABLE watched (id bigint PRIMARY KEY, n int, v int);
		INSERT INTO watched SELECT i, i, i FROM generate_series(1, 20000, 2) i;
		CREATE INDEX ON watched (v);
		CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				NEW.n := (SELECT count(*) FROM watched WHERE v BETWEEN NEW.v - 200 AND NEW.v + 200);
				IF NEW.n % 50 = 0 THEN RAISE NOTICE 'row %', NEW.id; END IF;
				RETURN NEW;
			END $$;
		CREATE TRIGGER look BEFORE INSERT OR UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION look();
		CREATE TABLE moved (id bigint PRIMARY KEY, n int, v int);
		INSERT INTO moved SELECT i, i, i FROM generate_series(1, 20000, 2) i;
		CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := NEW.id + 1; RETURN NEW; END $$;
		CREATE TRIGGER move BEFORE INSERT ON moved FOR EACH ROW EXECUTE FUNCTION move();
		CREATE TABLE generated (a bigint, id bigint GENERATED ALWAYS AS (a * 2) STORED PRIMARY KEY, n int, v int);
		INSERT INTO generated (a, n, v) SELECT i, i, i FROM generate_series(1, 20000, 2) i;
		CREATE VIEW few_view AS SELECT * FROM target WHERE n < 800 WITH CHECK OPTION;
		CREATE TABLE keys AS SELECT row_number() OVER (ORDER BY hashint4(i + 7)) AS n, i AS id, i * 3 AS v FROM generate_series(10, 40000, 33) i;
		VACUUM (FREEZE, ANALYZE);
		CHECKPOINT});

	# Output of a script.
	my $run = sub {
		my ($script, $settings) = @_;
		return join "\n", run_cold($node, $script, before => qq{
			SELECT setval(oid::regclass, 1) FROM pg_class WHERE relkind = 'S';
			SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
			SET max_parallel_workers_per_gather = 0;
			$settings});
	};

	foreach my $case ($method eq $first ? @cold : @cold[0, 2, 3, 9])
	{
		my ($what, $script) = @$case;
		my ($wanted, $needed) = run_and_count($node, sub { $run->($script, $reference) });
		my $before = lookups_ahead($node, 'started');
		my ($result, $read) = run_and_count($node, sub { $run->($script, $settings[0]) });
		is($result, $wanted, "$method, $what: looked up ahead");
		if ($method ne 'sync')
		{
			$node->poll_query_until('postgres', qq{
				SELECT coalesce(sum(started), 0) >= $before + 80 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'})
			  or fail("$method, $what: something is looked up");
			is_needed("$method, $what: what is looked up is needed", $read, $needed, lookups_ahead($node, 'started') - $before);
		}
		is($run->($script, $_), $wanted, "$method, $what: $_") foreach $method eq $first ? @settings[ 1 .. $#settings ] : $settings[-1];
	}

	# what MERGE itself looks up: its join looks up nothing; with several tables
	# PostgreSQL's JSON is not well-formed
	foreach my $case (grep { $_->[1] =~ /ON false/ && $_->[0] !~ /partitions/ && $method =~ /^(?:$first|sync)$/ } @cold)
	{
		my ($what, $script) = @$case;
		my ($merge) = split /;/, $script;
		my %lookups;

		foreach my $ahead (0, 64)
		{
			my ($json) = $run->("EXPLAIN (ANALYZE, AIO, FORMAT json) $merge", "SET aio.lookup_ahead = $ahead;") =~ /^(\[\n.*?^\])$/ms;
			my ($lookups) = grep { $_->{Kind} eq 'lookup' } @{ decode_json($json)->[0]{Plan}{AIO} // [] };
			$lookups{$ahead} = $lookups ? $lookups->{Started} : 0;
		}
		is($lookups{0}, 0, "$method, $what: nothing is looked up ahead if that is switched off");
		cmp_ok($lookups{64}, $method eq 'sync' ? '==' : '>', $method eq 'sync' ? 0 : 100, "$method, $what: keys are looked up ahead");
	}
	next if $method ne $first;
	foreach my $case (@others)
	{
		my ($what, $script) = @$case;
		my $wanted = $run->($script, $reference);
		cmp_ok(length($wanted), '>', 20, "$what: something is seen");
		is($run->($script, $_), $wanted, "$method, $what: $_") foreach @settings;
	}
	$node->stop;
}

done_testing();
