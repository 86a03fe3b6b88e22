# Copyright (c) 2026, the pgawait authors

# What a killed process has submitted to io_uring is complete before recovery
# begins and before the postmaster ends, however it is told to, which remains
# responsive meanwhile.  If all processes are killed, the next start waits.
#
# A read from an empty pipe stands for a write to a slow disk: the test says when
# it is complete.

use strict;
use warnings FATAL => 'all';

use Fcntl qw(:DEFAULT :flock :seek);
use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use IPC::Run ();
use POSIX qw(mkfifo);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $unusable = {io_methods()}->{io_uring};
plan skip_all => $unusable if defined $unusable;
plan skip_all => 'there are no functions for tests without assertions'
  unless check_pg_config('#define USE_ASSERT_CHECKING 1');

my $node = PostgreSQL::Test::Cluster->new('in_flight');
$node->init;
$node->append_conf('postgresql.conf', "io_method = io_uring\nrestart_after_crash = on\nautovacuum = off\nmax_connections = 20");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION test_aio_core');

my $fifo = PostgreSQL::Test::Utils::tempdir . '/fifo';
mkfifo($fifo, 0600) or die "$fifo: $!";

my $begins = 'all server processes terminated; reinitializing';
my $waits = qr/LOG:  waiting for I\/O that terminated server processes have begun/;

# A session that has something in flight
sub submit
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	is($session->query_safe("SELECT read_from_pipe('$fifo')"), 1, 'submitted');
	return ($session, $pid);
}

# That is complete now.
sub complete
{
	open my $pipe, '+<', $fifo or die "$fifo: $!";
	syswrite $pipe, 'x';

	# it was taken, or else the process is gone, and nothing was in flight
	return $pipe;
}

sub postmaster_ends
{
	my ($pid) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		unless (kill 0, $pid)
		{
			$node->_update_pid(0);
			return 1;
		}
		usleep(100_000);
	}
	return 0;
}

# The log from 'from' on, when it has any of this.
sub said
{
	my ($from, @any) = @_;
	my $any = join '|', @any;

	$node->wait_for_log(qr/$any/, $from);
	return slurp_file($node->logfile, $from);
}

sub tell_to_stop
{
	my ($mode) = @_;
	command_ok([ 'pg_ctl', '--pgdata' => $node->data_dir, '--mode' => $mode, '--no-wait', 'stop' ], "told to stop: $mode");
}

# Recovery
my $postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : die;
my $log = -s $node->logfile;
my ($session, $pid) = submit();
kill 'KILL', $pid;
my $said = said($log, $waits, $begins);
like($said, $waits, 'after a crash the postmaster waits');
unlike($said, qr/$begins/, 'and does not begin recovery');
my $pipe = complete();
$said = said($log, $begins);
like($said, qr/LOG:  I\/O that had been waited for is complete\n.*$begins/s, 'but when the I/O is complete');
$session->{run}->finish;
close $pipe;
$node->poll_query_until('postgres', 'SELECT true') or die 'no recovery';

# It is told to stop meanwhile.
$log = -s $node->logfile;
($session, $pid) = submit();
kill 'KILL', $pid;
$said = said($log, $waits, $begins);
tell_to_stop('immediate');
$said = said($log, 'received immediate shutdown request');
unlike($said, qr/$begins/, 'no recovery');
ok(kill(0, $postmaster), 'it does not end either');
$pipe = complete();
ok(postmaster_ends($postmaster), 'but when the I/O is complete');
unlike(slurp_file($node->logfile, $log), qr/$begins|TRAP|PANIC/, 'and without recovery');
$session->{run}->finish;
close $pipe;

# It is told to stop while something is in flight.  A session that ends in order
# awaits all I/O but this one.
foreach my $mode (qw(immediate fast))
{
	$node->start;
	$postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : die;
	$log = -s $node->logfile;
	($session) = submit();
	tell_to_stop($mode);
	$said = said($log, $waits, 'database system is shut down');
	like($said, $waits, "$mode: the postmaster waits");
	ok(kill(0, $postmaster), 'and does not end');
	$pipe = complete();
	ok(postmaster_ends($postmaster), 'but when the I/O is complete');
	$session->{run}->finish;
	close $pipe;
}

# Counters that make no sense are not waited for.
$node->start;
$log = -s $node->logfile;
$session = $node->background_psql('postgres', on_error_stop => 0);
$pid = $session->query_safe('SELECT pg_backend_pid()');
$session->query_safe('SELECT damage_ring()');
kill 'KILL', $pid;
$said = said($log, $begins);
like($said, qr/LOG:  counters of io_uring are damaged/, 'damaged counters are told from others');
$session->{run}->finish;
$node->poll_query_until('postgres', 'SELECT true') or die 'no recovery';

