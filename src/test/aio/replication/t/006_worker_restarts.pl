# Copyright (c) 2026, the pgawait authors

# A subscription's worker that has been started again confirms to the publisher
# only what is on disk, also if that was committed asynchronously by the worker
# before.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->start;

# nobody else flushes WAL
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf(
	'postgresql.conf', q{
	aio.wal_write_ahead = 0
	autovacuum = off
	bgwriter_delay = 10s
	checkpoint_timeout = 1h
	wal_retrieve_retry_interval = 100ms
	wal_writer_delay = 10s
	wal_writer_flush_after = 0
});
$subscriber->start;

$_->safe_psql('postgres', 'CREATE TABLE t (i int PRIMARY KEY)') foreach $publisher, $subscriber;
$publisher->safe_psql('postgres', 'CREATE PUBLICATION pub FOR TABLE t');
$subscriber->safe_psql('postgres',
	q{CREATE SUBSCRIPTION sub CONNECTION '} . $publisher->connstr . q{ dbname=postgres' PUBLICATION pub WITH (synchronous_commit = off)});
$subscriber->wait_for_subscription_sync($publisher, 'sub');
$subscriber->safe_psql('postgres', 'CHECKPOINT');

# The worker has applied something, and ends.
my $worker = q{SELECT pid FROM pg_stat_subscription WHERE worker_type = 'apply' AND pid IS NOT NULL};
my $pid = $subscriber->safe_psql('postgres', $worker);
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (1)');
my $end = $publisher->lsn('write');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM t'), 'a row is there');
$subscriber->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok($subscriber->poll_query_until('postgres', "SELECT pid <> $pid FROM ($worker) w"), 'another worker has been started');
ok($publisher->poll_query_until('postgres', "SELECT confirmed_flush_lsn >= '$end' FROM pg_replication_slots"), 'it has confirmed the row');

# what is confirmed stays
$subscriber->stop('immediate');
$subscriber->start;
$publisher->safe_psql('postgres', 'INSERT INTO t VALUES (2)');
ok($subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM t WHERE i = 2'), 'the next row comes after a crash');
is($subscriber->safe_psql('postgres', 'SELECT string_agg(i::text, $$ $$ ORDER BY i) FROM t'), '1 2', 'and the one before is still there');

$subscriber->stop;
$publisher->stop;
done_testing();
