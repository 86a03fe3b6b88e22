# Copyright (c) 2026, the pgawait authors

# The scripts of ../../sql and ../../isolation have the same results where
# completions are noticed late and in random order.  A seed makes it
# repeatable, as far as the disk is:
#
#   AIO_DELAY_SEED=17 meson test ... 004_delayed

use strict;
use warnings FATAL => 'all';

use File::Basename qw(basename dirname);
use File::Spec;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{AIO_DELAY_SEED} // 1 + int(rand(1_000_000));
my $tests = dirname(dirname($FindBin::RealBin));
my $regress = $ENV{PG_REGRESS};
my $isolation = dirname($regress) . '/../isolation/pg_isolation_regress';

plan skip_all => 'completions are delayed by servers with assertions only'
  unless check_pg_config('#define USE_ASSERT_CHECKING 1');

# The scripts of a directory, in the order in which meson runs them.
sub scripts
{
	my ($directory, $kind) = @_;
	my ($list) = slurp_file("$tests/$directory/meson.build") =~ /'$kind': \[(.*?)\]/s;

	return $list =~ /'([^']+)'/g;
}

sub run_delayed
{
	my ($node, $what, $program, @scripts) = @_;
	my $out = "$PostgreSQL::Test::Utils::tmp_check/" . $node->name . "-$what";
	my $failed = system($program, '--bindir=', '--host=' . $node->host, '--port=' . $node->port,
		"--inputdir=$tests/$what", "--outputdir=$out", '--max-concurrent-tests=1', @scripts);

	ok(!$failed, $node->name . ", seed $seed: $what") or diag(-e "$out/regression.diffs" ? slurp_file("$out/regression.diffs") : 'no differences');
	return;
}

note("AIO_DELAY_SEED=$seed");

# each method completes I/O in another place
foreach my $method ('io_uring', 'libaio')
{
	my $node = PostgreSQL::Test::Cluster->new($method);

	$node->init;
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		max_connections = 20
		shared_buffers = 8MB
		log_statement = none
		aio.debug_delay_completions = 4
		aio.debug_seed = $seed
		aio.debug_suspend = on
		debug_io_direct = data
		restart_after_crash = off});
	if (!$node->start(fail_ok => 1))
	{
		note("io_method $method does not work here");
		next;
	}
	mkdir("$PostgreSQL::Test::Utils::tmp_check/$method-$_") foreach ('sql', 'isolation');
	run_delayed($node, 'sql', $regress, scripts('sql', 'sql'));
	run_delayed($node, 'isolation', $isolation, scripts('isolation', 'specs'));
	$node->stop;
}

done_testing();
