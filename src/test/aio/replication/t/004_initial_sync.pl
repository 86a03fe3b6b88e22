# Copyright (c) 2026, the pgawait authors

# A table is copied to the subscriber while its rows are updated and deleted.
# Each worker looks up ahead the rows that it will change, and no others: the
# leading worker passes over changes of the table until it has been copied, and
# the worker that copies it over those of other tables.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($method) = grep { !$methods{$_} } qw(io_uring libaio worker);
my $rows = 16000;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'autovacuum = off');
$publisher->start;
my $subscriber = create_cold_node('subscriber', $method, conf => "aio.lookup_ahead = 64\nwal_retrieve_retry_interval = 100ms");

# Keys of t and other are all over their indexes.
$_->safe_psql('postgres', q{
	CREATE TABLE t (id uuid PRIMARY KEY, v int, pad text);
	CREATE TABLE other (id uuid PRIMARY KEY, v int, pad text);
	CREATE TABLE gate (id int PRIMARY KEY)}) foreach ($publisher, $subscriber);
$publisher->safe_psql('postgres', qq{
	INSERT INTO t SELECT md5(i::text)::uuid, i, repeat('x', 200) FROM generate_series(1, $rows) i;
	INSERT INTO other SELECT md5(i::text)::uuid, i, repeat('x', 200) FROM generate_series(1, $rows) i;
	CREATE PUBLICATION pub FOR TABLE other, gate});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub WITH (streaming = off)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');

sub contents
{
	my ($node) = @_;
	return join "\n", map { $node->safe_psql('postgres', "SELECT '$_', count(*), sum(hashtext(r::text)::bigint) FROM $_ r") } qw(t other gate);
}

# What the workers have looked up.
sub lookups
{
	return $subscriber->safe_psql('postgres', q{
		SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE backend_type = 'background worker' AND kind = 'lookup'});
}

# Pages of a table and its index that have been read, as far as it is reported.
sub pages_read
{
	my ($table) = @_;
	return $subscriber->safe_psql('postgres', "SELECT heap_blks_read + idx_blks_read FROM pg_statio_user_tables WHERE relname = '$table'");
}

sub evict
{
	return $subscriber->safe_psql('postgres', 'CHECKPOINT; SELECT FROM pg_buffercache_evict_all()');
}

# A worker waits for a transaction, or for the other worker.
sub wait_for_worker
{
	my ($type, $event) = @_;
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'logical replication $type worker' AND wait_event = '$event'")
	  or die "the $type worker does not wait for $event";
	return;
}

# A worker reports what it has done when it is idle, or ends.
sub wait_for_changes
{
	my ($table, $updates, $deletions) = @_;
	$publisher->wait_for_catchup('sub');
	$subscriber->poll_query_until('postgres', "SELECT n_tup_upd = $updates AND n_tup_del = $deletions FROM pg_stat_user_tables WHERE relname = '$table'")
	  or die "changes of $table are not reported";
	return;
}

sub state_of_t
{
	return $subscriber->safe_psql('postgres', q{SELECT srsubstate FROM pg_subscription_rel WHERE srrelid = 't'::regclass});
}

# Changes of rows that have not been picked before, in random order.
my $picked = 0;
sub by_id
{
	my ($verb, $table, $n, $what) = @_;
	my $numbers = "(SELECT (i * 7919 % $rows + 1)::text AS i FROM generate_series($picked + 1, $picked + $n) i)";
	$picked += $n;
	return $verb eq 'DELETE' ? "DELETE FROM $table r USING $numbers p WHERE r.id = md5(p.i)::uuid;" : "UPDATE $table r SET $what FROM $numbers p WHERE r.id = md5(p.i)::uuid;";
}

# Rows that are in the way of the copy's last one, and of the leading worker.
my ($copy, @gates) = map { $subscriber->background_psql('postgres') } 0 .. 2;
$copy->query_safe("BEGIN; INSERT INTO t VALUES (md5('$rows')::uuid)");
$gates[$_]->query_safe("BEGIN; INSERT INTO gate VALUES ($_)") foreach 0, 1;
$publisher->safe_psql('postgres', 'ALTER PUBLICATION pub ADD TABLE t');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub REFRESH PUBLICATION');
wait_for_worker('tablesync', 'transactionid');

# The leading worker has changes of both tables, and applies those of one.
evict();
my $before = lookups();
$publisher->safe_psql('postgres', "BEGIN; $_ COMMIT") foreach (
	by_id('UPDATE', 'other', 500, 'v = -v') . by_id('UPDATE', 't', 1000, "pad = repeat('y', 200)"),
	by_id('UPDATE', 'other', 500, 'v = -v') . by_id('DELETE', 't', 1000),
	by_id('UPDATE', 't', 500, 'id = md5(p.i || $$ again$$)::uuid') . by_id('DELETE', 'other', 500),
	"UPDATE t SET v = -v WHERE pad LIKE 'y%';");
wait_for_changes('other', 1000, 500);
cmp_ok(lookups() - $before, '>', 200, 'the leading worker looks up rows of a table that is ready');
is(state_of_t(), 'd', 'the other table is being copied');
is(pages_read('t'), 0, 'the leading worker looks up nothing in it');

# The leading worker waits in a transaction, and has the beginning of another
# one.  When it goes on, the other worker catches up with the first one.
$publisher->safe_psql('postgres', "INSERT INTO gate VALUES (0)");
$publisher->safe_psql('postgres', "BEGIN; INSERT INTO gate VALUES (1); @{[ by_id('UPDATE', 't', 1000, 'v = v + 100000') ]} COMMIT");
wait_for_worker('apply', 'transactionid');
$publisher->poll_query_until('postgres', q{
	SELECT r.sent_lsn >= pg_current_wal_lsn() OR a.wait_event = 'WalSenderWriteData'
	  FROM pg_stat_replication r JOIN pg_stat_activity a USING (pid) WHERE r.application_name = 'sub'})
  or die 'no more is sent than fits into a socket';
$copy->query_safe('ROLLBACK');
wait_for_worker('tablesync', 'LogicalSyncStateChange');
evict();
my $other = pages_read('other');
$before = lookups();
$gates[0]->query_safe('ROLLBACK');
$subscriber->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'logical replication tablesync worker'})
  or die 'the table is not synchronized';
cmp_ok(lookups() - $before, '>', 500, 'the worker that has copied the table looks up its rows');
is(pages_read('other'), $other, 'it looks up nothing in tables that others apply changes of');

# The other transaction is applied by the leading worker, which has not noted
# yet that the table is ready.
wait_for_worker('apply', 'transactionid');
is(state_of_t(), 's', 'the table has been synchronized');
evict();
$before = lookups();
$gates[1]->query_safe('ROLLBACK');
wait_for_changes('t', 3500, 1000);
cmp_ok(lookups() - $before, '>', 200, 'the leading worker looks up rows of a table that it did not copy');

# From then on it applies all changes.
$publisher->safe_psql('postgres', by_id('DELETE', 't', 500) . by_id('UPDATE', 't', 500, 'v = -v'));
$publisher->wait_for_catchup('sub');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub DISABLE');
$subscriber->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker'})
  or die 'workers do not end';
is(state_of_t(), 'r', 'the table is ready');
is(contents($subscriber), contents($publisher), 'all is applied');
check_log($subscriber, 'subscriber');

$_->quit foreach ($copy, @gates);
$subscriber->stop;
$publisher->stop;
done_testing();
