# Copyright (c) 2026, the pgawait authors

# Sessions that load the same keys at the same time, in random transactions: no
# deadlock, as each meets its keys in one order, that of its rows, which is not
# that of the indexes; no error but duplicate keys; and each transaction has done
# all that it was to do, or nothing.  A seed makes statements repeatable, if not
# their timing:
#
#   AIO_RANDOM_SEED=17 meson test ... 007_same_keys

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'server is built without injection points';
}

my $seed = $ENV{AIO_RANDOM_SEED} // int(rand(1_000_000));
my $keys = 100_000;
my $sessions = 4;
my $transactions = 40;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = worker
	shared_buffers = 8MB
	max_connections = 12
	deadlock_timeout = 10ms
	autovacuum_naptime = 1s
	aio.debug_rows_before_batch = 0
});
$node->start;
if (!$node->check_extension('injection_points'))
{
	plan skip_all => 'extension injection_points is not installed';
}
# b is different for each a, and in another order
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION injection_points;
	CREATE EXTENSION amcheck;
	CREATE TABLE t (a int PRIMARY KEY, b int, tag int);
	CREATE UNIQUE INDEX t_b ON t (b);
	CREATE INDEX t_tag ON t (tag, b);
	CREATE TABLE done (tag int);
	CREATE TABLE deleted (a int, tag int);
	SELECT injection_points_attach('aio-gate-closed', 'notice');
	SELECT injection_points_attach('aio-keys-in-row-order', 'notice');
});

# how many rows of a tag there must be if its transaction has committed
my %rows = (0 => 0);
my $tags = 0;

# Statements whose keys fall, each below those of the one before.
sub statements
{
	my $next = $keys;
	my @statements;

	foreach (1 .. 1 + int(rand(8)))
	{
		my $high = $next - int(rand($keys / 8));
		my $step = 1 + int(rand(5));
		my $n = (1, 30, 300, 3000)[ int(rand(4)) ];
		my $low = $high - $step * ($n - 1);
		my $values = "SELECT a, a::bigint * 7919 % 1000003, TAG FROM generate_series($high, $low, -$step) a";
		my $kind = rand();

		last if $low < 1;
		$next = $low - 1;
		$tags++;
		if ($kind < 0.6)
		{
			$rows{$tags} = $n;
			push @statements, "INSERT INTO t $values";
		}
		elsif ($kind < 0.7)
		{
			$rows{$tags} = $n;
			push @statements, "COPY t FROM PROGRAM 'i=$high; while [ \$i -ge $low ]; do echo \$i:\$((i * 7919 % 1000003)):TAG; i=\$((i - $step)); done' (DELIMITER ':')";
		}
		elsif ($kind < 0.8)
		{
			push @statements, "INSERT INTO t $values ON CONFLICT DO NOTHING";
		}
		else
		{
			$next = $high - 1;
			push @statements, "WITH d AS (DELETE FROM t WHERE a = $high RETURNING a, tag) INSERT INTO deleted SELECT * FROM d";
		}
		$statements[-1] =~ s/TAG/$tags/g;
		push @statements, "INSERT INTO done VALUES ($tags)";
	}
	return @statements;
}

srand($seed);
note("seed $seed");
my $place = $PostgreSQL::Test::Utils::tmp_check;
my @psqls;
foreach my $session (1 .. $sessions)
{
	my $script = '';

	foreach (1 .. $transactions)
	{
		my $end = rand() < 0.2 ? 'COMMIT' : 'ROLLBACK';

		$script .= join(";\n", 'BEGIN', statements(), $end) . ";\n";
	}
	append_to_file("$place/script$session", $script);
}
# through files, so that none waits for this program
foreach my $session (1 .. $sessions)
{
	push @psqls, IPC::Run::start([ 'psql', '-X', '-q', '-d', $node->connstr('postgres'), '-f', "$place/script$session" ], '>', '/dev/null', '2>', "$place/said$session");
}
$_->finish foreach @psqls;

my $said = join('', map { slurp_file("$place/said$_") } 1 .. $sessions);
my %ways;
$ways{$1}++ while $said =~ /injection point (\S+)/g;
my %errors;
$errors{$1}++ while $said =~ /ERROR:  (.*)/g;
note(join(', ', map { "$_: " . ($ways{$_} // 0) } 'aio-gate-closed', 'aio-keys-in-row-order'), '; ', join(', ', map { "$_: $errors{$_}" } sort keys %errors));
cmp_ok($ways{'aio-gate-closed'} // 0, '>', 0, 'keys were inserted in index order');
cmp_ok($ways{'aio-keys-in-row-order'} // 0, '>', 0, 'and in row order');
my @others = grep { !/^duplicate key value|^current transaction is aborted/ } sort keys %errors;
is("@others", '', "no deadlock, and no other error (seed $seed)");

my %done = map { ($_ => 1) } split /\n/, $node->safe_psql('postgres', 'SELECT tag FROM done');
my %there = map { split /\|/ } split /\n/,
  $node->safe_psql('postgres', 'SELECT tag, count(*) FROM (SELECT tag FROM t UNION ALL SELECT tag FROM deleted) x GROUP BY 1');
cmp_ok(scalar keys %done, '>', 0, 'transactions have committed');
is_deeply([ grep { !$done{$_} } keys %there ], [], 'of those that have not, nothing is there');
is_deeply([ grep { defined $rows{$_} && ($there{$_} // 0) != $rows{$_} } keys %done ], [], 'of those that have, all is');
is( $node->safe_psql(
		'postgres', q{SELECT count(*) - count(DISTINCT a), count(*) - count(DISTINCT b), count(*) FILTER (WHERE b <> a::bigint * 7919 % 1000003) FROM t;
	SELECT bt_index_check(i, true, true) FROM unnest('{t_pkey, t_b}'::regclass[]) i;
	SELECT bt_index_check('t_tag', true)}), "0|0|0\n\n\n", 'indexes are in order');

$node->stop;
done_testing();