# A lock that belongs to an open file, to read or to write.
sub lock_file
{
	my ($file, $type) = @_;
	my $F_OFD_SETLK = 37;
	return fcntl($file, $F_OFD_SETLK, pack('s s x4 q q i x4', $type, SEEK_SET, 0, 0, 0));
}

# The file that is locked while there are rings
my $name = $node->data_dir . '/pg_dynshmem/aio.lock';
open my $file, '+<', $name or die "$name: $!";
ok(!lock_file($file, F_WRLCK), 'a file is locked, by what has been started anew');
$node->stop('immediate');
ok(!-e $name, 'and gone when the postmaster ends');

# As long as it is, as by the rings of an earlier life, a start waits.
sub earlier_life
{
	open $file, '+>', $name or die "$name: $!";
	lock_file($file, F_WRLCK) or die $!;
}

foreach my $method (qw(io_uring worker))
{
	$node->append_conf('postgresql.conf', "io_method = $method");
	earlier_life();
	$log = -s $node->logfile;
	command_ok([ 'pg_ctl', '--pgdata' => $node->data_dir, '--log' => $node->logfile, '--no-wait', 'start' ], "$method: started");
	$said = said($log, 'LOG:  waiting for I/O that processes of an earlier postmaster have begun', 'database system was');
	unlike($said, qr/database system was/, 'but it waits');
	lock_file($file, F_UNLCK);
	said($log, 'database system is ready to accept connections');
	$node->_update_pid(1);
	is(-e $name ? 'there' : 'gone', $method eq 'io_uring' ? 'there' : 'gone', 'the file is there while there are rings');
	$node->stop;
}

# It can be stopped while it waits.
earlier_life();
$log = -s $node->logfile;
command_ok([ 'pg_ctl', '--pgdata' => $node->data_dir, '--log' => $node->logfile, '--no-wait', 'start' ], 'started');
said($log, 'LOG:  waiting for I/O that processes of an earlier postmaster have begun');
$postmaster = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : die;
tell_to_stop('smart');
like(said($log, 'FATAL'), qr/stopped while waiting for I\/O of an earlier postmaster/, 'it can be told to stop while it waits');
ok(postmaster_ends($postmaster), 'and ends');

# So can a server without a postmaster.
foreach my $signal (qw(INT TERM QUIT))
{
	my ($in, $said) = ('', '');
	my $single = IPC::Run::start [ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ], '<', \$in, '>&', \$said;
	IPC::Run::pump $single until $said =~ /waiting for I\/O that processes of an earlier postmaster have begun/ || !$single->pumpable;
	$single->signal($signal);
	IPC::Run::finish $single;
	like($said, qr/FATAL:  stopped while waiting for I\/O of an earlier postmaster/, "$signal ends a server without a postmaster that waits");
}
close $file;

# All processes are killed at once, and the rings are gone soon.
$node->append_conf('postgresql.conf', 'io_method = io_uring');
$node->start;
$node->kill9;
start_after_kill($node);
is($node->safe_psql('postgres', 'SELECT 1'), 1, 'it starts after its postmaster was killed');
$node->stop;

# Who may only read the data directory locks what he can, and is in nobody's way.
my $open = PostgreSQL::Test::Cluster->new('open');
$open->init(extra => ['--allow-group-access']);
$open->append_conf('postgresql.conf', "io_method = io_uring\nrestart_after_crash = on\nautovacuum = off\nmax_connections = 20");
$name = $open->data_dir . '/pg_dynshmem/aio.lock';
append_to_file($name, '');
my @readers;
my $read = sub {
	foreach ($name, $open->data_dir . '/PG_VERSION')
	{
		open my $reader, '<', $_ or die "$_: $!";
		lock_file($reader, F_RDLCK);
		flock($reader, LOCK_EX | LOCK_NB);
		push @readers, $reader;
	}
};
$read->();
$open->start;
$read->();
ok(!lock_file($readers[2], F_RDLCK), 'a start makes and locks a file of its own');
is((stat $readers[2])[2] & 0777, 0640, 'whose permissions are as those of others');
$log = -s $open->logfile;
kill 'KILL', $open->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
$open->wait_for_log($begins, $log);
$open->poll_query_until('postgres', 'SELECT true') or die 'no recovery';
ok(!lock_file($readers[2], F_RDLCK), 'and keeps it after a crash');
$open->kill9;
start_after_kill($open);
$read->();
ok(!lock_file($readers[4], F_RDLCK), 'a start after a kill makes another');
$open->stop;
done_testing();
