
# Copyright (c) 2026, the pgawait authors

# Foreign keys whose rows are found for many events at a time: rows, errors, row
# locks and statistics are those of checks by queries, whatever happens to the
# rows between the time when they are found and the time when they are checked.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('batches');
$node->init;
$node->append_conf('postgresql.conf', "shared_buffers = 64MB\nautovacuum = off");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION dblink;
	CREATE TABLE parent (id int PRIMARY KEY, v int) WITH (fillfactor = 50);
	INSERT INTO parent SELECT i, 0 FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	CREATE TABLE parent2 (b int, a int, v int, PRIMARY KEY (a, b));
	INSERT INTO parent2 SELECT i, i % 7, 0 FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	CREATE TABLE parent_big (id bigint, v int);
	CREATE UNIQUE INDEX parent_big_id ON parent_big (id DESC);
	ALTER TABLE parent_big ADD UNIQUE (id);
	INSERT INTO parent_big SELECT i - 10000, 0 FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	CREATE TABLE parent_uuid (id uuid PRIMARY KEY, n int);
	INSERT INTO parent_uuid SELECT md5(i::text)::uuid, i FROM generate_series(1, 20000) i;
	CREATE TABLE parent_text (id text COLLATE "C" PRIMARY KEY);
	INSERT INTO parent_text SELECT repeat('x', i % 300) || i FROM generate_series(1, 20000) i;

	CREATE TABLE child (n int, p int REFERENCES parent);
	CREATE TABLE child_null (p int REFERENCES parent, n int, q int REFERENCES parent);
	CREATE TABLE child2 (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES parent2);
	CREATE TABLE child_big (n int, p bigint REFERENCES parent_big (id));
	CREATE TABLE child_uuid (n int, p uuid REFERENCES parent_uuid);
	CREATE TABLE child_text (n int, p text COLLATE "C" REFERENCES parent_text);
	CREATE TABLE child_deferred (n int, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE child_unique (n int PRIMARY KEY, p int REFERENCES parent);
	CREATE TABLE watched (n int, p int REFERENCES parent);

	-- what is executed when the row with n = 1000 has been checked
	CREATE TABLE meanwhile (what text);
	CREATE FUNCTION meanwhile() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE w text;
		BEGIN
			SELECT what INTO STRICT w FROM meanwhile;
			EXECUTE w;
			RETURN NULL;
		END $$;
	CREATE TRIGGER zz AFTER INSERT ON watched FOR EACH ROW WHEN (NEW.n = 1000) EXECUTE FUNCTION meanwhile();
	CREATE FUNCTION another_session(script text) RETURNS void LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM dblink_exec('dbname=postgres port=' || current_setting('port') || ' host=' || split_part(current_setting('unix_socket_directories'), ',', 1), script);
		END $$;
	VACUUM (FREEZE, ANALYZE)});

my $random = '1 + (hashint4(i) & 2147483647) % 20000';
my $rows = 'FROM generate_series(1, 5000) i';

sub locked
{
	my ($table) = @_;
	return "SELECT count(*) FROM $table WHERE xmax::text::bigint >= pg_current_xact_id()::text::bigint;";
}

