# Copyright (c) 2026, the pgawait authors

# What may happen to a btree leaf between the time when it is planned that
# entries go there and the time when they do: it is split, once and many times,
# or deleted.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'injection points are not supported by this build';
}

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "io_method = worker\nautovacuum = off");
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION injection_points;
	CREATE EXTENSION amcheck;
	CREATE EXTENSION pageinspect;
	CREATE TABLE t (k int, n int) WITH (fillfactor = 100);
	INSERT INTO t SELECT i * 10, 0 FROM generate_series(1, 100000) i;
	CREATE INDEX t_k ON t (k);
	CREATE TABLE u (k int);
	INSERT INTO u SELECT i * 10 FROM generate_series(1, 100000) i;
	ALTER TABLE u ADD UNIQUE (k);
	VACUUM ANALYZE});

# Do something after it has been planned where the entries of a statement go,
# and before the first of them is inserted.
sub meanwhile
{
	my ($statement, $what) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 1);

	$node->safe_psql('postgres', q{SELECT injection_points_attach('aio-leaf-planned', 'wait')});
	$session->query_until(qr/begun/, "\\echo begun\n$statement;\n");
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'aio-leaf-planned'})
	  or die 'timed out';
	$node->safe_psql('postgres', q{SELECT injection_points_detach('aio-leaf-planned')});
	ref $what ? $what->() : $node->safe_psql('postgres', $what);
	$node->safe_psql('postgres', q{SELECT injection_points_wakeup('aio-leaf-planned')});
	return $session->quit;
}

# All rows are in the index, in order.
sub intact
{
	my ($name, $table, $index, $rows) = @_;

	is( $node->safe_psql(
			'postgres', qq{
		SELECT bt_index_parent_check('$index', true, true);
		SELECT count(*), count(DISTINCT k) FROM $table}),
		"\n$rows", $name);
}

# in random order, such that entries are planned as a rule
my $new = q{INSERT INTO t SELECT i * 50 + 5, 1 FROM generate_series(1, 19999) i ORDER BY hashint4(i)};

# other keys, so many of them that each leaf becomes two, or six
ok(meanwhile($new, 'INSERT INTO t SELECT i * 10 + 1, 2 FROM generate_series(50000, 60000) i'), 'leaves are split');
intact('leaves were split', 't', 't_k', '130000|130000');
ok( meanwhile(
		'INSERT INTO t SELECT i * 50 + 6, 1 FROM generate_series(1, 19999) i ORDER BY hashint4(i)',
		'INSERT INTO t SELECT i * 10 + j, 2 FROM generate_series(70000, 80000) i, generate_series(1, 4) j ORDER BY i, j'),
	'leaves are split many times');
intact('leaves were split many times', 't', 't_k', '190003|190003');

# Pages whose entries are all dead.  VACUUM cannot pass a page that the other
# session has pinned, but its first ones are those of negative keys, which have
# been made by splits, and come last in the file.  The first 1000 rows are not
# collected.
foreach my $case ([ 't', 't_k' ], [ 'u', 'u_k_key' ])
{
	my ($table, $index) = @$case;
	my $vacuum = $node->background_psql('postgres');

	$node->safe_psql('postgres', "INSERT INTO $table SELECT i * 10 FROM generate_series(-20000, -1) i");
	$node->safe_psql('postgres', "DELETE FROM $table WHERE k BETWEEN 850000 AND 950000");
	my $rows = $node->safe_psql('postgres', "SELECT count(*) + 4199 + 10001 FROM $table");
	ok( meanwhile(
			"INSERT INTO $table SELECT i * 50 + 7 FROM generate_series(-3900, 19999) i WHERE i < -2700 OR i > 17000 ORDER BY i > 0, hashint4(i)",
			sub {
				$vacuum->query_until(qr/begun/, "\\echo begun\nVACUUM $table;\n");
				$node->poll_query_until('postgres', "SELECT count(*) > 20 FROM bt_multi_page_stats('$index', 1, -1) WHERE type = 'd'")
				  or die 'timed out';

				# these pages could be used again for other rows; the gate of u
				# has them wait
				$node->safe_psql('postgres', "INSERT INTO $table SELECT i * 10 + 8 FROM generate_series(20000, 30000) i")
				  if $table eq 't';
			}),
		"$index: leaves are deleted");
	$vacuum->quit;
	$node->safe_psql('postgres', "INSERT INTO $table SELECT i * 10 + 8 FROM generate_series(20000, 30000) i")
	  if $table eq 'u';
	intact("$index: leaves were deleted", $table, $index, "$rows|$rows");
}

$node->stop;

done_testing();
