# Copyright (c) 2026, the pgawait authors

# A checkpoint syncs files to which others have written without waiting, though
# it finds none of their pages dirty.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;

# No write has to wait for want of memory, so none is upstream's.
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	debug_io_direct = data
	shared_buffers = 1MB
	io_max_concurrency = 32
	aio.write_buffers = 32
	io_combine_limit = 1
	bgwriter_lru_maxpages = 0
	autovacuum = off
	checkpoint_timeout = 1h
	fsync = on
	log_checkpoints = on
	log_min_messages = debug1
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE TABLE t (n int, filler text STORAGE PLAIN) WITH (fillfactor = 45);
	CREATE TABLE elsewhere (filler text STORAGE PLAIN);
	INSERT INTO t SELECT 0, repeat('x', 3000) FROM generate_series(1, 60);
	CHECKPOINT;
});
my $file = $node->safe_psql('postgres', "SELECT pg_relation_filepath('t')");

# Each row has room for another version on its page: extending the file would
# have it synced.
$node->safe_psql('postgres', 'UPDATE t SET n = 1');
$node->safe_psql('postgres', "INSERT INTO elsewhere SELECT repeat('x', 7000) FROM generate_series(1, 600)");
is( $node->safe_psql(
		'postgres', "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t') AND relforknumber = 0 AND isdirty"),
	0, 'all pages have been written by a backend');
my $log = -s $node->logfile;
$node->safe_psql('postgres', 'CHECKPOINT');
ok($node->log_contains(qr/checkpoint sync: number=\d+ file=\Q$file\E time/, $log), 'the checkpoint syncs their file');
$node->stop;
done_testing();