# Something happens meanwhile, to the parent of the row with n = 1500, whose key is in a batch that has been made.
sub meanwhile
{
	my ($what, $after) = @_;
	(my $key = $random) =~ s/hashint4\(i\)/hashint4(1500)/;
	$what =~ s/KEY/' || ($key) || '/g;
	return "INSERT INTO meanwhile SELECT replace('$what', '^', ''''); INSERT INTO watched SELECT i, $random $rows; "
	  . "SELECT count(*) FROM watched;" . locked('parent') . ($after // '');
}

sub replica { return "SET session_replication_role = replica; $_[0]; SET session_replication_role = origin" }

my @cases = (
	[ 'in order', "INSERT INTO child SELECT i, i $rows;" . locked('parent') ],
	[ 'in descending order', "INSERT INTO child SELECT i, 20001 - i $rows;" . locked('parent') ],
	[ 'in random order', "INSERT INTO child SELECT i, $random $rows;" . locked('parent') ],
	[ 'a violation', "INSERT INTO child SELECT i, CASE i WHEN 4000 THEN 20001 ELSE $random END $rows;" . locked('parent') ],
	[ 'two violations', "INSERT INTO child SELECT i, CASE i WHEN 4000 THEN 20001 WHEN 4001 THEN 0 ELSE i END $rows" ],
	[ 'nulls, two foreign keys', "INSERT INTO child_null SELECT nullif($random, 17 + i % 9), i, nullif(i % 5000, 7) + 1 $rows;" . locked('parent') ],
	[ 'two columns', "INSERT INTO child2 SELECT i, ($random) % 7, $random $rows;" . locked('parent2') ],
	[ 'two columns, a violation', "INSERT INTO child2 SELECT i, ($random + i / 4000) % 7, $random $rows;" ],
	[ 'descending index', "INSERT INTO child_big SELECT i, $random - 10000 $rows;" . locked('parent_big') ],
	[ 'uuid', "INSERT INTO child_uuid SELECT i, md5(($random)::text)::uuid $rows;" . locked('parent_uuid') ],
	[ 'text', "INSERT INTO child_text SELECT i, repeat('x', i % 300) || i $rows;" . locked('parent_text') ],
	[ 'text, compressed in a violation', "INSERT INTO child_text SELECT i, repeat('x', CASE i WHEN 4000 THEN 9999 ELSE i % 300 END) || i $rows" ],
	[ 'deferred', "INSERT INTO child_deferred SELECT i, $random $rows; UPDATE child_deferred SET p = NULL WHERE n % 3 = 0; DELETE FROM child_deferred WHERE n % 3 = 1; "
		. "UPDATE child_deferred SET p = p % 100 + 1; SET CONSTRAINTS ALL IMMEDIATE;" . locked('parent') ],
	[ 'inserted and updated', "INSERT INTO child_unique SELECT 2 * i, 1 $rows; INSERT INTO child_unique SELECT i, $random $rows ON CONFLICT (n) DO UPDATE SET p = excluded.p;" . locked('parent') ],
	[ 'repeatable read', "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; INSERT INTO child SELECT i, $random $rows;" . locked('parent') ],
	[ 'parents of the same transaction', "INSERT INTO parent SELECT i, 1 FROM generate_series(20001, 25000) i; INSERT INTO child SELECT i, i + 20000 $rows;" ],
	[ 'versions of parents', replica('UPDATE parent SET v = 1; UPDATE parent SET id = -id; UPDATE parent SET id = -id') . "; INSERT INTO child SELECT i, $random $rows" ],

	# rows that have been found have gone, have moved, or have other keys
	[ 'deleted meanwhile', meanwhile(replica('DELETE FROM parent WHERE id = KEY')) ],
	[ 'updated meanwhile', meanwhile('UPDATE parent SET v = v + 1', locked('parent')) ],
	[ 'other key meanwhile', meanwhile(replica('UPDATE parent SET id = -id WHERE id = KEY')) ],
	[ 'keys exchanged meanwhile', meanwhile(replica('UPDATE parent SET id = -id; UPDATE parent SET id = 20001 + id')) ],
	[ 'deleted and undone meanwhile', meanwhile('DO $d$ BEGIN SET session_replication_role = replica; DELETE FROM parent; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $d$') ],
	[ 'more parents meanwhile', meanwhile('INSERT INTO parent SELECT -i FROM generate_series(1, 20000) i; INSERT INTO parent SELECT i FROM generate_series(20001, 30000) i') ],
	[ 'another index meanwhile', meanwhile('SET CONSTRAINTS ALL IMMEDIATE; INSERT INTO child SELECT i, i FROM generate_series(1, 500) i') ],
	[ 'locks given back meanwhile', meanwhile('DO $d$ BEGIN PERFORM FROM parent WHERE id = KEY FOR UPDATE; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $d$') ],
);

# Those that another session commits, and how its changes are undone.
my @others = (
	[ 'deleted by another session', 'DELETE FROM parent WHERE id = KEY' ],
	[ 'updated by another session', 'UPDATE parent SET v = v + 1' ],
	[ 'other key by another session', 'UPDATE parent SET id = -id WHERE id = KEY' ],
	[ 'inserted again by another session', 'DELETE FROM parent WHERE id = KEY; INSERT INTO parent VALUES (KEY, 5)' ],
);

my %results;

# Output of a script.
sub run
{
	my ($setting, $script) = @_;
	my ($output, $errors);
	$node->psql('postgres', qq{
		\\set VERBOSITY verbose
		\\set ON_ERROR_ROLLBACK on
		\\set SHOW_CONTEXT never
		SET plan_cache_mode = force_generic_plan;
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off;
		SET aio.direct_foreign_key_checks = $setting;
		BEGIN;
		$script;
		ROLLBACK}, on_error_stop => 0, stdout => \$output, stderr => \$errors);
	return $output . "\n" . join "\n", grep { !/^(LOCATION|SCHEMA NAME):/ } map { s/^psql:<stdin>:\d+: //r } split /\n/, $errors;
}

foreach my $case (@cases)
{
	my ($what, $script) = @$case;
	my $wanted = run('off', $script);
	is(run('on', $script), $wanted, $what);
	$results{$what} = $wanted;
}
unlike($results{'in random order'}, qr/ERROR/, 'no violation');
like($results{$_}, qr/is not present in table/, "$_: a violation") foreach 'a violation', 'deleted meanwhile', 'other key meanwhile';
unlike($results{$_}, qr/ERROR/, "$_: no violation") foreach 'keys exchanged meanwhile', 'deleted and undone meanwhile', 'more parents meanwhile';

foreach my $case (@others)
{
	my ($what, $script) = @$case;
	my @results = map {
		my $result = run($_, meanwhile("SELECT another_session(^SET session_replication_role = replica; $script^)"));
		$node->safe_psql('postgres', 'SET session_replication_role = replica; DELETE FROM parent; '
			  . 'INSERT INTO parent SELECT i, 0 FROM generate_series(1, 20000) i ORDER BY hashint4(i); VACUUM (FREEZE, ANALYZE) parent');
		$result;
	} qw(off on);
	is($results[1], $results[0], $what);
	(($what =~ /deleted|other key/) ? \&like : \&unlike)->($results[0], qr/is not present in table/, "$what: whether there is a violation");
}

# What has been found is a version of a row that is gone.  Before it is looked
# at, another row takes its place.
my @reused = map {
	my $parent = "reused_$_";
	$node->safe_psql('postgres', qq{
		CREATE TABLE $parent (id int PRIMARY KEY, v int);
		INSERT INTO $parent SELECT i, 0 FROM generate_series(1, 20000) i;
		CREATE TABLE child_of_$parent (n int, p int REFERENCES $parent);
		CREATE TRIGGER zz AFTER INSERT ON child_of_$parent FOR EACH ROW WHEN (NEW.n = 1000) EXECUTE FUNCTION meanwhile();
		VACUUM (FREEZE) $parent;
		BEGIN; DELETE FROM $parent WHERE id = 1; INSERT INTO $parent VALUES (1, 7); COMMIT});
	my $result = run($_, qq{
		INSERT INTO meanwhile VALUES ('SELECT another_session(''VACUUM (INDEX_CLEANUP on) $parent''), another_session(''INSERT INTO $parent SELECT i, 9 FROM generate_series(30001, 30500) i'')');
		INSERT INTO child_of_$parent SELECT i, CASE i WHEN 1500 THEN 1 ELSE i + 1 END $rows;
		SELECT count(*), max(id) FROM $parent WHERE xmax::text::bigint >= pg_current_xact_id()::text::bigint});
	is($node->safe_psql('postgres', "SELECT id > 30000 FROM $parent WHERE ctid = '(0,1)'"), 't', "aio.direct_foreign_key_checks = $_: another row is there");
	$result;
} qw(off on);
is($reused[1], $reused[0], 'another row in the place of one that has been found');

# The index is scanned once for each row, as far as statistics tell, but pages
# are not read for each.
sub counted
{
	my ($setting, $count, $script) = @_;
	my $read = "SELECT $count FROM pg_stat_user_indexes JOIN pg_statio_user_indexes USING (indexrelid) WHERE pg_stat_user_indexes.indexrelname = 'parent_pkey'";
	my $before = $node->safe_psql('postgres', $read);
	$node->safe_psql('postgres', qq{
		SET aio.direct_foreign_key_checks = $setting;
		BEGIN;
		$script;
		ROLLBACK;
		SELECT pg_stat_force_next_flush()});
	return $node->safe_psql('postgres', $read) - $before;
}
foreach my $case ([ 'inserts', "INSERT INTO child SELECT i, i $rows" ],
	# events of two triggers in turn
	[ 'upserts', "INSERT INTO child_unique SELECT i, i + 5000 $rows WHERE i % 2 = 0;
		INSERT INTO child_unique SELECT i, i $rows ON CONFLICT (n) DO UPDATE SET p = excluded.p" ])
{
	my ($what, $script) = @$case;
	my $n = counted('off', 'idx_scan', $script);

	is(counted('on', 'idx_scan', $script), $n, "$what: scans are counted");
	cmp_ok(counted('on', 'idx_blks_hit', $script), '<', $n * 2 / 5, "$what: pages of the index are read once for many rows");
	cmp_ok(counted('off', 'idx_blks_hit', $script), '>', $n, "$what: a query reads them for each row");
}

# Pages that are not in memory are read ahead, neighbours together: of the table
# that is referred to, and of the one that refers to rows which are deleted.
sub reads
{
	my ($setting, $script) = @_;
	$node->safe_psql('postgres', 'CHECKPOINT; SELECT pg_buffercache_evict_all()');
	return split /\|/, (split /\n/, $node->safe_psql('postgres', qq{
		SET aio.direct_foreign_key_checks = on;
		SET aio.lookup_ahead = $setting;
		SET enable_seqscan = off; SET enable_bitmapscan = off;
		BEGIN;
		$script;
		ROLLBACK;
		SELECT pg_stat_force_next_flush();
		SELECT sum(reads), sum(read_bytes)::bigint / 8192, (SELECT sum(started) FROM pg_stat_aio WHERE kind = 'lookup' AND backend_type = 'client backend')
			FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'relation'}))[-1];
}
$node->safe_psql('postgres', qq{
	CREATE EXTENSION pg_buffercache;
	CREATE EXTENSION aio;
	CREATE TABLE parent_wide (id int, filler text);
	INSERT INTO parent_wide SELECT i, repeat('x', 400) FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	ALTER TABLE parent_wide ADD PRIMARY KEY (id) WITH (fillfactor = 20);
	CREATE TABLE child_wide (n int, p int REFERENCES parent_wide);
	CREATE TABLE child_few (p int REFERENCES parent_wide);
	INSERT INTO child_few SELECT i FROM generate_series(1, 20000, 2) i ORDER BY hashint4(i);
	CREATE INDEX ON child_few (p) WITH (fillfactor = 10);
	VACUUM (FREEZE, ANALYZE)});
foreach my $case ([ 'inserts', "INSERT INTO child_wide SELECT i, $random $rows" ],
	[ 'deletes', 'DELETE FROM parent_wide WHERE id > 10000 AND id % 2 = 0' ])
{
	my ($what, $script) = @$case;
	my ($reads, $pages, $before) = reads(0, $script);
	cmp_ok($pages, '>=', 400, "$what: pages are read");
	my $one_by_one = $reads;
	($reads, $pages, my $after) = reads(64, $script);
	cmp_ok($pages, '>=', 400, "$what: pages are read ahead");
	cmp_ok($reads, '<', $one_by_one - 80, "$what: neighbours by one I/O");
	cmp_ok($after, '>', $before + 1000, "$what: it is counted");
}

# A page of the rows that refer cannot be read.  It fails the check of its rows,
# not one before.
foreach my $case ([ 'violation before', 0, qr/Key \(p\)=\(0\) is not present/ ], [ 'no violation', 1, qr/invalid page in block 12 of relation/ ])
{
	my ($what, $key, $error) = @$case;
	my @results = map {
		run($_, qq{
			CREATE TABLE damaged (n int, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
			INSERT INTO damaged SELECT i, CASE i WHEN 2000 THEN $key ELSE $random END $rows;
			SELECT FROM pg_buffercache_evict_all();
			DO \$d\$ BEGIN
				EXECUTE format('COPY (SELECT) TO PROGRAM %L',
					format('cat; printf damage | dd of=%s bs=1 seek=%s conv=notrunc 2>&1', pg_relation_filepath('damaged'), 12 * 8192 + 4000));
			END \$d\$;
			SET CONSTRAINTS ALL IMMEDIATE}) =~ s{base/\d+/\d+}{base}r;
	} qw(off on);

	like($results[0], $error, "page damaged, $what");
	is($results[1], $results[0], "page damaged, $what: the same");
}

# More foreign keys than checks that stay open: they are opened for each row,
# and nothing of that is left.
is( $node->safe_psql(
		'postgres', q{
	CREATE TABLE many_keys (n int);
	SELECT format('ALTER TABLE many_keys ADD p%s uuid DEFAULT md5(%L)::uuid REFERENCES parent_uuid', i, i) FROM generate_series(1, 33) i \gexec
	CREATE TABLE memory (n int, bytes bigint);
	CREATE FUNCTION note_memory() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO memory SELECT NEW.n, sum(total_bytes) FROM pg_backend_memory_contexts;
			RETURN NULL;
		END $$;
	CREATE TRIGGER zz AFTER INSERT ON many_keys FOR EACH ROW WHEN (NEW.n IN (100, 1100)) EXECUTE FUNCTION note_memory();
	INSERT INTO many_keys SELECT generate_series(1, 1100);
	SELECT max(bytes) - min(bytes) < 8 * 1024 * 1024 FROM memory}),
	't', 'memory does not grow with the rows');

$node->stop;
done_testing();
