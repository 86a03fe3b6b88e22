
# Copyright (c) 2026, the pgawait authors

# Reads ahead that first have to make room: the task that begins one is suspended
# while a page is written.  Its siblings begin others meanwhile, and each buffer
# gets the page that it is for.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'there is no direct I/O here' unless AioLoad::direct_io_works();

my %methods = io_methods();
foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("victims_$method", $method, conf => q{
		shared_buffers = 2MB
		io_max_concurrency = 4
		wal_writer_delay = 10s
	});
	# beside writes that keep all I/O workers busy, tasks would read by themselves
	if (check_pg_config('#define USE_ASSERT_CHECKING 1'))
	{
		$node->append_conf('postgresql.conf', 'aio.debug_queue = on');
		$node->reload;
	}
	$node->safe_psql('postgres', q{
		CREATE EXTENSION amcheck;
		CREATE EXTENSION test_aio_lookup;
		CREATE TABLE items (id int, pad text);
		INSERT INTO items SELECT i, repeat('x', 300) FROM generate_series(1, 8000) i;
		CREATE INDEX ON items (id) WITH (fillfactor = 10);
		CREATE TABLE dirty (id int, n int, pad text) WITH (fillfactor = 50);
		INSERT INTO dirty SELECT i, 0, repeat('x', 1000) FROM generate_series(1, 2000) i;
		VACUUM (FREEZE)});

	# Nearly all buffers are dirty, and need WAL that is not on disk.
	foreach my $round (1 .. 5)
	{
		my ($suspensions, $rows) = split /\n/, $node->safe_psql('postgres', q{
			CHECKPOINT;
			BEGIN;
			UPDATE dirty SET n = n + 1;
			SELECT read_ahead_in_tasks('items_id_idx', 60);
			SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
			SELECT count(*), sum(id) FROM items WHERE id > 0 AND pad > '';
			COMMIT});
		cmp_ok($suspensions, '>', 0, "$method, round $round: tasks are suspended");
		is($rows, '8000|32004000', "$method, round $round: rows");
		$node->safe_psql('postgres', q{SELECT bt_index_parent_check('items_id_idx', true, true)});
	}
	is($node->safe_psql('postgres', 'SELECT sum(checksum_failures) FROM pg_stat_database'), 0, "$method: no checksum is wrong");
	$node->stop;
	unlike(slurp_file($node->logfile), qr/invalid page|could not read/, "$method: no page is invalid");
}
done_testing();
