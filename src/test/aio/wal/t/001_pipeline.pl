
# Copyright (c) 2026, the pgawait authors

# WAL that several write and sync at a time: the records are those that
# upstream writes, each segment is archived when it is complete, whatever
# wal_sync_method says and however it changes meanwhile.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my @usable = grep { !$methods{$_} } sort keys %methods;

# What does one session write, that does the same under each method?
my $origin = PostgreSQL::Test::Cluster->new('origin');
$origin->init(allows_streaming => 1, extra => [ '--wal-segsize' => 1 ]);
$origin->append_conf(
	'postgresql.conf', q{
	autovacuum = off
	bgwriter_lru_maxpages = 0
	checkpoint_timeout = 1h
	max_wal_size = 1GB
	wal_buffers = 64kB
	full_page_writes = off
	log_statement = none
});
$origin->start;
$origin->backup('same');
my %records;
foreach my $method ('sync', @usable)
{
	my $node = PostgreSQL::Test::Cluster->new("same_$method");
	$node->init_from_backup($origin, 'same');
	$node->append_conf('postgresql.conf', "io_method = $method\naio.preallocation_size = 0\naio.write_behind = 0");
	$node->start;
	$node->safe_psql('postgres', 'SELECT pg_switch_wal()');
	my $start = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
	$node->safe_psql(
		'postgres', q{
		CREATE TABLE t (a int, b text);
		INSERT INTO t SELECT i, repeat('x', i % 300) FROM generate_series(1, 30000) i;
		BEGIN;
		DELETE FROM t WHERE a % 7 = 0;
		SAVEPOINT s;
		UPDATE t SET b = b || 'y' WHERE a % 5 = 0;
		ROLLBACK TO s;
		COMMIT;
		SELECT pg_logical_emit_message(false, 'long', repeat('z', 3000000));
		SELECT pg_switch_wal();
		CREATE INDEX ON t (a);
		INSERT INTO t SELECT i, 'more' FROM generate_series(1, 20000) i;
		TRUNCATE t;
	});
	my $end = $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
	ok($node->poll_query_until('postgres', q{SELECT sum(write_bytes) > 6000000 FROM pg_stat_io WHERE object = 'wal' AND context = 'normal'}),
		"$method: WAL that is written is counted");

	# everything is in the files, without the help of a shutdown
	$node->stop('immediate');
	my $dump = run_command_output('pg_waldump', '--path' => $node->data_dir . '/pg_wal', '--start' => $start, '--end' => $end);
	# what other processes log now and then is not compared
	$records{$method} = join "\n", map { s/\d{4}-\d\d-\d\d [^;]*//r =~ s/lsn: \S+ prev [0-9A-F\/]+//r }
	  grep { !/rmgr: (Standby|XLOG .*(RUNNING|CHECKPOINT))/ } split /\n/, $dump;
	cmp_ok(length $dump, '>', 1_000_000, "$method: there are records");
}
is($records{$_} eq $records{sync}, 1, "$_: the same records as with sync") foreach @usable;

sub run_command_output
{
	my ($stdout, $stderr) = run_command([@_]);
	is($stderr, '', "$_[0] says nothing else");
	return $stdout;
}

# Each wal_sync_method, changed under load; small buffers and small segments.
foreach my $method (@usable)
{
	my $node = PostgreSQL::Test::Cluster->new("load_$method");
	$node->init(has_archiving => 1, allows_streaming => 1, extra => [ '--wal-segsize' => 1 ]);
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		fsync = on
		wal_buffers = 128kB
		aio.wal_syncs = 4
		io_max_concurrency = 32
		max_connections = 20
		shared_buffers = 8MB
		max_wal_size = 32MB
		autovacuum = off
		wal_writer_delay = 10ms
	});
	$node->start;
	$node->safe_psql('postgres', 'CREATE TABLE acknowledged (client int, n int); CREATE TABLE bulk (a int, b text)');
	my @scripts = map { "$PostgreSQL::Test::Utils::tmp_check/${method}_$_.sql" } qw(small bulk);
	append_to_file($scripts[0], "INSERT INTO acknowledged VALUES (:client_id, 1);\n");
	append_to_file($scripts[1], "INSERT INTO bulk SELECT i, repeat('b', 300) FROM generate_series(1, 1000) i;\n");
	foreach my $sync (qw(fdatasync open_datasync fsync open_sync fdatasync))
	{
		my $load = IPC::Run::start(
			[ 'pgbench', '--no-vacuum', '--client' => 6, '--jobs' => 1, '--transactions' => 60,
			  '--file' => "$scripts[0]\@3", '--file' => "$scripts[1]\@1",
			  '--host' => $node->host, '--port' => $node->port, 'postgres' ],
			'>', \my $out, '2>', \my $err);
		$node->append_conf('postgresql.conf', "wal_sync_method = $sync");
		$node->reload;
		ok($load->finish, "$method: load while wal_sync_method becomes $sync");
	}

	# one session's commits are synced, each of them
	my $session = $node->background_psql('postgres');
	my $syncs = q{SELECT fsyncs FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'wal' AND context = 'normal'};
	$session->query_safe("INSERT INTO acknowledged VALUES (100, $_)") foreach 1 .. 20;
	$session->query_safe('SELECT pg_stat_force_next_flush()');
	cmp_ok($session->query_safe($syncs), '>=', 15, "$method: commits are synced");
	$session->quit;

	# nothing but what was acknowledged, after a crash
	my $expected = $node->safe_psql('postgres', 'SELECT count(*), (SELECT count(*) FROM bulk) FROM acknowledged');
	my $last = $node->safe_psql('postgres', 'SELECT pg_walfile_name(pg_switch_wal())');
	$node->poll_query_until('postgres', "SELECT last_archived_wal >= '$last' FROM pg_stat_archiver")
	  or die 'timed out waiting for the archive';
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*), (SELECT count(*) FROM bulk) FROM acknowledged'),
		$expected, "$method: all is there after a crash");

	# the archive is complete: a copy of the beginning reaches the end with it
	my @archived = sort grep { /^[0-9A-F]{24}$/ } slurp_dir($node->archive_dir);
	my $gaps = grep { hex(substr($archived[ $_ + 1 ], 8, 8)) * 4096 + hex(substr($archived[ $_ + 1 ], 16)) - hex(substr($archived[$_], 8, 8)) * 4096 - hex(substr($archived[$_], 16)) != 1 } 0 .. $#archived - 1;
	is($gaps, 0, "$method: no segment is missing in the archive");
	my $dump = run_command_output('pg_waldump', '--quiet', '--path' => $node->archive_dir, $archived[0], $archived[-1]);
	is($dump, '', "$method: what is archived is valid");
}

