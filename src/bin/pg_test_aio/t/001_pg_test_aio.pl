
# Copyright (c) 2026, the pgawait authors

# pg_test_aio: what it accepts; that it measures with every method that works
# here, leaves nothing behind and touches nothing; what it recommends for results
# that are made up, and that a server starts with that.
#
# No number that was measured is looked at.  The plot needs gnuplot, and without
# it this test fails.

use strict;
use warnings FATAL => 'all';

use Config;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $out = PostgreSQL::Test::Utils::tempdir;
my $dir = PostgreSQL::Test::Utils::tempdir;
my @quick = (
	'pg_test_aio', '--directory' => $dir, '--file-size' => '16MB',
	'--seconds-per-test' => '0.02', '--max-depth' => '4', '--no-progress');

# What is in the directory: names, sizes, times of change, contents.
sub contents
{
	return join "\n", map {
		my @stat = stat;
		"$_ $stat[7] $stat[9] $stat[10] " . slurp_file($_)
	} sort glob "$dir/* $dir/.[!.]*";
}

program_help_ok('pg_test_aio');
program_version_ok('pg_test_aio');
program_options_handling_ok('pg_test_aio');

# Options

foreach my $case (
	[ [ '--seconds-per-test' => 'a' ], qr/invalid value "a" for option -s/ ],
	[ [ '--seconds-per-test' => '0' ], qr/must be in range 0\.01\.\.3600/ ],
	[ [ '--seconds-per-test' => 'nan' ], qr/must be in range/ ],
	[ [ '--file-size' => '1MB' ], qr/must be in range 16MB\.\.1TB/ ],
	[ [ '--file-size' => '99999999TB' ], qr/must be in range/ ],
	[ [ '--file-size' => '1XB' ], qr/invalid value "1XB" for option -S/ ],
	[ [ '--file-size' => '-5GB' ], qr/must be in range/ ],
	[ [ '--max-depth' => '0' ], qr/must be in range 1\.\.256/ ],
	[ [ '--max-depth' => '1000' ], qr/must be in range 1\.\.256/ ],
	[ [ '--methods' => 'worker,posix' ], qr/invalid value "posix" for option -m/ ],
	[ [ '--tests' => 'read,,write' ], qr/invalid value "" for option -t/ ],
	[ ['here'], qr/too many command-line arguments \(first is "here"\)/ ],
	[ [ '--from-json' => 'x', '--direct' ], qr/options -f\/--from-json and --direct cannot be used together/ ],
	[ [ '--plot' => "$out/plot.gif" ], qr/must end in "\.svg" or "\.png"/ ],
	[ [ '--plot' => "$out/p.svg", '--tests' => 'sync' ], qr/nothing to plot/ ],
	[ [ '--json' => "$out/none/file" ], qr/could not create file/ ],
	[ [ '--directory' => "$out/none" ], qr/could not access directory ".*none"/ ],
	[ [ '--from-json' => "$out/none" ], qr/could not open file ".*none"/ ])
{
	my ($options, $complaint) = @$case;
	command_fails_like([ 'pg_test_aio', @$options ], $complaint, "rejects @$options");
}

# What must not happen, does not

append_to_file("$dir/PG_VERSION", "18\n");
append_to_file("$dir/.hidden", "hidden\n");
my $before = contents();

foreach my $option ('--json', '--plot')
{
	my $file = "$out/mine.svg";

	append_to_file($file, "mine\n") unless -e $file;
	command_fails_like([ @quick, $option => $file ], qr/file ".*mine\.svg" exists/, "$option does not overwrite a file");
	is(slurp_file($file), "mine\n", 'the file is as it was');
}

my ($free) = (`df -Pk '$dir'` =~ /\n\S+\s+\d+\s+\d+\s+(\d+)/);
SKIP:
{
	skip 'there is too much space', 1 if $free > 1024**3;
	my $size = int($free / 1024 * 0.6) . 'MB';
	command_fails_like([ @quick, '--file-size' => $size ], qr/the test file would take \d+ MB.*\n.*hint: No more than half/, 'leaves half of the free space');
}
SKIP:
{
	skip 'root may write everywhere', 1 if $> == 0;
	my $readonly = PostgreSQL::Test::Utils::tempdir;
	chmod 0555, $readonly or die;
	command_fails_like([ @quick, '--directory' => $readonly ], qr/could not create a file in directory/, 'a directory that cannot be written');
	chmod 0755, $readonly or die;
}

# As if the disk were full: files may have 8 MB.
command_fails_like([ 'sh', '-c', 'ulimit -f 16384 && exec "$@"', 'sh', @quick, '--file-size' => '64MB' ],
	qr/error: could not write the test file in directory ".*": /, 'a file that cannot be written');
is(contents(), $before, 'the directory is as it was');

# Nobody to draw the plot is noticed before anything is measured.
{
	my ($bin) = grep { -x "$_/pg_test_aio" } split /:/, $ENV{PATH};
	local $ENV{PATH} = $bin;
	command_fails_like([ @quick, '--plot' => "$out/p.svg" ], qr/could not execute gnuplot.*\n.*hint: Install it/, 'there is no gnuplot');
}

