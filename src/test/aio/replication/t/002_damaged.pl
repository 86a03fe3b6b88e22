# Copyright (c) 2026, the pgawait authors

# A page that a change needs cannot be read: transactions before that one are
# applied, although it has been looked up ahead.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', 'autovacuum = off');
$publisher->start;
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', 'autovacuum = off');
$subscriber->start;
plan skip_all => 'lookups can be forced only in a build with assertions'
  unless $subscriber->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
plan skip_all => 'extension pageinspect is not installed' unless $subscriber->check_extension('pageinspect');

$_->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v int)') foreach ($publisher, $subscriber);
$publisher->safe_psql('postgres', 'INSERT INTO t SELECT i, i FROM generate_series(1, 20000) i; CREATE PUBLICATION pub FOR TABLE t');
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub WITH (disable_on_error = on)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub DISABLE; CREATE EXTENSION pageinspect; CHECKPOINT');

# A leaf that only the last one needs.
my $changes = 40;
my ($key, $file) = split /\|/, $subscriber->safe_psql('postgres', q{
	SELECT ('x' || string_agg(b, '' ORDER BY n DESC))::bit(32)::int, pg_relation_filepath('t_pkey')
		FROM bt_page_items('t_pkey', 30) i, LATERAL regexp_split_to_table(left(data, 11), ' ') WITH ORDINALITY s (b, n)
		WHERE itemoffset = 3 GROUP BY itemoffset});
$publisher->safe_psql('postgres', join ';', map { "UPDATE t SET v = -1 WHERE id = $_" } 1 .. $changes, $key);

$subscriber->stop;
open my $handle, '+<:raw', $subscriber->data_dir . "/$file" or die "$file: $!";
seek $handle, 8192 * 30 + 4000, 0;
print $handle 'damage' x 10;
close $handle;
$subscriber->append_conf('postgresql.conf', "aio.debug_lookups = 64\naio.debug_seed = 1");
$subscriber->start;

$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub ENABLE');
$subscriber->poll_query_until('postgres', 'SELECT NOT subenabled FROM pg_subscription') or die 'nothing fails';
is($subscriber->safe_psql('postgres', 'SET enable_indexscan = off; SELECT count(*) FROM t WHERE v = -1'), $changes, 'all changes before have been applied');
my $log = slurp_file($subscriber->logfile);
like($log, qr/ERROR:  invalid page in block 30 of relation/, 'the last one has met the page');
unlike($log, qr/WARNING:|PANIC|TRAP/, 'nothing else is wrong');

$subscriber->stop;
$publisher->stop;
done_testing();
