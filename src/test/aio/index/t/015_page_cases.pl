# Copyright (c) 2026, the pgawait authors

# Pages and keys that are rare: leaves whose split is incomplete, old versions of
# rows that are deleted from leaves before these would be split, buckets that are
# split, equal keys on both sides of a high key and on several leaves, keys that
# are equal but not the same, and large ones.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = create_quiet_primary(conf => "wal_consistency_checking = 'btree, generic'\n");
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE EXTENSION pg_walinspect;
	CREATE FUNCTION complaints(t regclass) RETURNS SETOF text LANGUAGE sql AS
		$$SELECT DISTINCT bt_index_parent_check(indexrelid, true, true, indisunique)::text FROM pg_index WHERE indrelid = t$$;

	-- what an index scan finds, and what a scan of the table does
	CREATE FUNCTION found(query text, by_index boolean) RETURNS SETOF text LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM set_config('enable_seqscan', (NOT by_index)::text, true), set_config('enable_sort', (NOT by_index)::text, true),
			set_config('enable_indexscan', by_index::text, true), set_config('enable_indexonlyscan', by_index::text, true),
			set_config('enable_bitmapscan', 'off', true);
		RETURN QUERY EXECUTE query;
	END$$;
});

# Entries are collected from the first row on, where the server can do that.
my $at_once = $primary->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_rows_before_batch'})
  ? 'SET aio.debug_rows_before_batch = 0;' : '';
my $one_by_one = 'SET aio.await_index_inserts = off;';

# The indexes of a table are right, and queries, each of which uses one of them,
# find what is found without.
sub check
{
	my ($node, $name, $table, @queries) = @_;

	is($node->safe_psql('postgres', "SELECT complaints('$table')"), '', "$name: indexes are right");
	foreach my $query (@queries)
	{
		my $quoted = "\$query\$$query\$query\$";

		is($node->safe_psql('postgres', "SELECT found($quoted, true)"), $node->safe_psql('postgres', "SELECT found($quoted, false)"),
			"$name: $query");
	}
}

# How many entries a statement has collected.
sub collected
{
	my ($statement) = @_;

	return $primary->safe_psql('postgres', "SELECT aio_session_stats_reset() \\g /dev/null\n$statement;\nSELECT entries FROM aio_session_batches()");
}

