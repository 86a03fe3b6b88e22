# Copyright (c) 2026, the pgawait authors

# pg_test_aio where things go wrong: interrupted, without a reader, in a locale
# with commas, with others who replace its file or use the CPUs, and with time
# that is up at any moment.

use strict;
use warnings FATAL => 'all';

use IPC::Run qw(start pump finish timeout);
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $out = PostgreSQL::Test::Utils::tempdir;
my $dir = PostgreSQL::Test::Utils::tempdir;
my @quick = (
	'pg_test_aio', '--directory' => $dir, '--file-size' => '16MB',
	'--seconds-per-test' => '0.02', '--max-depth' => '4', '--no-progress');
my $patience = $PostgreSQL::Test::Utils::timeout_default;

# What is in the directory: names, sizes, times of change, contents.
sub contents
{
	return join "\n", map {
		my @stat = stat;
		"$_ $stat[7] $stat[9] $stat[10] " . slurp_file($_)
	} sort glob "$dir/* $dir/.[!.]*";
}

append_to_file("$dir/PG_VERSION", "18\n");
my $before = contents();

# Run it with a library that makes things go wrong; see faults.c.
sub run_with_faults
{
	my ($faults, @command) = @_;
	local @ENV{ 'LD_PRELOAD', keys %$faults } = ($ENV{PG_TEST_AIO_FAULTS}, values %$faults);
	my ($stdout, $stderr) = ('', '');
	my $run = start \@command, '>', \$stdout, '2>', \$stderr, timeout($patience);

	if (!eval { $run->finish; 1 })
	{
		my $error = $@;

		$run->kill_kill;
		return ("did not end: $error", $stdout, $stderr);
	}
	return ($run->full_result(0) == 0 ? 'ok' : 'failed', $stdout, $stderr);
}

my $can_preload = '';
($can_preload) = run_with_faults({}, 'pg_test_aio', '--version')
  if $^O eq 'linux' && defined $ENV{PG_TEST_AIO_FAULTS};

# Interrupted in the middle.  Progress shows that it is there.
foreach my $signal (qw(INT TERM HUP KILL))
{
	# whoever runs this test may ignore it, under nohup for instance
	local $SIG{$signal} = 'DEFAULT' unless $signal eq 'KILL';
	my ($stdout, $stderr) = ('', '');
	my $run = start [ @quick, '--seconds-per-test' => '30', '--progress' ], '>', \$stdout, '2>', \$stderr,
	  timeout($patience);
	pump $run until $stderr =~ / left: /;
	$run->signal($signal);
	finish $run;
	ok($run->result(0) != 0 || $run->full_result(0) != 0, "ended by SIG$signal");
	is(contents(), $before, "the directory is as it was, after SIG$signal");
}

# The same where a file cannot be created without a name.
SKIP:
{
	skip 'no library can be preloaded', 4 if $can_preload ne 'ok';
	foreach my $faults ({ FAULT_TMPFILE => 1 }, { FAULT_TMPFILE => 1, FAULT_PROC => 1 })
	{
		my ($how, $stdout, $stderr) = run_with_faults($faults, @quick, '--tests' => 'sync');
		is("$how $stderr", 'ok ', "@{[sort keys %$faults]}: it does without");
		is(contents(), $before, 'the directory is as it was');
	}
}

# Somebody makes the file's name lead to a file of another one.
SKIP:
{
	skip 'no library can be preloaded', 12 if $can_preload ne 'ok';
	append_to_file("$out/victim", "precious\n");
	foreach my $fault (qw(FAULT_SYMLINK FAULT_LINK))
	{
		foreach my $more ([], ['FAULT_PROC'])
		{
			my ($how, $stdout, $stderr) = run_with_faults(
				{ FAULT_TMPFILE => 1, $fault => "$out/victim", map { $_ => 1 } @$more },
				@quick, '--tests' => 'sync');

			is($how, 'failed', "$fault @$more: ends");
			like($stderr, qr/error: file ".*pg_test_aio\.\w+" has been replaced by another one/, 'says why');
			is(slurp_file("$out/victim"), "precious\n", 'the other file is as it was');
			my @left = glob "$dir/pg_test_aio.*";
			is(scalar @left, 1, 'and so is what is not ours');
			unlink @left;
		}
	}
	is(contents(), $before, 'the directory is as it was');
}

