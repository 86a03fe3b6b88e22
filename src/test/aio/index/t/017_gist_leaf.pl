# Copyright (c) 2026, the pgawait authors

# Entries that are put into a leaf of a GiST index together: that the index finds
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

my $primary = create_quiet_primary();
# enough for tasks
$primary->append_conf('postgresql.conf', 'shared_buffers = 16MB');
$primary->restart;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION btree_gist;
	CREATE EXTENSION pg_walinspect;

	-- points all over the plane, on a line, in few places, far away, and none
	CREATE TABLE source AS
		SELECT n AS id,
			CASE n % 20 WHEN 3 THEN NULL WHEN 4 THEN point(n, n) WHEN 5 THEN point(500, n % 3)
				WHEN 6 THEN point(n * 1e6, -n * 1e6)
				ELSE point(hashint4(n) % 100000 / 100.0, hashint4(n + 1000000) % 100000 / 100.0) END AS p,
			int4range(n * 7919 % 5000, n * 7919 % 5000 + n % 40) AS r,
			(SELECT string_agg(md5((n * 31 % 3000 + i * 10000)::text), '') FROM generate_series(1, 1 + 20 * (n % 10 / 5)) i) AS w
		FROM generate_series(1, 6000) n;
	CREATE TABLE t (LIKE source);
	INSERT INTO t SELECT * FROM source WHERE id % 4 > 0;
	CREATE INDEX t_p ON t USING gist (p);
	CREATE INDEX t_include ON t USING gist (point(p[1], p[0])) INCLUDE (id);
	CREATE INDEX t_multi ON t USING gist (p, r);
	-- few fit into a page, so there are many levels
	CREATE INDEX t_wide ON t USING gist (w);
	CREATE INDEX t_part ON t USING gist (p, box(p, p)) WHERE id % 3 = 0;
	VACUUM ANALYZE t;

	-- what is found in some places, by index or without
	CREATE TABLE boxes AS
		SELECT box(point(x, y), point(x + size, y + size)) AS b, int4range(x + 1500, x + 1500 + size) AS span
		FROM generate_series(-1000, 900, 703) x, generate_series(-1000, 900, 703) y, (VALUES (3), (100), (2000)) v (size)
		UNION ALL SELECT box(point(1e6, -1e10), point(1e10, 0)), '[0,10000]';
	CREATE FUNCTION found(by_index boolean) RETURNS TABLE (what text, boxes bigint, ids bigint) LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM set_config(name, (CASE name WHEN 'enable_seqscan' THEN NOT by_index ELSE by_index END)::text, true)
			FROM unnest('{enable_seqscan,enable_indexscan,enable_indexonlyscan,enable_bitmapscan}'::text[]) name;
		RETURN QUERY
		SELECT 'p', count(*), sum(hashtext(concat(b, n, s)))::bigint FROM boxes,
			LATERAL (SELECT count(*) AS n, sum(id) AS s FROM t WHERE p <@ b) x
		UNION ALL
		SELECT 'include', count(*), sum(hashtext(concat(b, n, s)))::bigint FROM boxes,
			LATERAL (SELECT count(*) AS n, sum(id) AS s FROM t WHERE point(p[1], p[0]) <@ b) x
		UNION ALL
		SELECT 'multi', count(*), sum(hashtext(concat(b, n, s)))::bigint FROM boxes,
			LATERAL (SELECT count(*) AS n, sum(id) AS s FROM t WHERE p <@ b AND r && span) x
		UNION ALL
		SELECT 'part', count(*), sum(hashtext(concat(b, n, s)))::bigint FROM boxes,
			LATERAL (SELECT count(*) AS n, sum(id) AS s FROM t WHERE p <@ b AND box(p, p) && b AND id % 3 = 0) x
		UNION ALL
		SELECT 'wide', count(*), sum(hashtext(concat(i, n, s)))::bigint FROM generate_series(1, 6000, 173) i,
			LATERAL (SELECT count(*) AS n, sum(id) AS s FROM t WHERE w = (SELECT source.w FROM source WHERE source.id = i)) x
		UNION ALL
		SELECT 'range', count(*), sum(hashtext(concat(span, n, s)))::bigint FROM boxes,
			LATERAL (SELECT count(*) AS n, sum(id) AS s FROM t WHERE p IS NULL AND r && span) x;
		RETURN QUERY SELECT 'nulls', count(*), sum(id)::bigint FROM t WHERE p IS NULL;
	END $$;
});

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

sub check
{
	my ($node, $name) = @_;

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
	is( $standby->safe_psql('postgres', 'SELECT * FROM found(true)'),
		$primary->safe_psql('postgres', 'SELECT * FROM found(true)'),
		"$name: what is found on the standby");
}

# Insert rows, and return what was logged of an index in the meantime: records
# of a page that is changed, of one that is split, and bytes.
sub logged
{
	my ($index, $rows, @before) = @_;

	return split /\|/, $primary->safe_psql('postgres',
		join('', map { "$_;\n" } @before) . qq{
		SELECT pg_current_wal_insert_lsn() AS start \\gset
		INSERT INTO t SELECT * FROM source WHERE $rows;
		SET synchronous_commit = on;
		SELECT count(*) FILTER (WHERE record_type = 'PAGE_UPDATE'), count(*) FILTER (WHERE record_type = 'PAGE_SPLIT'),
			sum(block_data_length)
		FROM pg_get_wal_block_info(:'start', pg_current_wal_flush_lsn())
		WHERE relfilenode = pg_relation_filenode('$index') AND resource_manager = 'Gist'});
}

my @consistency = ("SET wal_consistency_checking = 'all'");
my @one_by_one = ('SET aio.index_batch_memory = 0');

my @suspended = ('SET aio.debug_suspend = on');

