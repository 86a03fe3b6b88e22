# Copyright (c) 2026, the pgawait authors

# With buffered I/O, too, dirty victims are written together with their
# neighbours; backend_flush_after counts all of these pages.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	debug_io_direct = ''
	fsync = on
	shared_buffers = 4MB
	bgwriter_lru_maxpages = 0
	autovacuum = off
	checkpoint_timeout = 1h
});
$node->start;
$node->safe_psql('postgres',
	q{CREATE EXTENSION aio;
		CREATE TABLE t (i int, n int, filler text STORAGE PLAIN) WITH (fillfactor = 45);
		INSERT INTO t SELECT i, 0, repeat('x', 3000) FROM generate_series(1, 10000) i;
		CHECKPOINT});

# Pages and writes of a session's victims, and pages that the kernel was told to write
sub change_all
{
	my ($settings) = @_;
	my $session = $node->background_psql('postgres');

	$session->query_safe($settings) if $settings;
	$session->query_safe('UPDATE t SET n = n + 1');
	$session->query_safe('SELECT pg_stat_force_next_flush()');
	my $counts = $session->query_safe(
		q{SELECT trunc(sum(write_bytes) / 8192), sum(writes), sum(writebacks) FROM pg_stat_get_backend_io(pg_backend_pid())
			WHERE object = 'relation'});
	$session->quit;
	$node->safe_psql('postgres', 'CHECKPOINT');
	return split /\|/, $counts;
}

my ($pages, $writes, $written_back) = change_all();
cmp_ok($pages, '>', 4000, 'most pages are written by the session that needs buffers');
cmp_ok($writes, '<', $pages / 4, 'many at a time');
is($written_back, 0, 'backend_flush_after is off');
is($node->safe_psql('postgres', q{SELECT sum(started) > 0, sum(started) = sum(completed_inline) FROM pg_stat_aio WHERE kind = 'write'}),
	't|t', 'nothing is in flight afterwards');

($pages, $writes, $written_back) = change_all('SET backend_flush_after = 16');
cmp_ok($pages, '>', 4000, 'with backend_flush_after: as many pages');
cmp_ok($writes, '<', $pages / 4, 'as many at a time');
cmp_ok($written_back, '>', $pages * 0.9, 'the kernel is told to write nearly all of them');

$node->append_conf('postgresql.conf', 'aio.write_behind = 0');
$node->reload;
($pages, $writes) = change_all();
is($writes, $pages, 'with aio.write_behind = 0: one at a time');

is($node->safe_psql('postgres', 'SELECT count(*), min(n), max(n) FROM t'), '10000|3|3', 'all changes are there');
$node->stop;
command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], 'checksums');
done_testing();
