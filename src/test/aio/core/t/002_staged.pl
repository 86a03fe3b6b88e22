# Copyright (c) 2026, the pgawait authors

# Who waits for a read that another process has staged, but not submitted,
# completes it once it is submitted: the other one may be waiting for him then.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $unusable = {io_methods()}->{io_uring};
plan skip_all => $unusable if defined $unusable;

my $node = PostgreSQL::Test::Cluster->new('staged');
$node->init;
$node->append_conf('postgresql.conf', "io_method = io_uring\nautovacuum = off\n");
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION test_aio_core;
	CREATE TABLE pages AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 200);
	VACUUM pages;
});
$node->restart;

my $owner = $node->background_psql('postgres');
my $other = $node->background_psql('postgres');
my $pid = $other->query_safe('SELECT pg_backend_pid()');
my $state = sub { "SELECT state = '$_[0]' FROM pg_stat_activity WHERE pid = $pid" };
my $page = q{SELECT count(*) FROM pages WHERE ctid >= '(5,0)' AND ctid < '(6,0)'};

$other->query_safe("EXPLAIN $page; BEGIN; SELECT pg_advisory_xact_lock(1)");
$owner->query_until(qr/^begun$/m, "\\echo begun\nSELECT read_staged('pages', 5, $pid);\n\\echo over\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_aios WHERE state = 'STAGED'}) or die 'no read is staged';
$other->query_until(qr/^reads$/m, "\\echo reads\n$page;\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted})
  or die 'nobody waits for the lock';
ok($node->poll_query_until('postgres', $state->('idle in transaction')), 'who waits for the page gets it');
$other->query_until(qr/^committed$/m, "COMMIT;\n\\echo committed\n");
$owner->query_until(qr/^over$/m, '');
pass('and so does who has staged its read');
$owner->quit;
$other->quit;
$node->stop;
done_testing();