logged('t_p', 'id % 4 = 0', @consistency, 'CHECKPOINT');
check_both('images');
my ($updates) = logged('t_p', 'id % 4 = 1', @consistency, @suspended);
my ($updates3) = logged('t_p', 'id % 4 = 2', @one_by_one);
# as many rows as there are before entries are collected are inserted one by one
cmp_ok($updates - 1000, '<', 500 / 3, 'entries are logged together');
cmp_ok($updates3, '>=', 1500, 'with no batch, none are');
check_both('changes');
like($primary->safe_psql('postgres', join(";\n", @suspended,
	q{EXPLAIN (ANALYZE, AIO, COSTS OFF) INSERT INTO t SELECT * FROM source WHERE id % 4 = 3})),
	qr/Index t_wide: entries=500 .* suspended=[1-9]/, 'entries are inserted by tasks');
check_both('tasks that are suspended');

# an index that is empty, whose leaves are split all the time
$primary->safe_psql('postgres', join(";\n", @consistency, 'TRUNCATE t', 'INSERT INTO t SELECT * FROM source'));
check_both('an empty index');

# equal points, more than a leaf has room for
$primary->safe_psql('postgres', join(";\n", @consistency,
	q{INSERT INTO t SELECT -id, '(7,7)', r FROM source}));
check_both('equal points');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id < 0; VACUUM t');

# several at a time, and scans meanwhile
my @sessions = map { $primary->background_psql('postgres', on_error_stop => 1) } 1 .. 3;
foreach my $i (0 .. $#sessions)
{
	$sessions[$i]->query_until(qr/begun/, "SET aio.debug_suspend = on;\n\\echo begun\nINSERT INTO t SELECT * FROM source WHERE id <= 3000 ORDER BY id % " . (7 + $i) . ", id;\n");
}
my $lost = 0;
for (1 .. 5)
{
	# rows that have been there all the time
	$lost++ if $primary->safe_psql('postgres', q{
		SET enable_seqscan = off;
		SELECT count(*) < 5700 FROM t WHERE p <@ box '(-1e11,-1e11),(1e11,1e11)'}) eq 't';
}
is($lost, 0, 'scans find what has been there all the time');
ok($_->quit, 'a session has inserted its rows') foreach @sessions;
is($primary->safe_psql('postgres', 'SELECT count(*) FROM t'), 6000 + 3 * 3000, 'all rows are in');
check_both('several sessions');

# splits that are left incomplete, by errors
my @serializable = map { $primary->background_psql('postgres', on_error_stop => 0) } 1 .. 3;
foreach my $i (0 .. $#serializable)
{
	$serializable[$i]->query_until(qr/begun/, "SET aio.debug_suspend = on;\nSET default_transaction_isolation = serializable;\n\\echo begun\n"
		. join('', map { "INSERT INTO t SELECT -id, p, r, w FROM source WHERE p <@ box '(-900,-900),(900,900)' AND w IN (SELECT w FROM t WHERE w > 'f') OR id % 29 = $_;\n" } (1 .. 4)));
}
$_->quit foreach @serializable;
check_both('serializable sessions');
$primary->safe_psql('postgres', 'DELETE FROM t WHERE id < 0; VACUUM t');

# leaves that are empty, deleted, and used again
$primary->safe_psql('postgres', 'DELETE FROM t WHERE p[0] BETWEEN 100 AND 900 OR id % 5 = 0');
$primary->safe_psql('postgres', 'VACUUM t');
logged('t_p', 'id % 3 = 0', @consistency);
check_both('after VACUUM');

# nothing is logged, and NSNs are made up
$primary->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE u (LIKE source);
	CREATE INDEX u_p ON u USING gist (p);
	INSERT INTO u SELECT * FROM source;
	INSERT INTO u SELECT * FROM source});
is( $primary->safe_psql('postgres', q{
	SET enable_seqscan = off;
	SELECT count(*), sum(id) FROM u WHERE p <@ box '(-1e11,-1e11),(1e11,1e11)'}),
	$primary->safe_psql('postgres', 'SELECT count(*), sum(id) FROM u WHERE p IS NOT NULL'),
	'an unlogged table');

# an access method that is another one in name only
$primary->safe_psql('postgres', q{
	CREATE ACCESS METHOD other TYPE INDEX HANDLER gisthandler;
	CREATE OPERATOR CLASS points DEFAULT FOR TYPE point USING other AS STORAGE box, OPERATOR 28 <@ (point, box),
		FUNCTION 1 gist_point_consistent(internal, point, smallint, oid, internal), FUNCTION 2 gist_box_union(internal, internal),
		FUNCTION 3 gist_point_compress(internal), FUNCTION 5 gist_box_penalty(internal, internal, internal),
		FUNCTION 6 gist_box_picksplit(internal, internal), FUNCTION 7 gist_box_same(box, box, internal),
		FUNCTION 11 gist_point_sortsupport(internal);
	CREATE TABLE o (LIKE source);
	CREATE INDEX o_p ON o USING other (p) WITH (buffering = on);
	INSERT INTO o SELECT * FROM source});
is( $primary->safe_psql('postgres', q{
	SET enable_seqscan = off;
	SELECT count(*), sum(id) FROM o WHERE p <@ box '(-500,-500),(500,500)'}),
	$primary->safe_psql('postgres', q{SELECT count(*), sum(id) FROM source WHERE p <@ box '(-500,-500),(500,500)'}),
	'an access method that borrows the functions');

# crash recovery, of what has no image and of what has one
my $contents = 'SELECT count(*), sum(hashtext(t::text)::bigint) FROM t';
foreach my $before ([], ['CHECKPOINT'])
{
	logged('t_p', 'id % 4 = 1', @$before);
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
