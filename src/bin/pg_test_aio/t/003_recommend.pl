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
my $told;		# all that was printed at last

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
	$told = $text;
	return { map { /^(#?[a-z_.]+) = (\S+) +# \S/ ? ($1 => $2) : () } split /\n/, $text };
}

# A curve: rates at depths 1, 2, 4, ...
sub curve
{
	my ($test, $mode, $how, @rates) = @_;
	my $depth = 1;

	return map { { test => $test, mode => $mode, how => $how, depth => ($depth *= 2) / 2, rate => $_, average => 1e6 / $_, aside => 1e6 / $_ } } @rates;
}

# Single results
sub single
{
	my ($test, $mode, $how, $size, $rate) = @_;

	return { test => $test, mode => $mode, how => $how, depth => 1, size => $size, rate => $rate, average => 1e6 / $rate };
}

# The same results, with rounds between a part and a multiple of the rate
sub scattered
{
	my ($factor, @results) = @_;

	return map { { %$_, low => $_->{rate} / $factor, high => $_->{rate} * $factor } } @results;
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
		'#io_workers' => '16',
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
		'#io_workers' => '32',
		'io_max_concurrency' => '256',
		'effective_io_concurrency' => '128',
		'maintenance_io_concurrency' => '128',
		'aio.max_tasks' => '128',
		'#debug_io_direct' => q('data,wal'),
		'#wal_sync_method' => 'open_datasync',
		'aio.bulk_flush_after' => '0',
		'#aio.preallocation_size' => '32MB',
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
		'aio.preallocation_size' => '0',
	},
	'no io_uring, no fallocate, slow syncs');

my @direct = %{ recommended([
		curve('read', 'direct', 'worker', @workers),
		curve('read', 'direct', 'libaio', map { 0.5 * $_ } @fast),
		curve('write', 'direct', 'worker', @workers[ 0 .. 4 ], $workers[4]),
		curve('write', 'direct', 'libaio', @fast) ],
		buffered => JSON::PP::false,
		skipped => [ { what => 'io_uring', why => 'Cannot allocate memory' } ]) };
is_deeply({@direct},
	{
		'#io_method' => 'auto',
		'#io_workers' => '32',
		'io_max_concurrency' => '256',
		'effective_io_concurrency' => '128',
		'maintenance_io_concurrency' => '128',
		'aio.max_tasks' => '128',
		'aio.write_behind' => '96',
		'#debug_io_direct' => q('data'),
	},
	'direct I/O, where auto means libaio; the most that is recommended');
like($told, qr/^# settings for this directory with direct I\/O;/m, 'it is told that this is for direct I/O');
like($told, qr/^io_max_concurrency .* one session writes \d+ % of the most$/m, 'it is for the writes');

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
	},
	'a disk that dislikes many; libaio is not preferred to io_uring');

is_deeply(recommended([ curve('read', 'buffered', 'io_uring', @fast[ 0 .. 2 ]) ]), { '#io_method' => 'auto' },
	'nothing is said of depths that were not measured');

# What scatters is not clearly better: defaults stay, whatever the medians are.
my @scattered = (
	curve('read', 'direct', 'io_uring', @fast), curve('write', 'direct', 'io_uring', @fast),
	curve('read', 'direct', 'worker', @workers));
foreach my $case (
	[ 1.1, qw(256 128 128 128 96 32) ],
	[ 3.5, qw(-1 16 16 64 32 3) ])
{
	my ($factor, @values) = @$case;
	my $default = $factor > 3 ? '#' : '';

	is_deeply(
		recommended([ scattered($factor, @scattered) ], buffered => JSON::PP::false),
		{
			'#io_method' => 'auto',
			"${default}io_max_concurrency" => $values[0],
			"${default}effective_io_concurrency" => $values[1],
			"${default}maintenance_io_concurrency" => $values[2],
			"${default}aio.max_tasks" => $values[3],
			"${default}aio.write_behind" => $values[4],
			'#io_workers' => $values[5],
			'#debug_io_direct' => q('data'),
		},
		"rounds that scatter by $factor");
}
is_deeply(
	recommended([ scattered(1.5, syncs('buffered', fdatasync => 120, open_datasync => 180)), scattered(1.5, curve('sync', 'buffered', 'io_uring', 120, 200)) ]),
	{ '#wal_sync_method' => 'fdatasync', '#aio.wal_syncs' => '1' },
	'syncs that scatter');
is_deeply(
	recommended([ scattered(1.5, single('extend', 'buffered', 'fallocate', 64, 1500), single('extend', 'buffered', 'ahead', 64, 1000)) ]),
	{ '#aio.preallocation_size' => '32MB' },
	'extensions that scatter');
is_deeply(
	recommended([ scattered(1.5, map { single('stream', 'buffered', 'append', @$_) } [ 1024, 1000 ], [ 4096, 1500 ]) ]),
	{ '#aio.bulk_flush_after' => '1024kB' },
	'streams that scatter');

# What differs from a default by little leaves it; what is clearly better does not.
is_deeply(
	recommended([ single('extend', 'buffered', 'fallocate', 64, 1030), single('extend', 'buffered', 'ahead', 64, 1000) ]),
	{ '#aio.preallocation_size' => '32MB' },
	'allocating ahead, though it is a little slower');
is_deeply(
	recommended([ single('extend', 'direct', 'fallocate', 64, 1500), single('extend', 'direct', 'ahead', 64, 1000) ]),
	{ 'aio.preallocation_size' => '0' },
	'allocating at once is clearly faster');

