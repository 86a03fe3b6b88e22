# Copyright (c) 2026, the pgawait authors

# pg_test_aio: what it recommends for results that are made up; that a server
# starts with that; and what it makes of files that are none of its own.

use strict;
use warnings FATAL => 'all';

use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $out = PostgreSQL::Test::Utils::tempdir;
my $case = 0;

# Write what an earlier run would have.
sub write_results
{
	my ($file, $results, %more) = @_;

	append_to_file($file, encode_json({
		directory => '/nowhere', file_system => 'made up', date => 'today',
		direct => JSON::PP::true, buffered => JSON::PP::true,
		seconds => 1, file_size => 1, skipped => [], results => $results, %more }));
	return $file;
}

# What is recommended for results; a hash of lines without reasons.
sub recommended
{
	my ($results, %more) = @_;
	my $file = write_results("$out/case" . $case++ . '.json', $results, %more);
	my ($text, $errors) = run_command([ 'pg_test_aio', '--from-json' => $file ]);
	is($errors, '', 'no error');
	return { map { /^(#?[a-z_.]+) = (\S+) +# \S/ ? ($1 => $2) : () } split /\n/, $text };
}

# A curve: rates at depths 1, 2, 4, ...
sub curve
{
	my ($test, $mode, $how, @rates) = @_;
	my $depth = 1;

	return map { { test => $test, mode => $mode, how => $how, depth => ($depth *= 2) / 2, rate => $_, average => 1e6 / $_ } } @rates;
}

# Single results
sub single
{
	my ($test, $mode, $how, $size, $rate) = @_;

	return { test => $test, mode => $mode, how => $how, depth => 1, size => $size, rate => $rate, average => 1e6 / $rate };
}

sub syncs
{
	my ($mode, %rates) = @_;

	return map { single('sync', $mode, $_, 0, $rates{$_}) } sort keys %rates;
}

my @slow = (100, 120, 150, 180, 200, 204, 205, 205, 205);
my @fast = map { 8000 * $_ } 1, 2, 4, 8, 16, 32, 60, 100, 104;
my @workers = map { 0.9 * $_ } @fast[ 0 .. 5 ];

is_deeply(
	recommended([
		curve('read', 'buffered', 'sync', 100),
		curve('read', 'buffered', 'worker', @slow[ 0 .. 5 ]),
		curve('read', 'buffered', 'io_uring', @slow),
		syncs('buffered', fdatasync => 120, fsync => 200, open_datasync => 124),
		curve('sync', 'buffered', 'io_uring', 120, 121, 122, 120) ]),
	{
		'#io_method' => 'auto',
		'#io_max_concurrency' => '-1',
		'#effective_io_concurrency' => '16',
		'#maintenance_io_concurrency' => '16',
		'#aio.max_tasks' => '64',
		'#wal_sync_method' => 'fdatasync',
		'#aio.wal_syncs' => '1',
	},
	'a slow disk: the defaults');

is_deeply(
	recommended([
		curve('read', 'buffered', 'worker', @workers),
		curve('read', 'buffered', 'io_uring', @fast),
		curve('read', 'direct', 'io_uring', map { 2 * $_ } @fast),
		curve('write', 'buffered', 'sync', 100000),
		curve('write', 'direct', 'io_uring', @fast),
		syncs('buffered', fdatasync => 20000, open_datasync => 25000),
		syncs('direct', fdatasync => 40000),
		single('stream', 'buffered', 'append', 0, 2000),
		single('stream', 'buffered', 'append', 1024, 1000),
		single('extend', 'buffered', 'fallocate', 64, 1000),
		single('extend', 'buffered', 'ahead', 64, 2000) ]),
	{
		'#io_method' => 'auto',
		'io_max_concurrency' => '256',
		'effective_io_concurrency' => '128',
		'maintenance_io_concurrency' => '128',
		'aio.max_tasks' => '128',
		'#debug_io_direct' => q('data,wal'),
		'wal_sync_method' => 'open_datasync',
		'aio.bulk_flush_after' => '0',
		'#aio.extend_ahead' => '32MB',
	},
	'a fast disk');

is_deeply(
	recommended([
		curve('read', 'buffered', 'worker', @workers),
		syncs('buffered', fdatasync => 1000),
		curve('sync', 'buffered', 'worker', 1000, 1990, 2000, 2000),
		single('extend', 'buffered', 'zeros', 64, 1000) ],
		skipped => [
			{ what => 'io_uring', why => 'Operation not permitted' },
			{ what => 'fallocate', why => 'Operation not supported' },
			{ what => 'ahead', why => 'Operation not supported' } ]),
	{
		'#io_method' => 'auto',
		'io_workers' => '32',
		'#io_max_concurrency' => '-1',
		'effective_io_concurrency' => '32',
		'maintenance_io_concurrency' => '32',
		'#aio.max_tasks' => '64',
		'#wal_sync_method' => 'fdatasync',
		'aio.wal_syncs' => '2',
		'file_extend_method' => 'write_zeros',
		'aio.extend_ahead' => '0',
	},
	'no io_uring, no fallocate, slow syncs');

my @lines = %{ recommended([
		curve('read', 'direct', 'worker', @workers),
		curve('read', 'direct', 'libaio', map { 0.5 * $_ } @fast),
		curve('write', 'direct', 'worker', @workers[ 0 .. 4 ], $workers[4]),
		curve('write', 'direct', 'libaio', @fast) ],
		buffered => JSON::PP::false,
		skipped => [ { what => 'io_uring', why => 'Cannot allocate memory' } ]) };
is_deeply({@lines},
	{
		'#io_method' => 'auto',
		'io_max_concurrency' => '342',
		'effective_io_concurrency' => '128',
		'maintenance_io_concurrency' => '128',
		'aio.max_tasks' => '128',
		'aio.write_behind' => '128',
		'debug_io_direct' => q('data'),
	},
	'direct I/O, where auto means libaio');

is_deeply(
	recommended([
		curve('read', 'buffered', 'worker', map { 2 * $_ } @fast[ 0 .. 1 ], (30000) x 4),
		curve('read', 'buffered', 'io_uring', @slow) ]),
	{
		'io_method' => 'worker',
		'io_workers' => '4',
		'#io_max_concurrency' => '-1',
		'#effective_io_concurrency' => '16',
		'#maintenance_io_concurrency' => '16',
		'#aio.max_tasks' => '64',
	},
	'io_uring works and is slow');

is_deeply(
	recommended([
		curve('read', 'direct', 'io_uring', 100, 200, 200, (100) x 6),
		curve('read', 'direct', 'libaio', (300) x 9) ], buffered => JSON::PP::false),
	{
		'#io_method' => 'auto',
		'#io_max_concurrency' => '-1',
		'effective_io_concurrency' => '2',
		'maintenance_io_concurrency' => '2',
		'aio.max_tasks' => '2',
		'debug_io_direct' => q('data'),
	},
	'a disk that dislikes many; libaio is not preferred to io_uring');

is_deeply(recommended([ curve('read', 'buffered', 'io_uring', @fast[ 0 .. 2 ]) ]), { '#io_method' => 'auto' },
	'nothing is said of depths that were not measured');
# 100 to 150 per second, or 110 to 200: who knows?
is_deeply(
	recommended([
		{ %{ single('sync', 'buffered', 'fdatasync', 0, 120) }, low => 100, high => 150 },
		{ %{ single('sync', 'buffered', 'open_datasync', 0, 180) }, low => 110, high => 200 } ]),
	{ '#wal_sync_method' => 'fdatasync' },
	'what scatters is not clearly better');

is_deeply(recommended([ syncs('buffered', fsync => 100) ]), {}, 'nothing, if there is nothing to compare with');

# What is read stays in its line.
unlike(
	(run_command([ 'pg_test_aio', '--from-json' => write_results("$out/lines.json", [ syncs('buffered', fsync => 1) ],
		skipped => [ { what => 'ahead', why => "x\nport = 1" } ], directory => "a'\nb") ]))[0],
	qr/^(port|b)/m, 'a line is a line');

command_fails_like(
	[ 'pg_test_aio', '--plot' => "$out/none.svg", '--from-json' => "$out/lines.json" ],
	qr/there is nothing to plot/, 'results without curves');
ok(!-e "$out/none.svg", 'no plot then');

# Files that are none of ours
foreach my $bad (
	[ 'nonsense', 'is invalid' ],
	[ '[]', 'no result' ],
	[ '{"results": []}', 'no result' ],
	[ '{"results": [{"test": "read"}]}', 'lacks "test", "mode" or "how"' ],
	[ '{"results": [{"test": "tea"}]}', '"tea" is not a "test"' ],
	[ '{"results": [{"test": "read", "mode": "direct", "how": "sync", "rate": -1}]}', '"rate" is out of range' ],
	[ '{"results": [{"test": "read", "mode": "direct", "how": "sync"}]}', 'lacks "directory"' ],
	[ '[' x 100000, 'nested too deep' ])
{
	my $file = "$out/bad" . $case++;

	append_to_file($file, $bad->[0]);
	command_fails_like([ 'pg_test_aio', '--from-json' => $file ], qr/does not hold results of pg_test_aio.*$bad->[1]/s, substr($bad->[0], 0, 60));
}

# A server starts with the most that is recommended, also with what is only
# suggested.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
while (my ($name, $value) = splice @lines, 0, 2)
{
	$node->append_conf('postgresql.conf', "$name = $value" =~ s/^#//r);
}
$node->append_conf('postgresql.conf', 'max_connections = 20');
$node->start;
is($node->safe_psql('postgres', q{SELECT current_setting('aio.write_behind')}), '128', 'it starts with what was made up');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL}), '0', 'and nothing is wrong with it');
$node->stop;

done_testing();
