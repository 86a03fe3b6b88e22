# Copyright (c) 2026, the pgawait authors

# Entries that are put into a btree leaf together: what is logged of them, and
# that a standby and crash recovery make the same page of it.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = create_quiet_primary();
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE EXTENSION pg_walinspect;
	CREATE TABLE source AS
		SELECT n AS id, md5(n::text)::uuid AS u, md5((-n)::text) AS s, n % 19 AS few, nullif((n * 7919) % 101, 3) AS other
		FROM generate_series(1, 20000) n;
	CREATE TABLE t (LIKE source);
	INSERT INTO t SELECT * FROM source WHERE id % 4 > 0;
	CREATE INDEX t_u ON t (u);
	CREATE INDEX t_few ON t (few);
	CREATE INDEX t_other ON t (other DESC NULLS LAST, s) INCLUDE (u);
	CREATE INDEX t_long ON t (repeat(s, 20), id);
	CREATE INDEX t_part ON t (s DESC) WHERE few > 9;
	VACUUM ANALYZE t;
	CREATE TABLE k (LIKE source);
	INSERT INTO k SELECT * FROM source WHERE id % 2 = 0;
	ALTER TABLE k ADD UNIQUE (u), ADD UNIQUE NULLS NOT DISTINCT (few, other, s);
	CREATE FUNCTION complaints() RETURNS SETOF text LANGUAGE sql AS
		$$SELECT bt_index_check(indexrelid, true, indisunique)::text FROM pg_index WHERE indrelid IN ('t'::regclass, 'k'::regclass)$$;
});

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

# Insert rows, and return what was logged of the index t_u in the meantime:
# records that have one entry, records that have many, and images.
sub logged
{
	my ($rows, @before) = @_;

	return $primary->safe_psql('postgres',
		join('', map { "$_;\n" } @before) . qq{
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		INSERT INTO t SELECT * FROM source WHERE $rows;
		SET synchronous_commit = on;
		SELECT count(*) FILTER (WHERE record_type = 'INSERT_LEAF'),
			count(*) FILTER (WHERE resource_manager = 'Generic'), count(*) FILTER (WHERE block_fpi_length > 0)
		FROM pg_get_wal_block_info(:'start', pg_current_wal_flush_lsn())
		WHERE relfilenode = pg_relation_filenode('t_u')});
}

# The standby has found each page as it is on the primary, and finds all rows.
sub check_standby
{
	my ($name) = @_;

	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', 'SELECT DISTINCT * FROM complaints()'), '', "$name: indexes of the standby");
}

my @consistency = ("SET wal_consistency_checking = 'btree, generic'");

# after a checkpoint, the first visit of a leaf is one record with an image
my ($single, $together, $images) = split /\|/, logged('id % 4 = 0', @consistency, 'CHECKPOINT');
my $rows = 5000 - 1000;
cmp_ok($together, '>', 30, 'entries are logged together');
cmp_ok($single - 1000, '<', $rows / 3, 'and hardly one by one');
check_standby('images');

# without images, those that lie close enough
($single, $together, $images) = split /\|/, logged('true', @consistency);
cmp_ok($together, '>', 30, 'entries are logged together without images');
cmp_ok($single, '<', 19000 / 3, 'and hardly one by one');
check_standby('changes');

# No more bytes are logged of a load than one by one, and, where ten entries go to
# a leaf, no more than a third as many records; with images of the pages, and
# without.  The pages know of their last record.  Rows that come before any are
# collected are not in the index.
sub logged_of_load
{
	my ($settings, $before) = @_;

	return split /\|/, $primary->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS w;
		CREATE TABLE w (LIKE source);
		INSERT INTO w SELECT * FROM source WHERE id > 1000 AND id % 10 > 0;
		CREATE INDEX w_u ON w (u, other) WITH (fillfactor = 80) WHERE id > 1000;
		$before;
		$settings;
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		INSERT INTO w SELECT * FROM source WHERE id <= 1000 OR id % 10 = 0 ORDER BY id > 1000, hashint4(id);
		SET synchronous_commit = on;
		CREATE TEMP TABLE logged AS SELECT start_lsn, record_length, relblocknumber
			FROM pg_get_wal_block_info(:'start', pg_current_wal_flush_lsn()) WHERE relfilenode = pg_relation_filenode('w_u');
		SELECT count(*), sum(record_length),
			(SELECT count(*) FROM (SELECT relblocknumber, max(start_lsn) AS lsn FROM logged GROUP BY 1) last
				WHERE lsn >= (page_header(get_raw_page('w_u', relblocknumber::int))).lsn)
		FROM (SELECT DISTINCT start_lsn, record_length FROM logged) x});
}