# Dirty pages of one transaction push each other out.  The WAL writer flushes
# WAL if it is asked to, and does nothing of its own accord.
SKIP:
{
	skip 'no direct I/O here', 1 unless direct_io_works();
	foreach my $method (@usable)
	{
		my $node = PostgreSQL::Test::Cluster->new("flush_$method");
		$node->init(extra => [ '--wal-segsize' => 64 ]);
		$node->append_conf(
			'postgresql.conf', qq{
			io_method = $method
			fsync = on
			debug_io_direct = data
			shared_buffers = 4MB
			max_connections = 10
			io_max_concurrency = 32
			wal_buffers = 16MB
			wal_writer_delay = 10s
			wal_writer_flush_after = 1GB
			full_page_writes = off
			checkpoint_timeout = 1h
			max_wal_size = 2GB
			bgwriter_lru_maxpages = 0
			autovacuum = off
		});
		$node->start;
		$node->safe_psql(
			'postgres', q{
			CREATE EXTENSION aio;
			CREATE EXTENSION amcheck;
			CREATE TABLE t (id bigint, a uuid, b uuid, c uuid);
			CREATE INDEX ON t (a);
			CREATE INDEX ON t (b);
			CREATE INDEX ON t (c);
			INSERT INTO t SELECT i, gen_random_uuid(), gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 60000) i;
			CHECKPOINT;
			SELECT pg_stat_reset_shared('io');
		});
		my $session = $node->background_psql('postgres');
		# one statement may await no more than four flushes, on a busy machine
		$session->query_safe(
			q{INSERT INTO t SELECT i, gen_random_uuid(), gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 30000) i})
		  foreach 1 .. 3;
		cmp_ok($session->query_safe('SELECT flushes_awaited FROM aio_session_wal()'), '>', 0, "$method: flushes have been awaited");
		$session->query_safe('SELECT pg_stat_force_next_flush()');
		cmp_ok($session->query_safe(q{SELECT sum(suspended) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'wal_flush'}), '>', 0, "$method: by tasks that were suspended");
		ok($node->poll_query_until('postgres', q{SELECT fsyncs > 3 FROM pg_stat_io WHERE object = 'wal' AND context = 'normal' AND backend_type = 'walwriter'}),
			"$method: the WAL writer was asked to flush");
		$session->quit;
		$node->stop('immediate');
		$node->start;
		is($node->safe_psql('postgres', q{SELECT count(*) FROM t}), 150000, "$method: all is there after a crash");
		is($node->safe_psql('postgres', q{SELECT string_agg(bt_index_check(c.oid, true)::text, NULL) FROM pg_class c WHERE relkind = 'i' AND relname LIKE 't\_%'}),
			'', "$method: indexes are complete");
		$node->stop;
	}
}
done_testing();
