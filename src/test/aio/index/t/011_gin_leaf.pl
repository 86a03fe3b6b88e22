# Copyright (c) 2026, the pgawait authors

# Keys that are put into a leaf of a GIN index together: that the index finds
# what it should, what is logged, and that a standby and crash recovery make the
# same pages of it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $injection_points = ($ENV{enable_injection_points} // '') eq 'yes';
my $primary = create_quiet_primary();
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE EXTENSION pg_walinspect;

	-- few keys of many rows, many keys of few, nulls, none, and long ones
	CREATE TABLE source AS
		SELECT n AS id,
			CASE n % 50 WHEN 7 THEN NULL WHEN 8 THEN '{}' WHEN 9 THEN ARRAY[n, NULL]
				ELSE ARRAY[0, n % 7, n * 7919 % 3000, n * 31 % 100000] END AS ints,
			CASE WHEN n % 40 <> 3 THEN to_tsvector('simple', concat_ws(' ', 'all', md5((n % 500)::text), md5(n::text))) END AS words,
			jsonb_build_object('a', n % 10, 'b', jsonb_build_array(n * 13 % 4000, md5((n % 100)::text))) AS doc,
			ARRAY[repeat(md5((n * 17 % 300)::text), 1 + n % 19), repeat('x', n % 30)] AS texts
		FROM generate_series(1, 6000) n;
	CREATE TABLE t (LIKE source);
	INSERT INTO t SELECT * FROM source WHERE id % 4 > 0;
	CREATE INDEX t_ints ON t USING gin (ints) WITH (fastupdate = off);
	CREATE INDEX t_words ON t USING gin (words) WITH (gin_pending_list_limit = 64);
	CREATE INDEX t_doc ON t USING gin (doc jsonb_path_ops) WITH (fastupdate = off);
	CREATE INDEX t_multi ON t USING gin (texts, ints, words) WITH (gin_pending_list_limit = 64);
	CREATE INDEX t_part ON t USING gin (texts) WITH (fastupdate = off) WHERE id % 3 = 0;
	VACUUM ANALYZE t;

	CREATE FUNCTION complaints() RETURNS SETOF text LANGUAGE sql AS
		$$SELECT gin_index_check(indexrelid)::text FROM pg_index WHERE indrelid = 't'::regclass$$;
	CREATE FUNCTION pending(i regclass) RETURNS bigint LANGUAGE sql AS
		$$SELECT n_pending_pages FROM gin_metapage_info(get_raw_page(i::text, 0))$$;

	-- what is found for some keys, by index or without
	CREATE TABLE keys AS
		SELECT 'ints' AS what, k::text AS key FROM generate_series(0, 12000) k WHERE k < 7 OR k % 97 = 0
		UNION ALL SELECT 'words', md5(k::text) FROM generate_series(0, 6000, 61) k
		UNION ALL SELECT 'words', 'all'
		UNION ALL SELECT 'doc', k::text FROM generate_series(0, 3999, 41) k
		UNION ALL SELECT 'texts', t FROM (SELECT DISTINCT unnest(texts) t FROM source) x WHERE hashtext(t) % 50 = 0 OR t = '';
	CREATE FUNCTION found(by_index boolean) RETURNS TABLE (what text, keys bigint, ids bigint) LANGUAGE plpgsql AS $$
	BEGIN
		IF by_index THEN
			SET LOCAL enable_seqscan = off;
			RETURN QUERY
			SELECT k.what, count(*), sum(hashtext(key || s)) FROM keys k, LATERAL (
				SELECT sum(id) AS s FROM t WHERE k.what = 'ints' AND ints @> ARRAY[k.key::int]
				UNION ALL SELECT sum(id) FROM t WHERE k.what = 'ints' AND ints @> ARRAY[k.key::int] AND texts @> ARRAY['']
				UNION ALL SELECT sum(id) FROM t WHERE k.what = 'words' AND words @@ k.key::tsquery
				UNION ALL SELECT sum(id) FROM t WHERE k.what = 'doc' AND doc @> jsonb_build_object('b', jsonb_build_array(k.key::int))
				UNION ALL SELECT sum(id) FROM t WHERE k.what = 'texts' AND texts @> ARRAY[k.key] AND id % 3 = 0) x
			WHERE s IS NOT NULL GROUP BY 1 ORDER BY 1;
			RETURN QUERY SELECT 'nulls', count(*), sum(id) FROM t WHERE ints IS NULL;
			RETURN QUERY SELECT 'empty', count(*), sum(id) FROM t WHERE ints <@ '{}';
		ELSE
			SET LOCAL enable_bitmapscan = off;
			RETURN QUERY
			SELECT y.what, count(*), sum(hashtext(y.key || s)) FROM (
				SELECT k.what, k.key, x.what, sum(id) AS s FROM keys k JOIN (
					SELECT DISTINCT t.ctid, id, 'ints' AS what, unnest(ints)::text AS key FROM t
					UNION ALL SELECT DISTINCT t.ctid, id, 'ints also', unnest(ints)::text FROM t WHERE '' = ANY (texts)
					UNION ALL SELECT t.ctid, id, 'words', unnest(tsvector_to_array(words)) FROM t
					UNION ALL SELECT t.ctid, id, 'doc', doc->'b'->>0 FROM t
					UNION ALL SELECT DISTINCT t.ctid, id, 'texts', unnest(texts) FROM t WHERE id % 3 = 0) x
				ON split_part(x.what, ' ', 1) = k.what AND x.key = k.key
				GROUP BY 1, 2, 3) y (what, key, also, s)
			GROUP BY 1 ORDER BY 1;
			RETURN QUERY SELECT 'nulls', count(*), sum(id) FROM t WHERE (ints IS NULL)::text = 'true';
			RETURN QUERY SELECT 'empty', count(*), sum(id) FROM t WHERE cardinality(ints) = 0;
		END IF;
	END $$;
});

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sub check
{
	my ($node, $name) = @_;

	is($node->safe_psql('postgres', 'SELECT DISTINCT * FROM complaints()'), '', "$name: structure");
	is( $node->safe_psql('postgres', 'SELECT * FROM found(true)'),
		$node->safe_psql('postgres', 'SELECT * FROM found(false)'),
		"$name: what is found");
}