foreach my $before ('SELECT', 'CHECKPOINT')
{
	my ($records, $bytes, $unaware) = logged_of_load('RESET ALL', $before);
	my $leaves = $primary->safe_psql('postgres', q{SELECT count(*) FROM bt_multi_page_stats('w_u', 1, -1) WHERE type = 'l'});
	note "$before: $leaves leaves, $records records of $bytes bytes";
	cmp_ok(1900 / $leaves, '>=', 10, "$before: ten entries go to a leaf");
	is($unaware, 0, "$before: pages have the LSN of their last record");
	foreach my $settings ('SET aio.index_batch_memory = 0', 'SET aio.await_index_inserts = off')
	{
		my ($single_records, $single_bytes) = logged_of_load($settings, $before);

		note "$settings: $single_records records of $single_bytes bytes";
		is($single_records, 1900, "$before, $settings: a record for each entry");
		cmp_ok($bytes, '<=', $single_bytes, "$before, $settings: not more bytes");
		cmp_ok($records, '<=', $single_records / 3, "$before, $settings: a third of the records");
	}
}

# TIDs in the middle of posting lists, and pages with entries that are known to
# be dead, which the standby does not know of
is( $primary->safe_psql(
		'postgres', q{
	DELETE FROM t WHERE id % 3 = 0;
	VACUUM t;
	DELETE FROM t WHERE id % 3 = 1;
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	SELECT count(s) FROM (SELECT s FROM t WHERE few >= 0 ORDER BY few) x \g /dev/null
	SELECT count(s) FROM (SELECT s FROM t WHERE u IS NOT NULL ORDER BY u) x \g /dev/null
	SELECT sum(dead_items) > 5000 FROM bt_multi_page_stats('t_u', 1, -1)}),
	't', 'entries are known to be dead');
($single, $together) = split /\|/, logged('id % 3 < 2', @consistency);
cmp_ok($together, '>', 30, 'entries are logged together beside dead ones');
check_standby('posting lists and hints');

# nulls in keys that are enforced, which are not equal for that
$together = $primary->safe_psql(
	'postgres', q{
	CREATE TABLE nulls (few int, u uuid, UNIQUE (few, u) WITH (deduplicate_items = off));
	SET aio.batch_unique_keys = on;
	SELECT pg_current_wal_insert_lsn() AS start \gset
	INSERT INTO nulls SELECT few, NULL FROM source WHERE id <= 5000;
	SET synchronous_commit = on;
	SELECT count(*) FROM pg_get_wal_block_info(:'start', pg_current_wal_flush_lsn())
		WHERE relfilenode = pg_relation_filenode('nulls_few_u_key') AND resource_manager = 'Generic'});
cmp_ok($together, '>', 3, 'entries of null keys are logged together');

# keys that are enforced: new ones, and some that are there, but dead
$primary->safe_psql('postgres', "$_;\nINSERT INTO k SELECT * FROM source WHERE id % 2 = 1;\nDELETE FROM k WHERE id % 3 = 0;\n"
	  . 'INSERT INTO k SELECT * FROM source WHERE id % 3 = 0')
  foreach join(";\n", @consistency);
is($primary->safe_psql('postgres', 'SELECT count(*), count(DISTINCT u) FROM k'), '20000|20000', 'rows with keys');
my ($code, $stdout, $stderr) = $primary->psql('postgres', 'INSERT INTO k SELECT * FROM source WHERE id > 15000 OR id < 3000');
like($stderr, qr/duplicate key value violates unique constraint "k_u_key"/, 'duplicates are found');
check_standby('keys');

# crash recovery, of what has no image and of what has one
my $contents = 'SELECT count(*), sum(hashtext(t::text)::bigint) FROM t';
foreach my $before ([], ['CHECKPOINT'])
{
	logged('id % 4 = 1', @$before);
	my $expected = $primary->safe_psql('postgres', $contents);
	$primary->stop('immediate');
	$primary->start;
	is($primary->safe_psql('postgres', $contents), $expected, 'rows after a crash');
	is( $primary->safe_psql(
			'postgres', q{SELECT DISTINCT bt_index_parent_check(indexrelid, true, true)::text
			FROM pg_index WHERE indrelid IN ('t'::regclass, 'k'::regclass)}),
		'', 'indexes after a crash');
}
check_standby('after crashes');

# and the standby goes on by itself
$primary->stop;
$standby->promote;
$standby->safe_psql('postgres', 'INSERT INTO t SELECT * FROM source');
is( $standby->safe_psql(
		'postgres', q{SELECT DISTINCT bt_index_parent_check(indexrelid, true, true)::text
		FROM pg_index WHERE indrelid IN ('t'::regclass, 'k'::regclass)}),
	'', 'indexes of the standby after it has been promoted');
$standby->stop;

done_testing();
