
# Copyright (c) 2026, the pgawait authors

# What io_method = auto chooses, and what it says; on hosts that forbid io_uring,
# too, where the server works as ever.  And libaio, whose I/O is complete
# whatever becomes of the worker that has submitted it.

use strict;
use warnings FATAL => 'all';

use Config;
use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'only Linux has these methods' unless $^O eq 'linux';

my %methods = io_methods();
my $x86 = $Config{archname} =~ /^x86_64/;

# From now on this process and its children get an error for these system calls.
sub forbid
{
	my ($first, $last) = @_;
	my @program = (
		[ 0x20, 0, 0, 0 ],    # load the number of the call
		[ 0x35, 0, 2, $first ],    # less: allow
		[ 0x25, 1, 0, $last ],    # greater: allow
		[ 0x06, 0, 0, 0x00050001 ],    # EPERM
		[ 0x06, 0, 0, 0x7fff0000 ]);
	my $filter = join '', map { pack 'SCCL', @$_ } @program;
	my $fprog = pack 'Sx![P]P', scalar @program, $filter;

	# prctl(PR_SET_NO_NEW_PRIVS), seccomp(SECCOMP_SET_MODE_FILTER)
	syscall($x86 ? 157 : 167, 38, 1, 0, 0, 0) == 0 or return "prctl: $!";
	syscall($x86 ? 317 : 277, 1, 0, $fprog) == 0 or return "seccomp: $!";
	return undef;
}

# What is the outcome of a setting?
sub outcome
{
	my ($node, $conf) = @_;
	my $log = -s $node->logfile // 0;

	$node->append_conf('postgresql.conf', $conf);
	$node->start(fail_ok => 1) or return slurp_file($node->logfile, $log);
	my ($said) = slurp_file($node->logfile, $log) =~ /LOG:  using I\/O method (.*)/;
	my $effective = $node->safe_psql('postgres', q{SELECT current_setting('io_method') || ' ' || current_setting('aio.effective_io_method')});
	my $workers = $node->safe_psql('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'io worker'});
	is($workers, $effective =~ /(worker|libaio)$/ ? 't' : 'f', "$effective: I/O workers if they are needed");
	$node->stop;
	return "$effective: " . ($said // 'nothing');
}

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', 'max_connections = 20');
is(outcome($node, $_), $_ =~ s/io_method = (.*)/$1 $1: nothing/r, $_) foreach 'io_method = sync', 'io_method = worker';
SKIP:
{
	skip $methods{io_uring}, 1 if $methods{io_uring};
	is(outcome($node, 'io_method = auto'), 'auto io_uring: "io_uring": this host allows it', 'auto is io_uring');
}

# Rings do not pile up while the server starts anew after crashes.
SKIP:
{
	skip $methods{io_uring}, 1 if $methods{io_uring};
	$node->append_conf('postgresql.conf', "io_method = io_uring\nrestart_after_crash = on\nlogging_collector = on");
	$node->start;
	my $postmaster = $node->{_pid};
	my $rings = sub { scalar grep { (readlink($_) // '') =~ /io_uring/ } glob "/proc/$_[0]/fd/*" };
	my $before = $rings->($postmaster);
	my ($logger) = grep { slurp_file("/proc/$_/cmdline") =~ /logger/ } split /\s+/, `ps -o pid= --ppid $postmaster` =~ s/^\s+//r;
	foreach my $turn (1 .. 2)
	{
		my $walwriter = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'};
		my $killed = $node->safe_psql('postgres', $walwriter);
		kill 'KILL', $killed;
		$node->poll_query_until('postgres', "SELECT ($walwriter) <> $killed");
	}
	cmp_ok($before, '>', 20, 'there are rings');
	is($rings->($postmaster), $before, 'as many after crashes');
	is($rings->($logger), 0, 'the log collector has none');
	$node->stop;
	$node->append_conf('postgresql.conf', 'logging_collector = off');
}

SKIP:
{
	skip $methods{libaio}, 1 if $methods{libaio};

	# A worker ends, and another one is killed, under load.
	my $loaded = create_loaded_node('libaio', 'libaio', conf => "io_workers = 2\ndebug_io_direct = 'data,wal'\nwal_sync_method = open_datasync");
	my $load = IPC::Run::start([ pgbench_command($loaded, '--client' => 6, '--transactions' => 20) ], '>', \my $out, '2>', \my $err);
	foreach my $turn (1 .. 10)
	{
		my $worker = $loaded->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker' ORDER BY random() LIMIT 1});
		kill 'INT', $worker if $worker;
		$loaded->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = '@{[ $worker || 0 ]}'});
	}
	ok($load->finish, 'a load goes on while I/O workers come and go') or diag($err);
	check_table($loaded, 'after workers have ended');
	cmp_ok($loaded->safe_psql('postgres', q{SELECT sum(reads) FROM pg_stat_io WHERE object = 'relation'}), '>', 0, 'pages were read');
	$loaded->stop;
}

# Nothing can be locked in memory.
SKIP:
{
	skip $methods{io_uring}, 1 if $methods{io_uring};
	$node->append_conf('postgresql.conf', "io_method = auto\nmax_connections = 400");
	system_or_bail('sh', '-c', 'ulimit -l 64 && exec "$@"', 'sh',
		'pg_ctl', '--wait', '--silent', '--pgdata' => $node->data_dir, '--log' => $node->logfile, 'start');
	$node->_update_pid(1);
	like(slurp_file($node->logfile), qr/LOG:  using I\/O method "worker": io_uring cannot be set up for \d+ processes: Cannot allocate memory, and libaio serves only direct I\/O/,
		'without locked memory, auto is worker');
	$node->stop;
	$node->append_conf('postgresql.conf', 'max_connections = 20');
}

# No io_uring from here on.
SKIP:
{
	my $why_not = forbid(425, 427);
	skip $why_not, 1 if $why_not;

	like(outcome($node, "io_method = io_uring"), qr/FATAL:  could not setup io_uring queue: Operation not permitted\n.*HINT:  Check if io_uring is disabled/s,
		'io_uring is forbidden') if !$methods{io_uring};
	like(outcome($node, 'io_method = auto'), qr/^auto worker: "worker": io_uring cannot be set up for \d+ processes: Operation not permitted, and libaio serves only direct I\/O$/,
		'auto is worker');
	skip $methods{libaio}, 1 if $methods{libaio};
	like(outcome($node, "io_method = auto\ndebug_io_direct = data"), qr/^auto libaio: "libaio": io_uring cannot be set up for \d+ processes: Operation not permitted$/,
		'with direct I/O, auto is libaio');

	my $loaded = create_loaded_node('forbidden', 'auto');
	$loaded->command_ok([ pgbench_command($loaded, '--client' => 6, '--transactions' => 10) ], 'a load without io_uring');
	check_table($loaded, 'without io_uring');
	$loaded->stop;

	# Nor libaio.
	$why_not = forbid($x86 ? (206, 210) : (0, 4));
	skip $why_not, 1 if $why_not;
	like(outcome($node, 'io_method = libaio'), qr/FATAL:  could not set up libaio: Operation not permitted\n.*HINT:  Set "io_method" to "auto"/s, 'libaio is forbidden');
	like(outcome($node, 'io_method = auto'), qr/^auto worker: "worker": .*, and libaio cannot be used: Operation not permitted$/, 'auto is worker');
}
done_testing();