# The standby has found each page as it is on the primary.
sub check_both
{
	my ($name) = @_;

	check($primary, $name);
	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', 'SELECT DISTINCT * FROM complaints()'), '', "$name: structure on the standby");
}

# Insert rows, and return what was logged of an index in the meantime: records
# that have one tuple, records that have many, and bytes.
sub logged
{
	my ($index, $rows, @before) = @_;

	return split /\|/, $primary->safe_psql('postgres',
		join('', map { "$_;\n" } @before) . qq{
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		INSERT INTO t SELECT * FROM source WHERE $rows;
		SET synchronous_commit = on;
		SELECT count(*) FILTER (WHERE resource_manager = 'Gin' AND record_type = 'INSERT'),
			count(*) FILTER (WHERE resource_manager = 'Generic'), sum(block_data_length)
		FROM pg_get_wal_block_info(:'start', pg_current_wal_flush_lsn())
		WHERE relfilenode = pg_relation_filenode('$index')});
}

my @consistency = ("SET wal_consistency_checking = 'all'");
my @one_by_one = ('SET aio.index_batch_memory = 0');

# after a checkpoint, the first visit of a leaf is one record with an image
my ($single, $together) = logged('t_doc', 'id % 4 = 0', @consistency, 'CHECKPOINT');
cmp_ok($together, '>', 10, 'keys are logged together');
cmp_ok($single, '<', 1000 * 6, 'and only those of the first rows one by one');
check_both('images');

# without images, and as upstream does
my ($single2, $together2, $bytes2) = logged('t_doc', 'id <= 3000', @consistency);
my ($single3, $together3, $bytes3) = logged('t_doc', 'id <= 3000', @one_by_one);
cmp_ok($together2, '>', 10, 'keys are logged together without images');
is($together3, 0, 'with no batch, none are');
cmp_ok($single2 + $together2, '<', $single3 / 2, 'there are fewer records');
cmp_ok($bytes2, '<', $bytes3, 'and not more bytes');
check_both('changes');

# an index that is nearly empty, whose leaves are split by each visit, and keys
# that get posting trees
$primary->safe_psql('postgres', join(";\n", @consistency, 'TRUNCATE t', 'INSERT INTO t SELECT * FROM source'));
check_both('an empty index');

SKIP:
{
	skip 'injection points are not supported by this build', 3 unless $injection_points;

	$primary->safe_psql('postgres', q{
		CREATE EXTENSION injection_points;
		SELECT injection_points_attach('gin-leave-leaf-split-incomplete', 'error')});
	my $new = 'INSERT INTO t (id, texts) SELECT 10000 + n, ARRAY[repeat(md5((-n)::text), 18)] FROM generate_series(1, 2500) n';
	my ($code, $stdout, $stderr) = $primary->psql('postgres', $new);
	like($stderr, qr/gin-leave-leaf-split-incomplete/, 'a split is left incomplete');
	$primary->safe_psql('postgres', q{SELECT injection_points_detach('gin-leave-leaf-split-incomplete')});
	$primary->safe_psql('postgres', $new);
	check_both('incomplete splits');
}

