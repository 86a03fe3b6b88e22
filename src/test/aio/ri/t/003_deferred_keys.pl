
# Copyright (c) 2026, the pgawait authors

# Unique keys and exclusion constraints that are checked later: when a row is
# inserted, and when it is checked, what is read is looked up ahead of need.
# Rows, errors and their order are those of a server that looks up nothing.

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

# What a script has left behind, found through the index of the constraint.
sub contents
{
	my ($table, $column) = (@_, 'id');
	return "SELECT count(*), sum(hashtext(t::text)) FROM $table t; SELECT count(*), sum(hashtext(t::text)) FROM keys k JOIN $table t ON t.$column = k.a;";
}

# Rows that are inserted, whose keys are searched at once.
my @inserts = (
	[ 'insert', 'INSERT INTO keyed SELECT a, n FROM keys', contents('keyed') ],
	[ 'insert into partitions', 'INSERT INTO parts SELECT a, n FROM keys', 'SET CONSTRAINTS ALL IMMEDIATE' ],
	[ 'sequence', 'INSERT INTO counted (id, n) SELECT a, n FROM keys', 'SELECT last_value FROM counted_serial_seq; SELECT sum(hashtext(t::text)) FROM counted t' ],
	[ 'exclusion', 'INSERT INTO ranges SELECT int8range(a * 10 + CASE n WHEN 700 THEN 4 ELSE 6 END, a * 10 + 9), a + 100000 FROM keys ORDER BY n', contents('ranges') ],
	[ 'exclusion at once', 'INSERT INTO ranges_at_once SELECT int8range(a * 10 + CASE n WHEN 700 THEN 4 ELSE 6 END, a * 10 + 9), a + 100000 FROM keys ORDER BY n', contents('ranges_at_once') ],
);

