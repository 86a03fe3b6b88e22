
# Copyright (c) 2026, the pgawait authors

# WAL that cannot be written: a limit on the size of files makes the kernel
# refuse it.  That is a PANIC with upstream's message, whoever writes, and what
# was committed before is there afterwards.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
foreach my $method ('sync', grep { !$methods{$_} } sort keys %methods)
{
	my $node = PostgreSQL::Test::Cluster->new($method);
	$node->init(extra => [ '--wal-segsize' => 1 ]);
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		restart_after_crash = on
		autovacuum = off
		wal_buffers = 256kB
		wal_writer_delay = 10s
		wal_writer_flush_after = 0
		checkpoint_timeout = 1h
	});
	$node->start;
	$node->safe_psql('postgres', 'CREATE TABLE t (kind text)');

	# it is written without waiting, or when it is needed
	foreach my $ahead ('256kB', '0')
	{
		$node->append_conf('postgresql.conf', "aio.wal_write_ahead = $ahead");
		$node->reload;
		$node->safe_psql('postgres', "INSERT INTO t VALUES ('$ahead'); SELECT pg_switch_wal()");
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		my $log = -s $node->logfile;

		foreach my $limited ($pid, split /\n/, $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'}))
		{
			system_or_bail('prlimit', "--pid=$limited", '--fsize=' . 300 * 1024 . ':unlimited');
		}
		$session->query_until(qr/begun/, "\\echo begun\nSELECT count(pg_logical_emit_message(true, 'large', repeat('m', 10000))) FROM generate_series(1, 1000);\n");
		$node->wait_for_log(qr/PANIC:  could not write to (log file "[0-9A-F]{24}" at offset \d+, length \d+|file "pg_wal.xlogtemp.*"): File too large/, $log);
		$session->{run}->finish;

		# no query: a psql that is refused may end before it has been told one
		$node->poll_query_until('postgres', undef, '')
		  or die 'server does not come back';
		is($node->safe_psql('postgres', q{SELECT string_agg(kind, ',' ORDER BY kind DESC) FROM t}),
			($ahead eq '0' ? '256kB,0' : '256kB'), "$method, $ahead: what was committed is there");
	}
	$node->stop;
}
done_testing();