# A stream that is faster and makes others wait is none to recommend.
foreach my $wait (qw(max aside))
{
	is_deeply(
		recommended([ single('stream', 'buffered', 'append', 1024, 1000), { %{ single('stream', 'buffered', 'append', 0, 2000) }, $wait => 5000 } ]),
		{ '#aio.bulk_flush_after' => '1024kB' },
		"a longer $wait");
}
is_deeply(
	recommended([ single('stream', 'buffered', 'append', 1024, 1000), single('stream', 'buffered', 'append', 256, 2000) ]),
	{ 'aio.bulk_flush_after' => '256kB' },
	'a faster stream');

# What cannot be
is_deeply(
	recommended([
		syncs('buffered', fdatasync => 10),
		curve('sync', 'buffered', 'io_uring', 10, 20, 100, 900),
		curve('read', 'buffered', 'io_uring', 100, 300, (8000) x 7),
		curve('read', 'buffered', 'worker', 100, 300, 800) ],
		others => 57.3),
	{ '#io_method' => 'auto', '#wal_sync_method' => 'fdatasync' },
	'eight cannot do more than eight times as much as one');
like($told, qr/^# aio\.wal_syncs: nothing is recommended, for 90\.0 times as many with 8 in flight/m, 'and why nothing is said of it');
like($told, qr/^# effective_io_concurrency: nothing is recommended, for 80\.0 times/m, 'nor of reads');
like($told, qr/^# io_workers: nothing is recommended, for 8\.0 times as many with 4/m, 'nor of workers');
like($told, qr/^# others have used 57 % of the CPUs/m, 'what may be the reason');
recommended([ syncs('buffered', fdatasync => 10) ], others => 3);
unlike($told, qr/^# others/m, 'a little is not worth a word');

# WAL: open_datasync is what might be tried, if there are no syncs to overlap.
is_deeply(
	recommended([ syncs('buffered', fdatasync => 100, open_datasync => 200), curve('sync', 'buffered', 'io_uring', 100, 200, 400, 800) ]),
	{ '#wal_sync_method' => 'fdatasync', 'aio.wal_syncs' => '8' },
	'several syncs rather than open_datasync');
is_deeply(
	recommended([ syncs('buffered', fdatasync => 10000, open_datasync => 20000), curve('sync', 'buffered', 'io_uring', 10000, 20000) ]),
	{ '#wal_sync_method' => 'open_datasync' },
	'open_datasync, if syncs are short');
is_deeply(
	recommended([ syncs('buffered', fdatasync => 100), { %{ (curve('sync', 'buffered', 'io_uring', 100))[0] }, aside => 499 }, (curve('sync', 'buffered', 'io_uring', 100, 200))[1] ]),
	{ '#wal_sync_method' => 'fdatasync', '#aio.wal_syncs' => '1' },
	'the sync alone has to be long, not the write with it');
is_deeply(
	recommended([ syncs('direct', fdatasync => 100, open_datasync => 200), curve('sync', 'direct', 'io_uring', 100, 200) ], buffered => JSON::PP::false),
	{}, 'direct syncs are those of another server');

# Direct I/O is suggested if reads and writes were measured, and never more.
is_deeply(
	recommended([ map { curve('read', $_, 'sync', 100), curve('write', $_, 'sync', 100) } qw(direct buffered) ]),
	{ '#debug_io_direct' => "''" }, 'direct I/O is no better');
is_deeply(recommended([ single('extend', 'direct', 'zeros', 8, 100) ], buffered => JSON::PP::false), {}, 'nothing was measured that speaks for direct I/O');
{
	my $file = write_results("$out/flags.json", []);
	my $members = decode_json(slurp_file($file));

	delete @$members{qw(direct buffered)};
	$members->{results} = [ curve('read', 'buffered', 'io_uring', @fast), map { curve('read', 'direct', 'io_uring', @slow), curve('write', $_, 'sync', 100) } qw(direct buffered) ];
	append_to_file("$out/noflags.json", encode_json($members));
	my ($text) = run_command([ 'pg_test_aio', '--from-json' => "$out/noflags.json" ]);
	like($text, qr/^#debug_io_direct = ''/m, 'without flags, settings are for buffered I/O');
	like($text, qr/^effective_io_concurrency = 128/m, 'and from buffered reads');
}

is_deeply(recommended([ syncs('buffered', fsync => 100) ]), {}, 'nothing, if there is nothing to compare with');

# What is read stays in its line, and what is written can be read.
write_results("$out/lines.json",
	[ syncs('buffered', fsync => 1, "a\nfsync = off" => 1, 'a "quoted\\' => 1) ],
	skipped => [ { what => 'ahead', why => "x\nport = 1" } ], directory => "a'\nb");
my ($text) = run_command([ 'pg_test_aio', '--from-json' => "$out/lines.json", '--json' => "$out/written.json" ]);
unlike($text, qr/^(port|b|fsync =)/m, 'a line is a line');
is_deeply([ map { $_->{how} } @{ decode_json(slurp_file("$out/written.json"))->{results} } ],
	[ 'a?fsync = off', 'a "quoted\\', 'fsync' ], 'names in JSON');

# A latency of zero has its place on a logarithmic axis.
my ($plotted, $complaints) = run_command([ 'pg_test_aio', '--plot' => "$out/zero.svg",
	'--from-json' => write_results("$out/zero.json", [ { %{ (curve('read', 'direct', 'sync', 1000))[0] }, p99 => 0 } ]) ]);
is($complaints, '', 'gnuplot draws it');

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
while (my ($name, $value) = splice @direct, 0, 2)
{
	$node->append_conf('postgresql.conf', "$name = $value" =~ s/^#//r);
}
$node->append_conf('postgresql.conf', 'max_connections = 20');
$node->start;
is($node->safe_psql('postgres', q{SELECT current_setting('aio.write_behind')}), '96', 'it starts with what was made up');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL}), '0', 'and nothing is wrong with it');
$node->stop;

done_testing();