# All of it

my ($stdout, $stderr) = run_command([ @quick, '--progress', '--json' => "$out/all.json", '--plot' => "$out/all.svg" ]);
is($stderr =~ s/^ *\d+ %, about \d+ s left: .*$//mgr =~ s/\n//gr, '', 'nothing but progress is told to stderr');
like($stdout, qr/^Random reads of 8 kB, buffered I\/O\n.* sync .*\nin flight .*IOPS.*\n +1 +\d+ .*\n +2 .*\n +4 .*\n\n/m, 'a table');
like($stdout, qr/^zeros, 64 blocks +\d+/m, 'extension');
like($stdout, qr/^append, paced by 1024 kB +\d+/m, 'streams') if $^O eq 'linux';
like($stdout, qr/^#?wal_sync_method = \w+ +# /m, 'a recommendation');
unlike($stdout, qr/ \n/, 'no blanks at the ends of lines');
is(contents(), $before, 'the directory is as it was, after all tests');

my $json = decode_json(slurp_file("$out/all.json"));
my %found;
$found{"$_->{test} $_->{how}"} = $_ foreach @{ $json->{results} };
my %skipped = map { $_->{what} => $_->{why} } @{ $json->{skipped} };
is_deeply([ sort keys %{ $json->{results}[0] } ], [qw(aside average depth high how low max meanwhile mode p99 rate size test)], 'members of a result');
is($json->{file_size}, 16 * 1024 * 1024, 'file size in JSON');
foreach my $method (qw(sync worker io_uring libaio))
{
	ok($found{"read $method"} || $skipped{$method} || ($method eq 'libaio' && $skipped{direct}),
		"$method was measured, or it is told why not") or next;
	ok($found{"mixed $method"}{rate} > 0, "rate of $method") if $found{"read $method"};
}
ok($found{"sync $_"}, "sync: $_") foreach qw(fdatasync fsync open_datasync open_sync);
like(slurp_file("$out/all.svg"), qr/<svg .*<path .*<\/svg>/s, 'a plot');

# The same from JSON, whose numbers are rounded.
my ($again) = run_command([ 'pg_test_aio', '--from-json' => "$out/all.json", '--json' => "$out/again.json", '--plot' => "$out/again.png" ]);
my $tables = sub { $_[0] =~ s/^.*?(?=\nRandom)//sr =~ s/\d+(\.\d+)?/N/gr =~ s/ +/ /gr =~ s/\n# settings.*//sr };
is($tables->($again), $tables->($stdout), 'the same tables');
is(slurp_file("$out/again.json"), slurp_file("$out/all.json"), 'the same JSON');
like(slurp_file("$out/again.png"), qr/^\x89PNG/, 'a plot in PNG');

# On hosts that forbid io_uring it does without.  (setup, enter and register)
SKIP:
{
	skip 'only Linux has it', 2 unless $^O eq 'linux';
	my $x86 = $Config{archname} =~ /^x86_64/;
	my @program = ([ 0x20, 0, 0, 0 ], [ 0x35, 0, 2, 425 ], [ 0x25, 1, 0, 427 ], [ 0x06, 0, 0, 0x00050001 ], [ 0x06, 0, 0, 0x7fff0000 ]);
	my $pid = fork // die;
	if ($pid == 0)
	{
		my $filter = join '', map { pack 'SCCL', @$_ } @program;

		# prctl(PR_SET_NO_NEW_PRIVS), seccomp(SECCOMP_SET_MODE_FILTER)
		exit 77 if syscall($x86 ? 157 : 167, 38, 1, 0, 0, 0) != 0;
		exit 77 if syscall($x86 ? 317 : 277, 1, 0, pack('Sx![P]P', scalar @program, $filter)) != 0;
		open STDOUT, '>', "$out/forbidden.txt" or die;
		exec @quick, '--tests' => 'read,sync' or die;
	}
	waitpid $pid, 0;
	skip 'seccomp cannot be used', 2 if $? == 77 << 8;
	is($?, 0, 'goes on without io_uring');
	like(slurp_file("$out/forbidden.txt"), qr/^Without io_uring: .*\n(?:.*\n)*Random reads.*\n.*worker/m, 'and says so');
}

# Recommendations

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

# A server starts with what is recommended, also with what is only suggested.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', join "\n", map { s/^#(?=[a-z])//r } $stdout =~ /^(#?[a-z_.]+ = .*)/mg);
$node->append_conf('postgresql.conf', 'max_connections = 20');
$node->start;
is($node->safe_psql('postgres', q{SELECT current_setting('io_method')}), 'auto', 'it starts with what was measured')
  if $stdout =~ /io_method = auto/;
$node->stop;
while (my ($name, $value) = splice @lines, 0, 2)
{
	$node->append_conf('postgresql.conf', "$name = $value" =~ s/^#//r);
}
$node->start;
is($node->safe_psql('postgres', q{SELECT current_setting('aio.write_behind')}), '128', 'it starts with what was made up');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL}), '0', 'and nothing is wrong with it');
$node->stop;

done_testing();