# Time is up between any two looks at the clock.  A thousand of them are a second.
SKIP:
{
	skip 'no library can be preloaded', 8 if $can_preload ne 'ok';
	skip 'no direct I/O here', 8
	  if !IPC::Run::run([ @quick, '--direct', '--tests' => 'extend' ], '>', '/dev/null', '2>', '/dev/null');
	$patience = 30;
	foreach my $turn (0 .. 7)
	{
		my ($how) = run_with_faults({ FAULT_CLOCK => 1000000 },
			@quick, '--direct', '--tests' => 'stream', '--methods' => 'worker', '--seconds-per-test' => 0.03 + 0.003 * $turn);
		is($how, 'ok', "ends, with the clock at $turn");
	}
}

# Without a reader it ends, rather than to measure for nobody.
{
	local $SIG{PIPE} = 'DEFAULT';
	local @ENV{qw(OUT)} = ("$out/unread.json");
	my $first = `@quick --json "\$OUT" | head -n 1`;

	like($first, qr/^Directory: /, 'the first line is read');
	ok(!-e "$out/unread.json", 'it has not gone on');
}
SKIP:
{
	skip 'there is no /dev/full', 2 unless -c '/dev/full';
	command_fails_like([ 'sh', '-c', '"$@" >/dev/full', 'sh', @quick, '--json' => "$out/full.json" ],
		qr/could not write to standard output: /, 'nothing can be told');
	ok(!-e "$out/full.json", 'and nothing is measured');
}

# In a country whose numbers have commas
SKIP:
{
	my $locale = 'de_DE.UTF-8';

	skip 'no localedef', 4
	  if !IPC::Run::run([ 'localedef', '-i' => 'de_DE', '-f' => 'UTF-8', "$out/$locale" ], '>', '/dev/null', '2>', '/dev/null');
	local @ENV{qw(LOCPATH LC_ALL)} = ($out, $locale);
	skip 'no locale with commas', 4 if `locale decimal_point` ne ",\n";

	my ($stdout, $stderr) = run_command([ @quick, '--tests' => 'read,sync', '--json' => "$out/comma.json", '--plot' => "$out/comma.svg" ]);
	unlike($stdout . slurp_file("$out/comma.json"), qr/\d,\d/, 'numbers have points');
	my ($again, $complaint) = run_command([ 'pg_test_aio', '--from-json' => "$out/comma.json", '--json' => "$out/again.json" ]);
	is($complaint, '', 'and are read as such');
	is(slurp_file("$out/again.json"), slurp_file("$out/comma.json"), 'all of them');
	local $ENV{LC_ALL} = 'C';
	is(decode_json(slurp_file("$out/comma.json"))->{seconds}, 0.02, 'also from the command line');
}

# Others use the CPUs.
SKIP:
{
	skip 'only Linux tells', 1 unless $^O eq 'linux';
	my $ncpus = () = slurp_file('/proc/stat') =~ /^cpu\d/mg;
	my @busy = map { start [ $^X, '-e', 'alarm 60; 1 while 1' ], timeout(120) } 1 .. $ncpus;
	my ($stdout) = run_command([ @quick, '--tests' => 'sync', '--seconds-per-test' => '0.2' ]);

	$_->kill_kill foreach @busy;
	like($stdout, qr/^# others have used \d+ % of the CPUs/m, 'it is told that others used the CPUs');
}

is(contents(), $before, 'the directory is as it was, after all');

done_testing();