# Rows that are changed, and checked when nothing is in memory.
my $swap = 'SET id = id + CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END';
my $bounds = 'FROM (SELECT a + 1 AS a, a AS b FROM keys UNION ALL SELECT a, a + 1 FROM keys) k WHERE t.id = k.a';
my @checks = (
	[ 'swap', "UPDATE keyed t $swap FROM keys k WHERE t.id IN (k.a, k.a + 1)", contents('keyed') ],
	[ 'insert and delete', "INSERT INTO keyed SELECT a, n, 'new' FROM keys; DELETE FROM keyed t USING keys k WHERE t.id = k.a AND t.pad <> 'new'", contents('keyed') ],
	[ 'violation', 'INSERT INTO keyed SELECT a, n, \'new\' FROM keys ORDER BY n; DELETE FROM keyed t USING keys k WHERE t.id = k.a AND k.n NOT IN (950, 900) AND t.pad <> \'new\'', 'SELECT 1' ],
	[ 'violation after others', "UPDATE keyed t $swap FROM keys k WHERE t.id IN (k.a, k.a + 1); UPDATE keyed SET id = 3 WHERE id = 29000; UPDATE keyed SET id = 4 WHERE id = 29001", 'SELECT 1' ],
	[ 'violation at commit', "UPDATE keyed t $swap FROM keys k WHERE t.id IN (k.a, k.a + 1); UPDATE keyed SET id = 3 WHERE id = 29000", 'SELECT 1', 'COMMIT; BEGIN' ],
	[ 'text, and another column', "UPDATE by_text t SET u = 'key ' || (id + CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END) FROM keys k WHERE t.id IN (k.a, k.a + 1)", contents('by_text') ],
	[ 'two columns', 'UPDATE two t SET b = CASE WHEN b % 2 = 0 THEN b + 1 ELSE b - 1 END FROM keys k WHERE t.b IN (k.a, k.a + 1)', contents('two', 'b') ],
	[ 'exclusion', "UPDATE ranges t SET r = int8range(b * 10, b * 10 + 5), id = b $bounds", contents('ranges') ],
	[ 'exclusion of expressions', "UPDATE bounds t SET l = b * 10, u = b * 10 + 5, id = b $bounds", contents('bounds') ],
	[ 'exclusion, violated', "UPDATE ranges t SET r = int8range(b * 10, b * 10 + 5), id = b $bounds; UPDATE ranges SET r = int8range(28, 33) WHERE id = 29500", 'SELECT 1' ],
	[ 'without overlaps', 'UPDATE periods t SET during = int8range(lower(during) + CASE t.id % 2 WHEN 0 THEN 3 ELSE -3 END, upper(during) + CASE t.id % 2 WHEN 0 THEN 3 ELSE -3 END) FROM keys k WHERE t.id IN (k.a, k.a + 1)', contents('periods') ],
	[ 'partitions', "UPDATE parts t $swap FROM keys k WHERE t.id IN (k.a, k.a + 1)", contents('parts') ],
);
my @others = (
	[ 'row that is gone', 'INSERT INTO keyed VALUES (5, 0); DELETE FROM keyed WHERE id = 5 AND n = 0', 'SELECT 1' ],
	[ 'row that is updated', "INSERT INTO keyed VALUES (5, 0); UPDATE keyed SET n = 1 WHERE id = 5 AND n = 0; UPDATE keyed SET pad = 'x' WHERE id = 5", 'SELECT 1' ],
	[ 'nulls', 'INSERT INTO nulls SELECT NULL, i FROM generate_series(1, 10) i; INSERT INTO not_distinct SELECT NULL, i FROM generate_series(1, 3) i', 'SELECT 1' ],
	[ 'functions of users', "UPDATE by_user t $swap; UPDATE by_user SET id = 7 WHERE id IN (7, 9)", 'SELECT 1' ],
	[ 'error that is caught', 'SET CONSTRAINTS ALL IMMEDIATE; UPDATE catching SET id = id + 1; INSERT INTO catching VALUES (1), (2), (3)', 'SELECT * FROM catching ORDER BY id' ],
	[ 'another trigger', 'SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO watched SELECT i FROM generate_series(1, 10) i; INSERT INTO watched VALUES (11), (3), (12), (4)', 'SELECT 1' ],
	[ 'savepoint', 'SAVEPOINT s; INSERT INTO keyed SELECT a, n FROM keys; ROLLBACK TO s; INSERT INTO keyed SELECT a + 100000, n FROM keys', contents('keyed') ],
	[ 'DDL meanwhile', 'INSERT INTO keyed VALUES (5, 0); ALTER TABLE keyed DROP CONSTRAINT keyed_pkey', 'SELECT 1' ],
	[ 'serializable', "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; UPDATE keyed t $swap FROM keys k WHERE t.id IN (k.a, k.a + 1)", contents('keyed') ],
	[ 'no rows from a plan', 'INSERT INTO keyed VALUES (5, 0), (100000, 1), (5, 2)', 'SELECT 1' ],
	[ 'at the end of the statement', "SET CONSTRAINTS ALL IMMEDIATE; UPDATE keyed t $swap FROM keys k WHERE t.id IN (k.a, k.a + 1); UPDATE keyed t SET id = id + 1 FROM keys k WHERE t.id = k.a", contents('keyed') ],
	[ 'temporary', 'CREATE TEMP TABLE t (id int UNIQUE DEFERRABLE); INSERT INTO t SELECT generate_series(1, 100); UPDATE t SET id = id + 1; INSERT INTO t VALUES (5)', 'SELECT 1' ],
);

