# Copyright (c) 2026, the pgawait authors

# A server without our changes replays the WAL of ours: after a crash, and as a
# standby that compares each page.  AIO_REFERENCE names its installation, such as
# build/stock.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $stock = $ENV{AIO_REFERENCE};
plan skip_all => 'AIO_REFERENCE names no installation without our changes' unless $stock;

my $primary = create_quiet_primary(conf => "wal_consistency_checking = 'all'\n");
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION amcheck;
	CREATE TABLE source AS
		SELECT n AS id, repeat(md5(n::text), 1 + n % 20) AS s, n % 19 AS few, ARRAY[n % 7, n * 7919 % 3000, -n] AS ints,
			point(n * 7919 % 10007, n * 31 % 10009) AS p
		FROM generate_series(1, 12000) n;
	CREATE TABLE t (LIKE source);
	CREATE INDEX t_s ON t (s DESC, id);
	CREATE INDEX t_few ON t (few);
	CREATE INDEX t_ints ON t USING gin (ints) WITH (fastupdate = off);
	CREATE INDEX t_hash ON t USING hash (s);
	CREATE INDEX t_p ON t USING gist (p);
	CREATE TABLE k (id int, s text UNIQUE);
	INSERT INTO t SELECT * FROM source WHERE id % 3 = 0});

# That server, started on a copy of the files of ours.
sub start_stock
{
	my ($name, $backup, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $stock);

	$node->init_from_backup($primary, $backup, %options);
	$node->start;
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name LIKE 'aio.%'}), '0', "$name: a server without our changes");
	return $node;
}

# What is found by each index, and by scans of the table.
my @conditions = ("s > 'c'", 'few = 7', 'ints @> ARRAY[77]', q{s = repeat(md5('77'), 18)}, q{p <@ box '(100,100),(5000,3000)'});

sub found
{
	my ($node, $by_index) = @_;
	my $settings = join '', map { "SET enable_$_ = " . ($by_index == ($_ ne 'seqscan') ? 'on' : 'off') . ';' } 'seqscan', 'indexscan', 'bitmapscan';

	return $node->safe_psql('postgres', $settings . join ';', map { "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t WHERE $_" } @conditions);
}

my $rows = q{SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t UNION ALL SELECT count(*), sum(hashtextextended(k::text, 0)) FROM k};

# The rows are those that ours had, and the indexes are right.
sub check
{
	my ($node, $name, $expected, $how) = @_;

	is($node->safe_psql('postgres', $rows), $expected, "$name: rows") if defined $expected;
	is($node->safe_psql('postgres', qq{SELECT DISTINCT ${how}::text FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		WHERE indrelid IN ('t'::regclass, 'k'::regclass) AND amname = 'btree'}), '', "$name: btree indexes are right");
	is($node->safe_psql('postgres', q{SELECT gin_index_check('t_ints')}), '', "$name: so is that of GIN");
	is(found($node, 1), found($node, 0), "$name: what is found by indexes");
}

# Load batches, and return the rows that there are then.
sub load
{
	my ($name) = @_;

	my $entries = $primary->safe_psql('postgres', q{
		SELECT coalesce(sum(entries), 0) AS entries FROM pg_stat_aio_relation \gset
		INSERT INTO t SELECT * FROM source ORDER BY hashint4(id);
		INSERT INTO t SELECT id, s, few, ints, p FROM source WHERE few < 9;
		DELETE FROM t WHERE id % 5 = 0;
		VACUUM t;
		COPY (SELECT * FROM source) TO '} . $primary->basedir . q{/rows';
		COPY t FROM '} . $primary->basedir . q{/rows';
		UPDATE t SET few = few + 1, s = s || 'x' WHERE id % 4 = 0;
		INSERT INTO k SELECT id, s FROM source ON CONFLICT DO NOTHING;
		UPDATE k SET s = s || id;
		SELECT pg_stat_force_next_flush() \g /dev/null
		SELECT sum(entries) - :entries FROM pg_stat_aio_relation});
	cmp_ok($entries, '>', 100_000, "$name: entries are collected");
	return $primary->safe_psql('postgres', $rows);
}

# a standby, which compares what it makes of each record with the page that is in it
$primary->backup('backup');
my $standby = start_stock('standby', 'backup', has_streaming => 1);
my $expected = load('for a standby');
$primary->wait_for_replay_catchup($standby);
check($standby, 'standby', $expected, 'bt_index_check(indexrelid, true)');

# crash recovery, of what has no image of each page
$primary->safe_psql('postgres', "ALTER SYSTEM SET wal_consistency_checking = ''; SELECT pg_reload_conf(); CHECKPOINT");
$expected = load('before a crash');
$primary->wait_for_replay_catchup($standby);
check($standby, 'standby without images', $expected, 'bt_index_check(indexrelid, true)');
$primary->stop('immediate');
$primary->backup_fs_cold('crashed');
my $crashed = start_stock('crashed', 'crashed');
check($crashed, 'crashed', $expected, 'bt_index_parent_check(indexrelid, true, true)');
like(slurp_file($crashed->logfile), qr/redo done at/, 'crashed: WAL has been replayed');

# both go on from there
$standby->promote;
foreach my $node ($crashed, $standby)
{
	my $name = $node->name;

	$node->safe_psql('postgres', 'INSERT INTO t SELECT * FROM source; VACUUM t; INSERT INTO k SELECT -id, -id FROM source');
	check($node, "$name, later", undef, 'bt_index_parent_check(indexrelid, true, true)');
	check_log($node, $name);
	$node->stop;
}

done_testing();
