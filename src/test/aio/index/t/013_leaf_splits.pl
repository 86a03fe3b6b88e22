# Copyright (c) 2026, the pgawait authors

# A leaf that has no room for all of its entries is split where it will be full:
# the indexes of a table that was empty, or nearly so, are as small as if they
# had been built, also on a standby and after a crash.

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
	CREATE EXTENSION amcheck;
	CREATE TABLE source AS
		SELECT n AS id, md5(n::text)::uuid AS u, repeat(md5((-n)::text), 1 + n % 9) AS s, n % 19 AS few, nullif((n * 7919) % 101, 3) AS other
		FROM generate_series(1, 40000) n;
});
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

my %indexes = (
	u => 't (u)',
	keys => 't (u, id)',
	reversed => 't (u DESC)',
	falling => 't ((id * 7919 % 40009 - 20000) DESC)',
	packed => 't (u) WITH (fillfactor = 100)',
	sparse => 't (u) WITH (fillfactor = 50)',
	texts => 't (s DESC) INCLUDE (id)',
	columns => 't (other NULLS FIRST, s, id)',
	included => 't (few) INCLUDE (id)',
	numbers => 't (few, (other::numeric))',
	few => 't (few)');

# Load rows into a table that has so many, and see how much larger its indexes
# are than new ones.
sub load
{
	my ($name, $before, %ratios) = @_;
	my $create = join(";\n", map { ($_ eq 'keys' ? 'CREATE UNIQUE' : 'CREATE') . " INDEX t_$_ ON $indexes{$_}" } sort keys %indexes);

	$primary->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS t;
		CREATE TABLE t (LIKE source);
		$create;
		INSERT INTO t SELECT * FROM source WHERE id <= $before;
		INSERT INTO t SELECT * FROM source WHERE id > $before});
	is($primary->safe_psql('postgres', q{SELECT DISTINCT bt_index_parent_check(indexrelid, true, true)::text FROM pg_index WHERE indrelid = 't'::regclass}),
		'', "$name: indexes are right");
	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', q{SELECT DISTINCT bt_index_check(indexrelid, true)::text FROM pg_index WHERE indrelid = 't'::regclass}),
		'', "$name: indexes of the standby are right");
	my $sizes = q{SELECT string_agg(indexrelid::regclass || ' ' || pg_relation_size(indexrelid) / 8192, E'\n') FROM pg_index WHERE indrelid = 't'::regclass};
	my %pages = map { split ' ' } split /\n/, $primary->safe_psql('postgres', $sizes);
	$primary->safe_psql('postgres', 'REINDEX TABLE t');
	my %built = map { split ' ' } split /\n/, $primary->safe_psql('postgres', $sizes);
	foreach my $index (sort keys %indexes)
	{
		my $most = $built{"t_$index"} * ($ratios{$index} // 1.15);

		note "$name: t_$index has " . $pages{"t_$index"} . ' pages, built ' . $built{"t_$index"};
		cmp_ok($pages{"t_$index"}, '<=', $most, "$name: t_$index is small");
	}
}

load('empty', 0);
load('300 rows', 300);
# each leaf becomes several
load('5000 rows', 5000, map { $_ => 1.5 } keys %indexes);

# crash recovery
my $contents = 'SELECT count(*), sum(hashtext(t::text)::bigint) FROM t';
foreach my $before ('', 'CHECKPOINT;')
{
	$primary->safe_psql('postgres', "TRUNCATE t; $before INSERT INTO t SELECT * FROM source");
	my $expected = $primary->safe_psql('postgres', $contents);
	$primary->stop('immediate');
	$primary->start;
	is($primary->safe_psql('postgres', $contents), $expected, 'rows after a crash');
	is($primary->safe_psql('postgres', q{SELECT DISTINCT bt_index_parent_check(indexrelid, true, true)::text FROM pg_index WHERE indrelid = 't'::regclass}),
		'', 'indexes after a crash');
}
$standby->stop;
done_testing();