# Incomplete splits: recovery ends right after a split has been logged, and
# before its downlink has.  The left half, or if it is a page above the leaves,
# each way to a leaf, is left so to who comes next.
$primary->safe_psql(
	'postgres', q{
	CREATE TABLE s (k int, w text);
	ALTER TABLE s ALTER w SET STORAGE EXTERNAL;
	CREATE INDEX s_k ON s (k);
	CREATE INDEX s_w ON s (w);
	CREATE FUNCTION wide(n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT repeat('x', 1000) || lpad(n::text, 6, '0')$$;
	CREATE FUNCTION incomplete() RETURNS bigint LANGUAGE sql AS
		$$SELECT count(*) FROM (VALUES ('s_k'), ('s_w')) i (name), bt_multi_page_stats(name, 1, -1) WHERE btpo_flags & 128 > 0$$;
});
$primary->backup('empty');
my $start = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
my $load = 'INSERT INTO s SELECT n, wide(n) FROM generate_series(1, 6000) n ORDER BY hashint4(n)';
$primary->safe_psql('postgres', "$one_by_one $load");
my $middle = $primary->safe_psql('postgres', 'TRUNCATE s; SELECT pg_current_wal_insert_lsn()');
$primary->safe_psql('postgres', $load);
my $end = $primary->safe_psql('postgres', 'SET synchronous_commit = on; SELECT pg_switch_wal() \g /dev/null
	SELECT pg_current_wal_flush_lsn()');

# The position of a split of a level, after so many, among those between two
# positions.
sub split_position
{
	my ($level, $nth, $from, $to, $condition) = @_;

	return $primary->safe_psql('postgres', qq{
		SELECT start_lsn FROM pg_get_wal_block_info('$from', '$to')
		WHERE resource_manager = 'Btree' AND record_type LIKE 'SPLIT%' AND block_id = 0 AND description LIKE 'level: $level,%' AND $condition
		ORDER BY start_lsn OFFSET $nth LIMIT 1});
}

# the new item of a split that is made to fill the leaf is the first on the right
my %splits = (
	'the root, which is a leaf' => split_position(0, 0, $start, $middle, 'true'),
	'a leaf' => split_position(0, 400, $start, $middle, 'true'),
	'a leaf that is split to be filled' => split_position(0, 3, $middle, $end,
		q{relfilenode = pg_relation_filenode('s_k') AND description ~ 'firstrightoff: (\d+), newitemoff: \1,'}),
	'a page above the leaves' => split_position(1, 20, $start, $middle, 'true'),
	'a root above others' => split_position(1, 0, $start, $middle, 'true'));
foreach my $name (sort keys %splits)
{
	my $node = PostgreSQL::Test::Cluster->new($name =~ s/\W+/_/gr);

	isnt($splits{$name}, '', "a split of $name is logged");
	$node->init_from_backup($primary, 'empty', has_streaming => 1);
	$node->append_conf('postgresql.conf', "recovery_target_lsn = '$splits{$name}'\nrecovery_target_action = promote\n");
	$node->start;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'not promoted';
	is($node->safe_psql('postgres', 'SELECT incomplete()'), '1', "$name: a split is incomplete");
	$node->safe_psql('postgres', "$at_once INSERT INTO s SELECT n, wide(n) FROM generate_series(3, 6000, 20) n ORDER BY hashint4(n)");
	is($node->safe_psql('postgres', 'SELECT incomplete()'), '0', "$name: it is completed");
	$node->safe_psql('postgres', "$at_once INSERT INTO s SELECT n, wide(n) FROM generate_series(1, 6000) n ORDER BY hashint4(n)");
	check($node, "$name, split incompletely", 's', 'SELECT concat(count(*), sum(k)) FROM s WHERE k > 0', q{SELECT count(*)::text FROM s WHERE w > 'x'});
	$node->stop;
}

# Bottom-up deletion: updates of another column leave versions of each row in an
# index, which are deleted before a leaf is split for them.
my %pages;
foreach my $how (['off', $one_by_one], ['on', ''])
{
	my ($name, $settings) = @$how;

	$primary->safe_psql('postgres', q{
		DROP TABLE IF EXISTS v;
		CREATE TABLE v (k int, u uuid, n int) WITH (fillfactor = 50);
		INSERT INTO v SELECT n, md5(n::text)::uuid, 0 FROM generate_series(1, 5000) n;
		CREATE INDEX v_k ON v (k);
		CREATE INDEX v_u ON v (u);
		CREATE INDEX v_apart ON v (u) WITH (deduplicate_items = off);
		CREATE INDEX v_n ON v (n)});
	my $entries = 0;
	$entries += collected("$settings UPDATE v SET n = n + 1") for 1 .. 20;
	cmp_ok($entries, '>', 20 * 4 * 3900, 'entries of updates are collected') if $name eq 'on';
	$pages{$name} = [ split /\|/, $primary->safe_psql('postgres', q{SELECT pg_relation_size('v_k') / 8192, pg_relation_size('v_u') / 8192, pg_relation_size('v_apart') / 8192}) ];
	note "$name: @{ $pages{$name} } pages";
	check($primary, "versions, $name", 'v', 'SELECT concat(count(*), sum(k)) FROM v WHERE k > 0',
		q{SELECT count(*)::text FROM v WHERE u > '00000000-0000-0000-0000-000000000000'});
}
cmp_ok($pages{on}[$_], '<=', $pages{off}[$_] * 1.3, 'versions do not make an index larger than they do one by one') foreach 0 .. 2;
cmp_ok($pages{on}[$_], '<', 20 * 5000 / 400 / 2, 'nor one that holds all of them') foreach 0, 1;

# The buckets of a hash index that grows are split one after the other; entries
# that come to one before its turn would make a long chain of pages of it.
foreach my $how (['off', $one_by_one], ['on', ''])
{
	my ($name, $settings) = @$how;

	$pages{$name} = $primary->safe_psql('postgres', qq{
		$settings
		DROP TABLE IF EXISTS g;
		CREATE TABLE g (n int);
		CREATE INDEX g_n ON g USING hash (n);
		INSERT INTO g SELECT n FROM generate_series(1, 60000) n;
		SELECT pg_relation_size('g_n') / 8192});
}
cmp_ok($pages{on}, '<=', $pages{off} * 1.1, 'a hash index that grows is not larger than it is one by one');

# A high key with a TID: entries of one key have been on both sides of it, and of
# all of them one is left, on the left or on the right, or none.  A new one of
# that key would go behind all items of the left leaf, while the key is on the
# right; or to the right leaf, while it is on the left.
foreach my $kept ('left', 'right', 'none')
{
	$primary->safe_psql('postgres', q{
		DROP TABLE IF EXISTS h;
		CREATE TABLE h (k int, n int);
		CREATE INDEX h_n ON h (n);
		INSERT INTO h SELECT i * 10, 0 FROM generate_series(1, 2000) i});
	$primary->safe_psql('postgres', 'INSERT INTO h SELECT 2000, 1 FROM generate_series(1, 400)') if $kept eq 'left';
	my $old = $primary->background_psql('postgres', on_error_stop => 1);
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM h');
	$primary->safe_psql('postgres', ($kept eq 'left' ? 'DELETE FROM h WHERE n = 1;'
		  : 'DO $$BEGIN FOR i IN 1 .. 400 LOOP UPDATE h SET n = n + 1 WHERE k = 2000; END LOOP; END$$;')
		  . 'CREATE UNIQUE INDEX h_k ON h (k) WITH (deduplicate_items = off)');
	$old->quit;
	$primary->safe_psql('postgres', 'DELETE FROM h WHERE k = 2000') if $kept eq 'none';
	$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) h');

	# the first leaf's high key, and its last item
	my $last = $kept eq 'left' ? 'd0' : 'c6';
	is( $primary->safe_psql(
			'postgres', q{
			SELECT string_agg(data, ' ' ORDER BY itemoffset)
			FROM (SELECT * FROM bt_page_items('h_k', 1) ORDER BY itemoffset = 1 DESC, itemoffset DESC LIMIT 2) x}),
		"d0 07 00 00 00 00 00 00 $last 07 00 00 00 00 00 00", "$kept: a high key of the key");
	like($primary->safe_psql('postgres', q{SELECT htid FROM bt_page_items('h_k', 1) WHERE itemoffset = 1}), qr/\(\d+,\d+\)/, "$kept: has a TID");

	# where the first of a leaf's entries goes is found in another way than the rest
	my $first = $kept eq 'left' ? 100 : 50;
	my ($code, $stdout, $stderr) = $primary->psql('postgres', qq{$at_once
		INSERT INTO h SELECT k, -1 FROM (SELECT i * 20 + 1 AS k FROM generate_series($first, 500) i UNION ALL SELECT 2000) new
		ORDER BY k = 2000, hashint4(k)});
	my $expected = $kept eq 'none' ? qr/^$/ : qr/duplicate key value violates unique constraint "h_k"/;
	like($stderr, $expected, "$kept: a duplicate is found if there is one");
	check($primary, "a high key with a TID, $kept", 'h', 'SELECT concat(count(*), sum(k)) FROM h WHERE k > 0');
}

# A key of which old versions are on several leaves: a new entry is looked for on
# the first of them, which has room, and belongs to the last, for its TID.  That
# one is full, and is split as any leaf, its downlink being known.
$primary->safe_psql('postgres', q{
	CREATE TABLE old (k int, pad text, filler text);
	ALTER TABLE old ALTER pad SET STORAGE PLAIN, ALTER filler SET STORAGE PLAIN;
	CREATE INDEX old_filler ON old (filler);
	CREATE UNIQUE INDEX old_k ON old (k) INCLUDE (pad);
	CREATE FUNCTION leaves() RETURNS text LANGUAGE sql AS
		$$SELECT string_agg(CASE WHEN free_size > 200 THEN 'room' ELSE 'full' END, ' ' ORDER BY tid) FROM
			(SELECT min(htid) AS tid, free_size FROM bt_multi_page_stats('old_k', 1, -1) p, bt_page_items('old_k', p.blkno) i
				WHERE p.type = 'l' AND data LIKE '00 00 00 00 % 76 76 %' GROUP BY p.blkno, free_size) x$$});
my ($said, $complaint) = ('', '');
$primary->psql('postgres', qq{
	BEGIN;
	DO \$\$
	BEGIN
		FOR i IN 1 .. 8 LOOP
			INSERT INTO old VALUES (0, repeat('v', CASE WHEN i <= 3 THEN 2600 ELSE 2000 END));
			DELETE FROM old WHERE k = 0;
		END LOOP;
		INSERT INTO old SELECT n, repeat('o', 1000) FROM generate_series(1, 100) n;
		INSERT INTO old VALUES (0, repeat('v', 1980));
		DELETE FROM old WHERE k = 0;
	END\$\$;
	SELECT leaves();
	-- rows are wider than what is free in the table's pages, and so come last
	SET client_min_messages = debug2;
	INSERT INTO old SELECT CASE n WHEN 1101 THEN 0 ELSE 10000 + n END, repeat('n', 100), repeat('f', 400) FROM generate_series(1, 1700) n;
	RESET client_min_messages;
	SELECT leaves();
	COMMIT}, stdout => \$said, stderr => \$complaint);
is($said, "room room room full\nroom room room room", 'the last leaf of old versions is split');
unlike($complaint, qr/concurrent ROOT page split/, 'with its parents known');
check($primary, 'a key that goes on to other leaves', 'old', 'SELECT concat(count(*), sum(k)) FROM old WHERE k >= 0');

# nulls, descending columns, and columns that are no keys
$primary->safe_psql('postgres', qq{
	CREATE TABLE n (id int, a int, b text);
	CREATE INDEX n_first ON n (a NULLS FIRST, b DESC) INCLUDE (id);
	CREATE INDEX n_last ON n (b DESC NULLS LAST) INCLUDE (a, id);
	CREATE UNIQUE INDEX n_id ON n (id DESC) INCLUDE (b) WHERE id IS NOT NULL;
	$at_once
	INSERT INTO n SELECT nullif(n, 77), nullif(n % 7, 3), nullif(md5((n % 700)::text), md5('5')) FROM generate_series(1, 5000) n ORDER BY hashint4(n);
	INSERT INTO n SELECT n, nullif(n % 5, 3), nullif(md5((n % 900)::text), md5('5')) FROM generate_series(5001, 10000) n ORDER BY hashint4(n)});
check($primary, 'nulls', 'n',
	map { "SELECT concat(count(*), sum(id), count(b)) FROM n WHERE $_" } 'a IS NULL', 'a >= 2', 'b IS NULL', q{b > '8'}, 'id > 300', q{a = 4 AND b IS NULL});
is( $primary->safe_psql('postgres', q{SELECT md5(found('SELECT string_agg(concat(a, b), $$ $$) FROM (SELECT a, b FROM n ORDER BY a NULLS FIRST, b DESC) x', true))}),
	$primary->safe_psql('postgres', q{SELECT md5(found('SELECT string_agg(concat(a, b), $$ $$) FROM (SELECT a, b FROM n ORDER BY a NULLS FIRST, b DESC) x', false))}),
	'in order');

# keys that are equal, but not the same bytes: none may stand for the other
SKIP:
{
	skip 'server is built without ICU', 7
	  unless $primary->safe_psql('postgres', q{SELECT count(*) FROM pg_collation WHERE collprovider = 'i' AND collname = 'und-x-icu'});

	$primary->safe_psql('postgres', qq{
		CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TABLE c (s text COLLATE insensitive, id int);
		CREATE INDEX c_s ON c (s);
		$at_once
		INSERT INTO c SELECT CASE n % 3 WHEN 0 THEN upper(w) WHEN 1 THEN initcap(w) ELSE w END, n
		FROM (SELECT n, 'key ' || md5((n % 40)::text) AS w FROM generate_series(1, 8000) n) x ORDER BY hashint4(n)});
	check($primary, 'equal keys of different bytes', 'c', 'SELECT concat(count(*), sum(id)) FROM c WHERE s = \'KEY \' || md5(\'7\')',
		q{SELECT md5(string_agg(s || ' ', '' ORDER BY id)) FROM c WHERE s > 'kEY'});
	is($primary->safe_psql('postgres', q{SELECT allequalimage, count(*) FILTER (WHERE tids IS NOT NULL)
		FROM bt_metap('c_s'), bt_multi_page_stats('c_s', 1, -1) p, bt_page_items('c_s', p.blkno) WHERE p.type = 'l' GROUP BY 1}),
		'f|0', 'are not deduplicated');

	# as keys that are enforced they are duplicates, of rows that are there and
	# of each other
	$primary->safe_psql('postgres', q{
		CREATE TABLE e (s text COLLATE insensitive UNIQUE);
		INSERT INTO e SELECT 'key ' || n FROM generate_series(1, 500) n});
	foreach my $new (q{'KEY 77'}, q{'NEW' UNION ALL SELECT 'new'})
	{
		my ($code, $stdout, $stderr) = $primary->psql('postgres',
			"$at_once INSERT INTO e SELECT 'Row ' || n FROM generate_series(1, 2000) n UNION ALL SELECT $new");
		like($stderr, qr/duplicate key value violates unique constraint "e_s_key"/, "$new is a duplicate");
	}
	check($primary, 'enforced keys that are equal', 'e', q{SELECT count(*)::text FROM e WHERE s > 'KEY'});
}

# Keys that are out of line in the table, up to the largest that a page takes; of
# one that is larger, the error is what it is one by one.
$primary->safe_psql('postgres', q{
	CREATE FUNCTION noise(n int, bytes int) RETURNS text LANGUAGE sql IMMUTABLE AS
		$$SELECT left(string_agg(md5(concat(n, ' ', i)), ''), bytes) FROM generate_series(1, bytes / 32 + 1) i$$;
	CREATE TABLE large (id int, s text, z text);
	ALTER TABLE large ALTER s SET STORAGE EXTERNAL;
	CREATE INDEX large_s ON large (s);
	CREATE INDEX large_z ON large (z DESC, id)});
$primary->safe_psql('postgres', $at_once . q{
	INSERT INTO large SELECT n, noise(n % 500, 2000 + (n * 13) % 693), noise(n, 500) || repeat('z', 20000)
	FROM generate_series(1, 1500) n});
is($primary->safe_psql('postgres', q{SELECT max(length(s)), min(pg_column_toast_chunk_id(s)) > 0, count(pg_column_toast_chunk_id(s)) FROM large}), '2692|t|1500',
	'keys are out of line');
my @large = ('SELECT concat(count(*), sum(id)) FROM large WHERE s > \'8\'', 'SELECT concat(count(*), sum(id)) FROM large WHERE z < \'8\'');
check($primary, 'large keys', 'large', @large);
my @outcomes;
foreach my $settings ($one_by_one, $at_once)
{
	my ($code, $stdout, $stderr) = $primary->psql('postgres', qq{
		\\set VERBOSITY verbose
		\\set ON_ERROR_ROLLBACK on
		$settings
		BEGIN;
		INSERT INTO large SELECT n, noise(n, 300), noise(n, 100) FROM generate_series(2000, 3500) n;
		INSERT INTO large SELECT n, noise(n, CASE n WHEN 5200 THEN 2693 ELSE 2600 END), noise(n, 100) FROM generate_series(4000, 5300) n;
		COPY large FROM stdin;
@{[ join "\n", map { "$_\tc" . ($_ == 7200 ? 'x' x 2700 : $_) . "\tz$_" } 6000 .. 7300 ]}
\\.
		INSERT INTO large SELECT n, noise(n, 300), noise(n, 100) FROM generate_series(8000, 9500) n;
		SELECT count(*), sum(id) FROM large;
		DELETE FROM large WHERE id >= 2000;
		COMMIT;}, on_error_stop => 0);
	like($stderr, qr/54000: index row size 2712 exceeds btree version 4 maximum 2704 for index "large_s"/, 'a key that is too large');
	push @outcomes, $stdout . "\n" . ($stderr =~ s/^psql:<stdin>:\d+: |^LOCATION:.*$//gmr =~ s/\(\d+,\d+\)/TID/gr);
	check($primary, 'after one that is too large', 'large', @large);
}
is($outcomes[1], $outcomes[0], 'errors, and rows, are the same as one by one');

$primary->stop;
done_testing();