my $reference = 'SET aio.lookup_ahead = 0; SET aio.index_batch_memory = 0; SET aio.await_index_inserts = off;';
my @settings = ('SET aio.lookup_ahead = 64;', 'SET aio.lookup_ahead = 7; SET aio.batch_unique_keys = on;', 'SET aio.lookup_ahead = 0;');

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("deferred_$method", $method);

	# a window that is wide enough, as pages are read in several steps
	$node->append_conf('postgresql.conf', 'shared_buffers = 32MB');
	$node->restart;
	my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
	push @settings, 'SET aio.debug_lookups = 7; SET aio.debug_suspend = on; SET aio.debug_rows_before_batch = 0;' if $can_force && @settings == 3;
	$node->safe_psql('postgres', q{
		CREATE TABLE keyed (id bigint, n int, pad text DEFAULT repeat('x', 200));
		INSERT INTO keyed SELECT i, i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE keyed ADD PRIMARY KEY (id) WITH (fillfactor = 30) DEFERRABLE INITIALLY DEFERRED;
		CREATE INDEX ON keyed (n);
		CREATE TABLE by_text (id bigint, u text, v text DEFAULT repeat('x', 200));
		INSERT INTO by_text SELECT i, 'key ' || i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE by_text ADD UNIQUE (u) INCLUDE (id) DEFERRABLE INITIALLY IMMEDIATE;
		CREATE INDEX ON by_text (id);
		CREATE TABLE two (a int, n int, b int, pad text DEFAULT repeat('x', 200));
		INSERT INTO two SELECT i / 1000, i, i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE two ADD UNIQUE (b, a) WITH (fillfactor = 30) DEFERRABLE;
		CREATE TABLE ranges (r int8range, id int, pad text DEFAULT repeat('x', 200));
		INSERT INTO ranges SELECT int8range(i * 10, i * 10 + 5), i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		CREATE TABLE ranges_at_once AS TABLE ranges;
		ALTER TABLE ranges ADD EXCLUDE USING gist (r WITH &&) DEFERRABLE;
		ALTER TABLE ranges_at_once ALTER pad SET DEFAULT repeat('x', 200), ADD EXCLUDE USING gist (r WITH &&);
		CREATE INDEX ON ranges (id);
		CREATE INDEX ON ranges_at_once (id);
		CREATE TABLE bounds (l bigint, u bigint, id int, pad text DEFAULT repeat('x', 200));
		INSERT INTO bounds SELECT i * 10, i * 10 + 5, i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE bounds ADD EXCLUDE USING gist (int8range(l, u) WITH &&) WHERE (id > 0) DEFERRABLE INITIALLY DEFERRED;
		CREATE INDEX ON bounds (id);
		CREATE TABLE periods (id int, room int4range, during int8range, pad text DEFAULT repeat('x', 200));
		INSERT INTO periods SELECT i, int4range(i / 10, i / 10 + 1), int8range(i * 3, i * 3 + 3) FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE periods ADD UNIQUE (room, during WITHOUT OVERLAPS) DEFERRABLE;
		CREATE INDEX ON periods (id);
		CREATE TABLE parts (id bigint, n int, pad text DEFAULT repeat('x', 200), UNIQUE (id) DEFERRABLE) PARTITION BY RANGE (id);
		CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (10000);
		CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (MAXVALUE);
		INSERT INTO parts SELECT i, i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		CREATE TABLE counted (serial bigserial, id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED, n int, pad text DEFAULT repeat('x', 200));
		INSERT INTO counted (id, n) SELECT i + 1000000, i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		INSERT INTO counted (id, n) SELECT i * 2, i FROM generate_series(1, 14000) i ORDER BY hashint8(i);

		CREATE TABLE only_key (id numeric);
		INSERT INTO only_key SELECT i FROM generate_series(1, 30000) i ORDER BY hashint8(i);
		ALTER TABLE only_key ADD PRIMARY KEY (id) WITH (fillfactor = 30) DEFERRABLE;

		CREATE TABLE nulls (id int UNIQUE DEFERRABLE, n int);
		CREATE TABLE not_distinct (id int UNIQUE NULLS NOT DISTINCT DEFERRABLE, n int);
		CREATE FUNCTION half(int) RETURNS int4range LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN int4range($1 / 2, $1 / 2 + 1); END $$;
		CREATE TABLE by_user (id int, EXCLUDE USING gist (half(id * 2) WITH &&) DEFERRABLE);
		INSERT INTO by_user SELECT generate_series(2, 11);
		CREATE TABLE catching (id int UNIQUE DEFERRABLE);
		INSERT INTO catching SELECT generate_series(1, 5);
		CREATE FUNCTION catch() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN
				BEGIN
					INSERT INTO catching VALUES (3), (4), (NEW.id + 100);
				EXCEPTION WHEN unique_violation THEN
					RAISE NOTICE '%', SQLERRM;
				END;
				RETURN NULL;
			END $$;
		CREATE TRIGGER zz AFTER UPDATE ON catching FOR EACH ROW EXECUTE FUNCTION catch();
		CREATE TABLE watched (id int UNIQUE DEFERRABLE);
		CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% %', TG_NAME, NEW.id; RETURN NULL; END $$;
		CREATE TRIGGER "AA" AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION tell();
		CREATE TRIGGER zz AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION tell();

		CREATE TABLE keys AS SELECT row_number() OVER (ORDER BY hashint4(i + 7)) AS n, i AS a FROM generate_series(2, 28000, 28) i;
		VACUUM (FREEZE, ANALYZE);
		CHECKPOINT});

	# Output of a script, and of others after which nothing is in memory.
	my $run = sub {
		my ($settings, @scripts) = @_;
		my $script = join ';', map { ($_, 'SELECT FROM pg_buffercache_evict_all()') } @scripts;

		return join "\n", run_cold($node, "SET CONSTRAINTS ALL DEFERRED; $script", before => qq{
			SELECT setval(oid::regclass, 1) FROM pg_class WHERE relkind = 'S';
			SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off;
			$settings});
	};
	my $lookups = sub { return lookups_ahead($node, @_) };

	# Compare results, and see that the last but one of these scripts looks up
	# ahead.
	my $compare = sub {
		my ($what, @scripts) = @_;
		my @measured = @scripts;
		$measured[-2] = "$settings[0] $scripts[-2]; $reference";
		my ($wanted, $needed) = run_and_count($node, sub { $run->($reference, @scripts) });
		my $started = $lookups->('started');

		my ($result, $read) = run_and_count($node, sub { $run->($reference, @measured) });
		is($result, $wanted, "$method, $what: looked up ahead");
		$node->poll_query_until('postgres', qq{
			SELECT coalesce(sum(started), 0) >= $started + 100 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'})
		  or fail("$method, $what: something is looked up");
		is_needed("$method, $what: what is looked up is needed", $read, $needed, $lookups->('started') - $started);
		is($run->($_, @scripts), $wanted, "$method, $what: $_") foreach @settings[ 1 .. $#settings ];
	};

	# COPY does not wait for one key after the other
	my $file = "$PostgreSQL::Test::Utils::tmp_check/keys";
	$node->safe_psql('postgres', "COPY (SELECT a + 0.5 FROM keys) TO '$file'");
	is($node->safe_psql('postgres', qq{
			SELECT FROM pg_buffercache_evict_all();
			SET aio.index_batch_memory = 0;
			SELECT FROM aio_session_stats_reset();
			COPY only_key FROM '$file';
			SELECT max_reads_in_flight > 4 FROM aio_session_stats();
			DELETE FROM only_key WHERE id <> trunc(id)}) =~ s/^\s+//r, 't', "$method: keys that COPY inserts are read together");

	# the second row with a key is the one that is checked
	$node->safe_psql('postgres', "COPY (SELECT CASE WHEN n IN (400, 404) THEN 0.1 WHEN n IN (401, 402) THEN 29999.5 ELSE a + 0.5 END FROM keys ORDER BY n) TO '$file'");
	is($run->($_, "COPY only_key FROM '$file'", 'SET CONSTRAINTS ALL IMMEDIATE'), $run->($reference, "COPY only_key FROM '$file'", 'SET CONSTRAINTS ALL IMMEDIATE'), "$method, copy: $_") foreach @settings;

	foreach my $case ($method eq $first ? @inserts : $inserts[0])
	{
		$compare->(@$case);
	}
	foreach my $case ($method eq $first ? @checks : @checks[0, 7])
	{
		my ($what, $change, $contents, $check) = (@$case, 'SET CONSTRAINTS ALL IMMEDIATE');

		$compare->($what, $change, $check, $contents);
	}
	next if $method ne $first;
	foreach my $case (@others)
	{
		my ($what, $change, $contents) = @$case;
		my @scripts = ($change, 'SET CONSTRAINTS ALL IMMEDIATE', $contents);
		my $wanted = $run->($reference, @scripts);

		is($run->($_, @scripts), $wanted, "$what: $_") foreach @settings;
	}
	$node->stop;
}

done_testing();
