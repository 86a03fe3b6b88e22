# Copyright (c) 2026, the pgawait authors

# A base backup whose rate is limited pauses after each piece, and not after
# what it may send in an eighth of a second.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# At this rate, in kB/s, a piece of 32 kB is due every 40 milliseconds.
my $rate = 800;
my $piece = 32 * 1024;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->start;
$node->safe_psql('postgres', 'CREATE TABLE large AS SELECT i, repeat(md5(i::text), 100) AS filler FROM generate_series(1, 20000) i');

# How far two of the places at which a backup pauses are apart at least, until
# that is no more than a piece, or so many places have been seen.
sub apart
{
	my ($setting, $most) = @_;
	$node->safe_psql('postgres', "ALTER SYSTEM SET aio.backup_buffers = $setting");
	$node->restart;
	my $session = $node->background_psql('postgres');
	my $backup = IPC::Run::start([ 'pg_basebackup', '--dbname' => $node->connstr('postgres'), '--target' => 'blackhole', '--wal-method' => 'none',
		'--checkpoint' => 'fast', '--max-rate' => "${rate}k" ], '>', \my $out, '2>', \my $err);
	my (%seen, $nearest);
	my $before = '';
	my $deadline = time() + $PostgreSQL::Test::Utils::timeout_default;
	while (time() < $deadline && keys %seen < $most && $backup->pumpable)
	{
		$backup->pump_nb;
		my $sent = $session->query_safe(q{SELECT backup_streamed FROM pg_stat_progress_basebackup JOIN pg_stat_activity USING (pid) WHERE wait_event = 'BaseBackupThrottle'});

		# the two views are not of the same moment, but it pauses if twice the same is seen
		my $pauses = $sent ne '' && $sent eq $before;
		$before = $sent;
		next if !$pauses || $seen{$sent}++;
		my @all = sort { $a <=> $b } keys %seen;
		foreach my $i (1 .. $#all)
		{
			my $distance = $all[$i] - $all[$i - 1];
			$nearest = $distance if !defined $nearest || $distance < $nearest;
		}
		last if defined $nearest && $nearest <= $piece;
	}
	$session->quit;
	$backup->signal('TERM');
	$backup->finish;
	die "no pauses were seen: $err" unless defined $nearest;
	return $nearest;
}

cmp_ok(apart(8192, 100), '<=', $piece, 'a backup pauses after each piece');
cmp_ok(apart(0, 5), '>', $piece, 'without files that are read ahead, it pauses as in PostgreSQL');
$node->stop;

done_testing();
