# Copyright (c) 2026, the pgawait authors

# A subscription's worker that only inserts finds nothing to look up ahead, and
# stops keeping messages, although it had to wait for pages.

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

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'autovacuum = off');
$publisher->start;
my $subscriber = create_cold_node('subscriber', $method);
$subscriber->append_conf('postgresql.conf', "aio.lookup_ahead = 64\nwork_mem = 4MB");
$subscriber->restart;

# The keys of t are all over its index, which does not fit into memory.
$_->safe_psql('postgres', q{
	CREATE TABLE t (id uuid PRIMARY KEY, n int, pad text);
	CREATE TABLE small (id int PRIMARY KEY, pad text)}) foreach ($publisher, $subscriber);
$publisher->safe_psql('postgres', q{
	INSERT INTO t SELECT md5(i::text)::uuid, i, repeat('x', 100) FROM generate_series(1, 60000) i;
	CREATE PUBLICATION pub FOR TABLE t, small});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub WITH (streaming = off)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');

# Bytes of the messages that a worker keeps, when it waits in the middle of a
# transaction whose changes behind that have all come.
my $waits = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker' AND wait_event = 'transactionid'};
my $key = 0;
sub kept
{
	my ($before, $behind) = @_;
	my @keys = ($key + 1, $key + 2);
	my @locks = map { $subscriber->background_psql('postgres') } @keys;

	$key += 2;
	$locks[$_]->query_safe("BEGIN; INSERT INTO small VALUES ($keys[$_])") foreach 0, 1;
	$publisher->safe_psql('postgres', "BEGIN; $before; INSERT INTO small VALUES ($keys[0]), ($keys[1]); $behind; COMMIT");
	# what has come is noticed when the worker goes on
	$subscriber->poll_query_until('postgres', $waits) or die 'the worker does not wait';
	$publisher->poll_query_until('postgres', q{SELECT sent_lsn >= pg_current_wal_lsn() FROM pg_stat_replication WHERE application_name = 'sub'})
	  or die 'not all is sent';
	$locks[0]->query_safe('ROLLBACK');
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks w JOIN pg_locks h USING (transactionid) WHERE NOT w.granted AND h.granted
		AND h.pid = " . $locks[1]->query_safe('SELECT pg_backend_pid()')) or die 'the worker does not wait again';

	my $offset = -s $subscriber->logfile;
	$subscriber->safe_psql('postgres', q{SELECT pg_log_backend_memory_contexts(pid) FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker'});
	$subscriber->wait_for_log(qr/Grand total: /, $offset);
	my ($bytes) = slurp_file($subscriber->logfile, $offset) =~ /messages ahead: .*? (\d+) used/;
	$locks[1]->query_safe('ROLLBACK');
	$_->quit foreach @locks;
	$publisher->wait_for_catchup('sub');
	return $bytes // 0;
}

my $n = 100000;
sub inserts
{
	my ($rows, $table, $width) = @_;

	$n += $rows;
	my $columns = $table eq 't' ? 'md5(i::text)::uuid, i' : 'i';
	return "INSERT INTO $table SELECT $columns, repeat('x', $width) FROM generate_series($n - $rows + 1, $n) i";
}
# few enough for a socket, and more than what is kept without need
my $bytes = 20 * 1000;
my $behind = sub { inserts(40, 'small', 1000) };

# Inserts that wait for pages have it keep messages, for a while.
$subscriber->safe_psql('postgres', 'CHECKPOINT; SELECT FROM pg_buffercache_evict_all()');
my $used = kept(inserts(40, 't', 10), $behind->());
cmp_ok($used, '>', $bytes, 'messages are kept when pages have been waited for');

# Then many that find nothing to look up, and wait for nothing in the end.
$publisher->safe_psql('postgres', inserts(200, 't', 10));
$publisher->wait_for_catchup('sub');
$used = kept(inserts(1000, 'small', 10), $behind->());
cmp_ok($used, '<', $bytes, 'a worker that only inserts stops keeping messages');
cmp_ok($used, '>', 0, 'it had done so');

is($subscriber->safe_psql('postgres', 'SELECT count(*), sum(n), sum(length(pad)) FROM t'), $publisher->safe_psql('postgres', 'SELECT count(*), sum(n), sum(length(pad)) FROM t'),
	'all is applied');

$subscriber->stop;
$publisher->stop;
done_testing();
