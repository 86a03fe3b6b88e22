# Copyright (c) 2026, the pgawait authors

# pg_test_aio: what it accepts; that it measures with every method that works
# here, leaves nothing behind and touches nothing; and that a server starts with
# what it recommends.
#
# No number that was measured is looked at.  The plot needs gnuplot, and without
# it this test fails.

use strict;
use warnings FATAL => 'all';

use Config;
use File::Basename qw(basename);
use JSON::PP;
use POSIX qw(WNOHANG);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

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
	[ [ '--file-size' => '-16777215TB' ], qr/must be in range/ ],
	[ [ '--file-size' => '-9223372036854775808' ], qr/must be in range/ ],
	[ [ '--max-depth' => '0' ], qr/must be in range 1\.\.256/ ],
	[ [ '--max-depth' => '1000' ], qr/must be in range 1\.\.256/ ],
	[ [ '--methods' => 'worker,posix' ], qr/invalid value "posix" for option -m/ ],
	[ [ '--tests' => 'read,,write' ], qr/invalid value "" for option -t/ ],
	[ ['here'], qr/too many command-line arguments \(first is "here"\)/ ],
	[ [ '--from-json' => 'x', '--direct' ], qr/options -f\/--from-json and --direct cannot be used together/ ],
	[ [ '--plot' => "$out/plot.gif" ], qr/must end in "\.svg" or "\.png"/ ],
	[ [ '--plot' => "$out/p.svg", '--tests' => 'sync' ], qr/nothing to plot/ ],
	[ [ '--json' => "$out/none/file" ], qr/could not create file/ ],
	[ [ '--json' => "$out/none/" ], qr/"\S+none\/" is not the name of a file/ ],
	[ [ '--json' => '' ], qr/"" is not the name of a file/ ],
	[ [ '--plot' => "$out/none/p.svg" ], qr/could not create file/ ],
	[ [ '--json' => "$out/p.svg", '--plot' => "$out/../" . basename($out) . '/p.svg' ], qr/name the same file/ ],
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
like($stdout, qr/^fdatasync(?: +\d+){5}$/m, 'a write with its sync, and the sync alone');
like($stdout, qr/^zeros, 64 blocks +\d+/m, 'extension');
like($stdout, qr/^append, paced by 1024 kB +\d+/m, 'streams') if $^O eq 'linux';
like($stdout, qr/^#?wal_sync_method = \w+ +# /m, 'a recommendation');
unlike($stdout, qr/ \n/, 'no blanks at the ends of lines');
is(contents(), $before, 'the directory is as it was, after all tests');

my $json = decode_json(slurp_file("$out/all.json"));
my %found;
$found{"$_->{test} $_->{how}"} = $_ foreach @{ $json->{results} };
ok($_->{low} > 0 && $_->{low} <= $_->{rate} && $_->{rate} <= $_->{high}, "rounds of $_->{test} $_->{how}") foreach values %found;
my @alone = grep { !$_->{aside} || $_->{aside} > $_->{average} } grep { $_->{test} eq 'sync' && $_->{how} !~ /^open/ } @{ $json->{results} };
is_deeply(\@alone, [], 'a sync takes no longer than a write with its sync');
ok($json->{others} >= 0, 'what others used of the CPUs');
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

# Some need no method, or only one of those that are not wanted.
my ($without) = run_command([ @quick, '--methods' => 'worker', '--buffered', '--tests' => 'write,stream' ]);
like($without, qr/^Random writes.*\n +sync\n/m, 'buffered writes with any method');
like($without, qr/^append, not paced/m, 'and streams');
command_fails_like([ @quick, '--methods' => 'libaio', '--buffered', '--tests' => 'read' ], qr/these tests need a method that can be used/, 'no method that can be used');

# Syncs are buffered with direct I/O, too, for WAL is.
SKIP:
{
	skip 'no direct I/O here', 4 if $skipped{direct};
	my ($direct) = run_command([ @quick, '--direct', '--tests' => 'read,sync' ]);
	like($direct, qr/^Write and sync of 8 kB, $_ I\/O$/m, "syncs with $_ I/O") foreach qw(direct buffered);
	unlike($direct, qr/^Random reads of 8 kB, buffered/m, 'and nothing else');
	unlike($direct, qr/^[^#\n]*debug_io_direct/m, 'direct I/O is no more than a suggestion');
}

# Buffered reads come from the disk: as many bytes as are asked for, no fewer
# because they are cached, and no more because neighbours are read, too.
SKIP:
{
	skip 'only Linux tells', 1 unless -r '/proc/self/io';
	my $pid = fork // die;
	my $account = '';
	if ($pid == 0)
	{
		open STDOUT, '>', "$out/buffered.txt" or die;
		exec @quick, '--buffered', '--tests' => 'read', '--methods' => 'sync', '--seconds-per-test' => '0.3' or die;
	}
	while (waitpid($pid, WNOHANG) == 0)
	{
		$account = eval { slurp_file("/proc/$pid/io") } || $account;
		usleep(10_000);
	}
	skip 'the file system has a cache of its own', 1 unless slurp_file("$out/buffered.txt") =~ /^Directory: .* \((ext4|xfs)\)/;
	my %bytes = $account =~ /^(\w+): (\d+)$/mg;
	my $part = $bytes{read_bytes} / $bytes{rchar};
	ok($part > 0.98 && $part < 1.02, "bytes from the disk: $part of those that were read");
}

# A plot of one point has axes
my ($one, $complaints) = run_command([ @quick, '--max-depth' => '1', '--tests' => 'read', '--plot' => "$out/one.svg" ]);
is($complaints, '', 'gnuplot does not complain of one point');

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

# A server starts with what is recommended, also with what is only suggested.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', join "\n", map { s/^#(?=[a-z])//r } $stdout =~ /^(#?[a-z_.]+ = .*)/mg);
$node->append_conf('postgresql.conf', 'max_connections = 20');
$node->start;
is($node->safe_psql('postgres', q{SELECT current_setting('io_method')}), 'auto', 'it starts with what was measured')
  if $stdout =~ /io_method = auto/;
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_file_settings WHERE error IS NOT NULL}), '0', 'and nothing is wrong with it');
$node->stop;

done_testing();