# the pending list is for few
is($primary->safe_psql('postgres', q{
	SELECT gin_clean_pending_list('t_words') >= 0;
	ALTER INDEX t_words SET (gin_pending_list_limit = 1024);
	SELECT pending('t_words')}), "t\n0", 'the pending list is empty');
$primary->safe_psql('postgres', 'INSERT INTO t SELECT * FROM source WHERE id <= 3000');
cmp_ok($primary->safe_psql('postgres', q{SELECT pending('t_words')}), '>', 30, 'few rows get into the pending list');
$primary->safe_psql('postgres', q{
	SELECT gin_clean_pending_list('t_words');
	ALTER INDEX t_words SET (gin_pending_list_limit = 64);});
$primary->safe_psql('postgres', 'INSERT INTO t SELECT * FROM source');
cmp_ok($primary->safe_psql('postgres', q{SELECT pending('t_words')}), '<', 9, 'many rows go past it');
check_both('pending lists');

# several at a time, and scans meanwhile
my @sessions = map { $primary->background_psql('postgres', on_error_stop => 1) } 1 .. 3;
foreach my $i (0 .. $#sessions)
{
	$sessions[$i]->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT * FROM source WHERE id <= 3000 ORDER BY id % " . (7 + $i) . ", id;\n");
}
my $lost = 0;
for (1 .. 5)
{
	# rows that have been there all the time
	$lost++ if $primary->safe_psql('postgres', q{
		SET enable_seqscan = off;
		SELECT count(*) < 6000 FROM t WHERE words @@ 'all'::tsquery OR ints @> '{0}' OR doc @> '{"a": 3}'}) eq 't';
}
is($lost, 0, 'scans find what has been there all the time');
$_->quit foreach @sessions;
check_both('several sessions');

# rows that are gone, whose items VACUUM has removed
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id % 5 > 0');
$primary->safe_psql('postgres', 'VACUUM t');
logged('t_ints', 'id % 3 = 0', @consistency);
check_both('after VACUUM');

# a key of so many rows that they are inserted in portions
is( $primary->safe_psql(
		'postgres', q{
	CREATE UNLOGGED TABLE many (ints int[]);
	CREATE INDEX many_ints ON many USING gin (ints) WITH (fastupdate = off);
	INSERT INTO many SELECT ARRAY[1, 10 + n % 3] FROM generate_series(1, 200000) n;
	SELECT gin_index_check('many_ints');
	SET enable_seqscan = off;
	SELECT count(*) FROM many WHERE ints @> '{1}';
	SELECT count(*) FROM many WHERE ints @> '{12}'}),
	"\n200000\n66667", 'a key of many rows');

# a key of few rows, and then of so many that its parts are not merged: the second
# part may not be put beside the first
is( $primary->safe_psql(
		'postgres', q{
	CREATE UNLOGGED TABLE parts (ints int[]);
	CREATE INDEX parts_ints ON parts USING gin (ints) WITH (fastupdate = off);
	INSERT INTO parts SELECT CASE WHEN n > 40000 THEN '{1}' WHEN n % 400 = 0 THEN ARRAY[1, -n] ELSE ARRAY[-n] END
		FROM generate_series(1, 240000) n;
	SELECT gin_index_check('parts_ints');
	SET enable_seqscan = off;
	SELECT count(*) FROM parts WHERE ints @> '{1}'}),
	"\n200100", 'a key of few rows, and then of many');

# crash recovery, of what has no image and of what has one
my $contents = 'SELECT count(*), sum(hashtext(t::text)::bigint) FROM t';
foreach my $before ([], ['CHECKPOINT'])
{
	logged('t_doc', 'id % 4 = 1', @$before);
	my $expected = $primary->safe_psql('postgres', $contents);
	$primary->stop('immediate');
	$primary->start;
	is($primary->safe_psql('postgres', $contents), $expected, 'rows after a crash');
	check($primary, 'after a crash');
}

# and the standby goes on by itself
$primary->wait_for_replay_catchup($standby);
$primary->stop;
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO t SELECT * FROM source');
check($standby, 'the promoted standby');
$standby->stop;

done_testing();
