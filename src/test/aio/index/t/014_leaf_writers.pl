# Copyright (c) 2026, the pgawait authors

# Several sessions split the same leaves, while rows are deleted, VACUUM removes
# leaves, and scans of indexes find what scans of the table find.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# rows of a transaction, and transactions of a session
my ($rows, $transactions) = (1500, 10);

my $primary = create_quiet_primary(conf => "wal_keep_size = 8GB\n");
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

my @indexes = qw(t_id t_u t_few t_s);
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION amcheck;
	CREATE SEQUENCE ids CACHE 100;
	CREATE TABLE t (id int, u uuid, few int, s text);
	CREATE INDEX t_id ON t (id);
	CREATE INDEX t_u ON t (u);
	CREATE INDEX t_few ON t (few) INCLUDE (id);
	CREATE INDEX t_s ON t (s DESC, few);
	CREATE TABLE ledger (rows int)});

# Each notes by how many rows it has changed the table.  Those of a fixed part
# of all keys come together, so that leaves fill up in turn.
my $load = qq{
	\\set part random(0, 15)
	BEGIN;
	INSERT INTO t
		SELECT id, overlay(md5(id::text) PLACING to_hex(:part) FROM 1 FOR 1)::uuid, id % 7, repeat(md5(id::text), 1 + id % 9)
		FROM (SELECT nextval('ids')::int AS id FROM generate_series(1, $rows)) AS new;
	INSERT INTO ledger VALUES ($rows);
};
my %scripts = (
	load => "${load}END;\n",
	abort => "${load}ROLLBACK;\n",
	delete => q{
	\set part random(0, 15)
	BEGIN;
	SELECT pg_advisory_xact_lock(1);
	WITH gone AS (DELETE FROM t WHERE u >= overlay(repeat('0', 32) PLACING to_hex(:part) FROM 1 FOR 1)::uuid
		AND u <= overlay(repeat('f', 32) PLACING to_hex(:part) FROM 1 FOR 1)::uuid AND id % 10 < 9 RETURNING 1)
	INSERT INTO ledger SELECT -count(*) FROM gone;
	END;
},
	vacuum => "VACUUM (INDEX_CLEANUP on, TRUNCATE off) t;\n",
	compare => q{
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	SELECT count(*) AS by_u FROM t WHERE u >= '00000000-0000-0000-0000-000000000000' \gset
	SELECT count(*) AS by_few FROM t WHERE few >= 0 \gset
	SELECT sum(rows) AS expected FROM ledger \gset
	SELECT 1 / (:by_u = :expected AND :by_few = :expected)::int;
	END;
});
my $dir = PostgreSQL::Test::Utils::tempdir;
my @options;
foreach my $name (sort keys %scripts)
{
	my $file = "$dir/$name.sql";
	my $weight = $name eq 'load' ? 6 : 1;

	append_to_file($file, $scripts{$name});
	push @options, '--file' => "$file\@$weight";
}
$primary->safe_psql('postgres', 'INSERT INTO ledger VALUES (0)');

# All leaves may be full of entries of transactions that are still running.
$primary->command_ok(
	[ 'pgbench', '--no-vacuum', '--client' => 6, '--transactions' => $transactions, '--random-seed' => 1, @options, 'postgres' ],
	'sessions that load, delete, vacuum and compare');

is($primary->safe_psql('postgres', 'SELECT count(*) FROM t'), $primary->safe_psql('postgres', 'SELECT sum(rows) FROM ledger'), 'no row is lost');
$primary->wait_for_replay_catchup($standby);
foreach my $index (@indexes)
{
	is($primary->safe_psql('postgres', "SELECT bt_index_parent_check('$index', true, true)"), '', "$index is right");
	is($standby->safe_psql('postgres', "SELECT bt_index_check('$index', true)"), '', "$index of the standby is right");
}

cmp_ok($primary->safe_psql('postgres', q{SELECT sum(entries) / sum(leaf_visits) FROM pg_stat_aio_relation WHERE relname = 't'}),
	'>', 2, 'leaves got several entries at once');
check_log($primary, 'primary');
$standby->stop;
done_testing();
