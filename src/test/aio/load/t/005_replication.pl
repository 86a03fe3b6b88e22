
# Copyright (c) 2026, the pgawait authors

# What interleaved index inserts write to the WAL is replayed by a standby,
# which compares each page with the primary's; and a subscriber inserts into
# indexes of its own.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = create_loaded_node(
	'primary', 'worker',
	allows_streaming => 'logical',
	conf => 'wal_consistency_checking = all');

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

my $subscriber = create_loaded_node('subscriber', 'worker');
$subscriber->safe_psql('postgres', 'TRUNCATE load, ledger');

# interleave wherever possible
if (can_shuffle($primary))
{
	foreach my $node ($primary, $subscriber)
	{
		$node->append_conf('postgresql.conf', "aio.debug_suspend = on\naio.debug_rows_before_batch = 0");
		$node->restart;
	}
}

$primary->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE load, ledger');
$subscriber->safe_psql('postgres',
		q{CREATE SUBSCRIPTION sub CONNECTION '}
	  . $primary->connstr
	  . q{ dbname=postgres' PUBLICATION pub});
$subscriber->wait_for_subscription_sync($primary, 'sub');
check_table($subscriber, 'subscriber, after the first copy');

command_ok([ pgbench_command($primary, '--transactions' => 8) ], 'load');
check_table($primary, 'primary');
$primary->wait_for_catchup('sub');
check_table($subscriber, 'subscriber');
$primary->wait_for_replay_catchup($standby);

my $contents =
  q{SELECT count(*), sum(hashtext(load::text)::bigint) FROM load};
my $expected = $primary->safe_psql('postgres', $contents);
is($subscriber->safe_psql('postgres', $contents),
	$expected, 'subscriber has the same rows');
is($standby->safe_psql('postgres', $contents),
	$expected, 'standby has the same rows');
is( $standby->safe_psql(
		'postgres', q{
		SELECT count(*), count(bt_index_check(indexrelid, true, indisunique))
		  FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
		 WHERE indrelid = 'load'::regclass AND amname = 'btree'}),
	'3|3',
	"standby's btree indexes are sound and complete");

# the standby goes on by itself
$standby->promote;
command_ok([ pgbench_command($standby, '--transactions' => 4) ],
	'load after promotion');
check_table($standby, 'promoted standby');

# a conflict stops the subscription, with an error that says where
my $offset = -s $subscriber->logfile;
$subscriber->safe_psql('postgres',
	q{INSERT INTO load (slot, words) VALUES (-1, '{mine}'); INSERT INTO ledger VALUES (6, 1)});
$primary->safe_psql('postgres',
	q{INSERT INTO load (slot, words) VALUES (-2, '{first}'), (-1, '{theirs}')});
$subscriber->wait_for_log(
	qr/conflict detected on relation "public.load": conflict=(insert_exists|multiple_unique_conflicts).*Key already exists in unique index "load_slot_key"/s,
	$offset);
$subscriber->safe_psql('postgres', 'DELETE FROM load WHERE slot = -1');
$primary->wait_for_catchup('sub');
is( $subscriber->safe_psql(
		'postgres', 'SELECT words FROM load WHERE slot < 0 ORDER BY slot'),
	"{first}\n{theirs}",
	'and it goes on when the conflict is gone');

foreach my $node ($primary, $standby, $subscriber)
{
	check_log($node, $node->name);
	$node->stop;
}
done_testing();
