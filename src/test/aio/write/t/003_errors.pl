# Copyright (c) 2026, the pgawait authors

# Writes that fail: a limit on the size of files makes the kernel refuse them.
# The error is the one that PostgreSQL has always raised, nothing is lost, and
# all goes on once the limit is gone.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

foreach my $case (writing_ways())
{
	my ($io_method, $direct) = @$case;
	my $method = $io_method . ($direct ? '' : '_buffered');
	my $node = PostgreSQL::Test::Cluster->new($method);

	# WAL segments are smaller than the limit
	$node->init(extra => [ '--wal-segsize' => 1 ]);
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $io_method
		debug_io_direct = '$direct'
		shared_buffers = 1MB
		io_max_concurrency = 32
		bgwriter_lru_maxpages = 0
		autovacuum = off
		checkpoint_timeout = 1h
		log_statement = none
	});
	$node->start;
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION amcheck;
		CREATE TABLE t (id int PRIMARY KEY, n int, filler text STORAGE PLAIN) WITH (fillfactor = 45);
		INSERT INTO t SELECT i, 0, (SELECT string_agg(md5((100 * i + j)::text), '') FROM generate_series(1, 94) j) FROM generate_series(1, 700) i;
		CHECKPOINT;
	});

	# Limit the size of files for this process, and for I/O workers.
	my $limit = sub {
		my ($size, @pids) = @_;
		push @pids, split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'");
		foreach my $pid (@pids)
		{
			system_or_bail('prlimit', "--pid=$pid", "--fsize=$size:unlimited");
		}
	};

	# 2 MB is the limit of a whole block, 4 kB more that of a part of one
	foreach my $size (2 * 1024 * 1024, 2 * 1024 * 1024 + 4096)
	{
		my $session = $node->background_psql('postgres', on_error_stop => 0);
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		my $log = -s $node->logfile;

		$limit->($size, $pid);
		$session->query('UPDATE t SET n = n + 1');
		like($session->{stderr}, qr/ERROR:  could not write blocks? .*(?:File too large|wrote only \d+ of \d+ bytes)/,
			"$method, limit $size: a backend raises the error of its write");
		$session->{stderr} = '';
		ok($node->log_contains(qr/CONTEXT:  writing block \d+ of relation/, $log), "$method, limit $size: and says which block it was");
		is($session->query('SELECT 1'), 1, "$method, limit $size: its session lives");
		$limit->('unlimited', $pid);
		$session->query_safe('UPDATE t SET n = n + 1');
		$session->quit;
	}
	is($node->safe_psql('postgres', 'SELECT count(*), min(n), max(n) FROM t'), '700|2|2', "$method: statements that failed left nothing");

	# the checkpointer
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
	$node->safe_psql('postgres', 'UPDATE t SET n = n + 1 WHERE id > 640');
	$limit->(2 * 1024 * 1024, $pid);
	my ($ret, $out, $err) = $node->psql('postgres', 'CHECKPOINT');
	isnt($ret, 0, "$method: a checkpoint fails that cannot write");
	like($err, qr/checkpoint request failed/, "$method: and says so");
	$limit->('unlimited', $pid);
	$node->safe_psql('postgres', 'CHECKPOINT');
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*), min(n), max(n) FROM t'), '700|2|3', "$method: the next one writes it");

	# a new index; buffered, its pages are copied by the backend itself
	my $in_workers = $io_method eq 'worker' && $direct;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$pid = $session->query_safe('SELECT pg_backend_pid()');
	# with I/O workers, they alone fail: the file can be extended
	$limit->(1024 * 1024, $in_workers ? () : $pid);
	$session->query('CREATE INDEX t_filler ON t (id, left(filler, 2000))');
	like($session->{stderr}, $in_workers ? qr/ERROR:  could not write blocks \d+\.\.\d+ in file/ : qr/ERROR:  could not (?:write|extend)/, "$method: an index that cannot be written is not created");
	$session->{stderr} = '';
	$limit->('unlimited', $pid);
	$session->query_safe('CREATE INDEX t_filler ON t (id, left(filler, 2000))');
	$session->quit;
	is( $node->safe_psql(
			'postgres', q{SELECT count(bt_index_parent_check(c, true, true)) FROM unnest('{t_pkey,t_filler}'::regclass[]) c;
				SELECT count(*) FROM verify_heapam('t')}),
		"2\n0", "$method: heap and indexes agree");
	$node->stop;
	command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], "$method: checksums after a clean shutdown");
}
done_testing();
