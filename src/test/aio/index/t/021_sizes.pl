# Copyright (c) 2026, the pgawait authors

# Indexes of each access method are about as large when their entries are
# inserted in batches as when each is inserted for its row, as the manual
# promises, whatever the order of rows: after a load, and while they grow.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "io_method = worker\nautovacuum = off\nfsync = off\nshared_buffers = 64MB\nmax_wal_size = 4GB");
$node->start;

# How much larger an index may be: what the manual's table of differences says, and nothing where it says nothing.
my %indexes = (
	'btree (r)' => 4 / 3,
	'btree (md5(r::text))' => 4 / 3,
	'btree (few)' => 4 / 3,
	'hash (r)' => 1,
	'gin (words) WITH (fastupdate = off)' => 4 / 3,
	'gin (words)' => 4 / 3,
	'gist (place)' => 1.4,
	'gist (int4range(r, r + 9))' => 1.4,
	'spgist (place)' => 1.1,
	'spgist ((md5(r::text)))' => 1.1,
	'brin (r)' => 1);

my $columns = q{n AS id, hashint4(n) / 1000 AS r, n % 50 AS few, ARRAY[n % 7, n % 101, n % 3001, hashint4(n) % 5000] AS words,
	point(hashint4(n) % 10000, hashint4(-n) % 10000) AS place};
my %orders = (
	'at random' => 'md5(n::text)',
	'in order' => 'hashint4(n)');
# rows of each load; more than a batch, and fewer than are in the index
my @loads = ([ 1, 30_000 ], [ 30_001, 36_000 ], [ 36_001, 52_000 ]);

foreach my $order (sort keys %orders)
{
	my %sizes;

	foreach my $way ('batches', 'rows')
	{
		my $session = $node->background_psql('postgres');

		$session->query_safe('SET aio.index_batch_memory = 0; SET aio.await_index_inserts = off') if $way eq 'rows';
		$session->query_safe("CREATE TABLE t AS SELECT $columns FROM generate_series(1, 0) n");
		my @names = sort keys %indexes;
		$session->query_safe("CREATE INDEX t_$_ ON t USING $names[$_]") foreach 0 .. $#names;
		foreach my $load (@loads)
		{
			$session->query_safe("INSERT INTO t SELECT $columns FROM generate_series($load->[0], $load->[1]) n ORDER BY $orders{$order}");
			foreach (0 .. $#names)
			{
				push @{ $sizes{ $names[$_] }{$way} }, $session->query_safe("SELECT pg_relation_size('t_$_') / 8192");
			}
		}
		$session->query_safe('DROP TABLE t');
		$session->quit;
	}
	foreach my $index (sort keys %sizes)
	{
		my ($batches, $rows) = map { $sizes{$index}{$_} } 'batches', 'rows';

		note("$index, $order: @$batches pages, by rows @$rows");
		foreach (0 .. $#loads)
		{
			# a few pages may always be more
			cmp_ok($batches->[$_], '<=', $rows->[$_] * $indexes{$index} + 4, "$index: size after load $_, rows $order");
		}
	}
}

$node->stop;
done_testing();
