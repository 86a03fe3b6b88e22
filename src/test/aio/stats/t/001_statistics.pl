
# Copyright (c) 2026, the pgawait authors

# Cumulative statistics: they agree with upstream's and with the system calls
# that a process makes, survive a restart, begin anew after a crash, and are
# gone with the index that they are about.  And what tasks await, while they do.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my @usable = ('sync', grep { !$methods{$_} } sort keys %methods);
my $insert = q{INSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 20000)};

# Is there a program that shows the system calls of a process?
sub can_trace
{
	my $child = fork() // die $!;
	exec('sleep', 100) if $child == 0;
	my $tracer = IPC::Run::start([ 'strace', '-p', $child ], '>', \my $out, '2>', \my $err, IPC::Run::timeout(10));
	eval { $tracer->pump until $err =~ /\n/ };
	my $can = ($err // '') =~ /attached/;
	kill 'KILL', $child;
	waitpid $child, 0;
	eval { $tracer->finish };
	return $can;
}
my $can_trace = eval { can_trace() };

# Run a query and count system calls meanwhile: how many there were, and the sum
# of what they have returned.
sub traced
{
	my ($session, $calls, $query) = @_;

	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $trace = "$PostgreSQL::Test::Utils::tmp_check/trace";
	my $tracer = IPC::Run::start([ 'strace', '-e', "trace=$calls", '-o', $trace, '-p', $pid ], '>', \my $out, '2>', \my $err);
	$tracer->pump until $err =~ /attached/;
	$session->query_safe($query);
	$tracer->signal('INT');
	$tracer->finish;
	my @returned = map { /= (\d+)$/ ? $1 : () } split /\n/, slurp_file($trace);
	my $sum = 0;
	$sum += $_ foreach @returned;
	return (scalar @returned, $sum);
}

foreach my $method (@usable)
{
	my $node = PostgreSQL::Test::Cluster->new("main_$method");
	$node->init(extra => ['--data-checksums']);
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		fsync = on
		debug_io_direct = '@{[ direct_io_works() ? 'data' : '' ]}'
		shared_buffers = 4MB
		max_connections = 10
		io_max_concurrency = 32
		bgwriter_lru_maxpages = 0
		autovacuum = off
		checkpoint_timeout = 1h
		stats_fetch_consistency = none
		max_prepared_transactions = 2
		log_statement = none
	});
	$node->start;
	$node->safe_psql('postgres', qq{
		CREATE EXTENSION aio;
		CREATE TABLE t (a uuid, b uuid);
		CREATE INDEX t_a ON t (a) WITH (fillfactor = 40);
		CREATE INDEX t_b ON t (b) WITH (fillfactor = 40);
		INSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 60000);
		CHECKPOINT});

	# a controlled run: what upstream counts, and what the kernel sees
	my $session = $node->background_psql('postgres');
	my $begin = q{SELECT pg_stat_force_next_flush(); SELECT pg_stat_reset_shared('io'), aio_stat_reset()};
	$session->query_safe($begin);
	$session->query_safe("$insert; SELECT count(*) FROM t; SELECT pg_stat_force_next_flush()");
	is($session->query_safe(q{
		SELECT io.reads - aio.started, io.read_bytes - aio.bytes, aio.started > 1000
		FROM (SELECT sum(reads) AS reads, sum(read_bytes) AS read_bytes FROM pg_stat_io WHERE backend_type = 'client backend' AND object <> 'wal') io,
			 (SELECT * FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'read') aio}),
		'0|0|t', "$method: reads are those of pg_stat_io");
	is($session->query_safe(q{
		SELECT io.writes >= aio.started AND io.write_bytes >= aio.bytes, aio.bytes > 0
		FROM (SELECT sum(writes) AS writes, sum(write_bytes) AS write_bytes FROM pg_stat_io WHERE backend_type = 'client backend' AND object <> 'wal') io,
			 (SELECT coalesce(sum(started), 0) AS started, coalesce(sum(bytes), 0) AS bytes FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'write') aio}),
		$method eq 'sync' || !direct_io_works() ? 't|f' : 't|t', "$method: writes are some of those of pg_stat_io");
	is($session->query_safe(q{
		SELECT count(*) FILTER (WHERE wal <> io) FROM (
			SELECT sum(writes) AS io, (SELECT coalesce(sum(started), 0) FROM pg_stat_aio a WHERE kind = 'wal_write' AND a.backend_type = i.backend_type) AS wal
			FROM pg_stat_io i WHERE object = 'wal' AND context = 'normal' AND backend_type = 'client backend' GROUP BY backend_type)}),
		0, "$method: and writes of WAL") if $method ne 'sync';
	is($session->query_safe(q{SELECT sum(started - completed_inline) = 0 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind IN ('read', 'write')}),
		$method eq 'sync' ? 't' : 'f', "$method: completed at once, or not");
	is($session->query_safe(q{
		SELECT string_agg(kind, ' ') FROM (
			SELECT kind, sum(completed) AS n, (SELECT sum(started) FROM pg_stat_aio_depth d WHERE d.kind = l.kind) AS m,
				   (SELECT sum(started) FROM pg_stat_aio a WHERE a.kind = l.kind) AS s
			FROM pg_stat_aio_latency l WHERE kind IN ('read', 'write', 'preallocation') GROUP BY kind)
		WHERE m <> s OR n NOT BETWEEN s - 100 AND s + 500}), '', "$method: histograms are about the same I/Os");
	is($session->query_safe(q{
		SELECT bool_and(suspended > 0 AND waited > 0 AND wait_time > 0 AND max_in_flight > 1 AND avg_in_flight BETWEEN 1 AND max_in_flight
			AND avg_batch BETWEEN 1 AND max_batch AND stats_reset > now() - interval '1 hour')
		FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'read'}),
		't', "$method: tasks were suspended, and the session waited") if $method ne 'sync';

	SKIP:
	{
		skip 'system calls cannot be traced here', 1 unless $can_trace;
		skip 'I/O workers make the system calls', 1 unless $method eq 'sync' || $method eq 'io_uring';
		# what these statements read of the catalogs is in memory the second time
		$session->query_safe("SELECT pg_backend_pid(); $begin; $begin");
		my ($calls, $sum) = traced($session, $method eq 'sync' ? 'pread64,preadv,preadv2' : 'io_uring_enter',
			"$insert; SELECT count(*) FROM t; SELECT pg_stat_force_next_flush()");
		my $started = $session->query_safe(q{
			SELECT sum(started - CASE WHEN current_setting('aio.effective_io_method') = 'io_uring' THEN completed_inline ELSE 0 END)
			FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind IN ('read', 'write', 'preallocation', 'wal_write')});
		my $seen = $method eq 'sync' ? $calls : $sum;
		# it may have read a page of a catalog before or after
		ok($started > 1000 && abs($started - $seen) <= 10, "$method: the kernel has seen as many") or diag("started $started, seen $seen");
	}

	# by index
	is($session->query_safe(q{
		SELECT string_agg(format('%s %s %s %s', indexrelname, entries > 19000, batches > 0, reads > 0), ', ' ORDER BY indexrelname)
		FROM pg_stat_aio_relation WHERE relname = 't' AND schemaname = 'public'}),
		't_a t t t, t_b t t t', "$method: entries of each index");
	$session->query_safe(q{SELECT aio_stat_reset_index('t_a'::regclass)});
	is($session->query_safe(q{SELECT entries, batches, reads, stats_reset IS NOT NULL FROM pg_stat_aio_relation WHERE indexrelname = 't_a'}),
		'0|0|0|t', "$method: those of an index can be reset");
	my $index = $session->query_safe(q{SELECT 't_b'::regclass::oid});
	my $exists = "SELECT (aio_stat_index($index)).entries IS NOT NULL";
	$session->query_safe('BEGIN; DROP INDEX t_b; ROLLBACK; BEGIN; SAVEPOINT s; DROP INDEX t_b; ROLLBACK TO s; COMMIT');
	is($session->query_safe($exists), 't', "$method: an index that is not dropped keeps its own");
	# another session holds the entry: in the shared hash table it stays, marked
	my $holder = $node->background_psql('postgres');
	$holder->query_safe("SET aio.debug_rows_before_batch = 0; INSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 100); SELECT pg_stat_force_next_flush()");
	$session->query_safe('REINDEX INDEX CONCURRENTLY t_b');
	$index = $session->query_safe(q{SELECT 't_b'::regclass::oid});
	is($session->query_safe("SELECT (aio_stat_index($index)).entries > 19000, to_regclass('t_b') IS NOT NULL"), 't|t', "$method: an index that takes another one's place has its statistics");
	$session->query_safe('BEGIN; SAVEPOINT s; DROP INDEX t_b; ROLLBACK TO s; DROP INDEX t_b; COMMIT');
	$exists = "SELECT (aio_stat_index($index)).entries IS NOT NULL";
	is($session->query_safe($exists), 'f', "$method: and they are dropped with it");

	# whichever way an index goes
	my $made = 'CREATE INDEX t_b ON t (b); INSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 3000)';
	my $left = sub {
		my ($how, $drop, $state) = @_;
		my $sure = $session->query_safe("$made; SELECT 't_b'::regclass::oid") =~ /(\d+)$/ ? $1 : die;
		$session->query_safe('SELECT pg_stat_force_next_flush()');
		is($session->query_safe("SELECT (aio_stat_index($sure)).entries IS NOT NULL"), 't', "$method, $how: an index has statistics");
		$session->query_safe($drop);
		is($session->query_safe("SELECT (aio_stat_index($sure)).entries IS NOT NULL"), $state // 'f', "$method, $how: and then not");
	};
	$left->('concurrently', 'DROP INDEX CONCURRENTLY t_b');
	$left->('in a prepared transaction', q{BEGIN; DROP INDEX t_b; PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'});
	$left->('in one that is rolled back', q{BEGIN; DROP INDEX t_b; PREPARE TRANSACTION 'p'; ROLLBACK PREPARED 'p'}, 't');
	$session->query_safe('DROP INDEX t_b');
	my $never = $session->query_safe("BEGIN; $made; SELECT 't_b'::regclass::oid; ROLLBACK; SELECT pg_stat_force_next_flush()") =~ /(\d+)/ ? $1 : die;
	is($session->query_safe("SELECT (aio_stat_index($never)).entries IS NOT NULL"), 'f', "$method: one that has never been has none");
	$holder->quit;
	$session->query_safe('CREATE INDEX t_b ON t (b)');

	# errors, of reading
	$session->query_safe('CREATE TABLE broken AS SELECT generate_series(1, 1000) AS i; CHECKPOINT');
	my $file = $session->query_safe(q{SELECT pg_relation_filepath('broken')});
	$session->quit;
	$node->safe_psql('postgres', 'SELECT aio_stat_reset()');
	$node->stop;
	ok(-e $node->data_dir . '/pg_stat/pgawait-4-31-32.stat', "$method: statistics are in a file of their own");
	$node->corrupt_page_checksum($file, 8192);
	$node->start;
	isnt($node->psql('postgres', 'SELECT count(*) FROM broken', stderr => \my $ignored), 0, "$method: a page cannot be read");
	ok($node->poll_query_until('postgres', q{SELECT sum(failed) > 0 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'read'}), "$method: a failure is counted");

	# permissions
	$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN; CREATE ROLE somebody LOGIN IN ROLE pg_read_all_stats');
	is($node->psql('postgres', 'SELECT count(*) >= 0 FROM pg_stat_aio, pg_stat_aio_latency, pg_stat_aio_depth; SELECT count(*) > 0 FROM pg_stat_aio_relation',
		extra_params => [ '-U', 'nobody' ]), 0, "$method: everybody may look");
	foreach my $reset ('aio_stat_reset()', 'aio_stat_reset_index(1)')
	{
		my ($ret, $out, $err) = $node->psql('postgres', "SELECT $reset", extra_params => [ '-U', 'nobody' ]);
		like($err, qr/permission denied for function/, "$method: but not call $reset");
	}

	# tasks that wait: no I/O worker does anything
	if ($method eq 'worker')
	{
		my $watcher = $node->background_psql('postgres');
		my $look = q{
			SELECT pid, datname = current_database(), relation::text LIKE 't\_%' AND relation::oid = relid, awaits, fork,
				   block > 0 AND block < pg_relation_size(relation) / 8192, blocks, lsn IS NULL, since BETWEEN now() - interval '1 day' AND clock_timestamp()
			FROM pg_aio_tasks WHERE task > 0 AND scope > 0 AND reltablespace <> 0 AND relfilenode = pg_relation_filenode(relid) LIMIT 1};
		my $masked = q{SELECT bool_and(pid > 0), bool_or(relid IS NOT NULL OR awaits IS NOT NULL OR scope IS NOT NULL OR since IS NOT NULL OR block IS NOT NULL) FROM pg_aio_tasks};
		# whatever these read is in memory afterwards
		$watcher->query_safe($_) foreach $look, $masked, "SET ROLE nobody; $masked; RESET ROLE", "SET ROLE somebody; $masked; RESET ROLE", q{SELECT count(*) FROM pg_stat_activity};
		my $loader = $node->background_psql('postgres');
		my $pid = $loader->query_safe('SELECT pg_backend_pid()');
		$loader->query_safe('SELECT count(*) FROM t');
		my @workers = split /\n/, $watcher->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'});
		kill 'STOP', @workers;
		$loader->query_until(qr/begun/, "\\echo begun\nINSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 50);\n");
		wait_until($watcher, q{SELECT count(*) > 0 FROM aio_tasks()});
		is($watcher->query_safe($look), "$pid|t|t|read|main|t|1|t|t", 'a task that waits is shown');
		is($watcher->query_safe("SET ROLE nobody; $masked; RESET ROLE"), 't|f', 'its process, to everybody');
		is($watcher->query_safe("SET ROLE somebody; $masked; RESET ROLE"), 't|t', 'and all of it, to those who may see statistics');
		kill 'CONT', @workers;
		$loader->query_safe('SELECT 1');
		is($watcher->query_safe('SELECT count(*) FROM aio_tasks()'), 0, 'and is not when it has ended');
		$_->quit foreach $watcher, $loader;
	}

	# a restart keeps them
	$node->safe_psql('postgres', "$insert; SELECT pg_stat_force_next_flush()");
	my $kept = q{SELECT sum(bytes) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'read'; SELECT entries FROM pg_stat_aio_relation WHERE indexrelname = 't_a'};
	my @before = split /\n/, $node->safe_psql('postgres', $kept);
	my $theirs = $node->safe_psql('postgres', q{SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 't'});
	$node->restart;
	my @after = split /\n/, $node->safe_psql('postgres', $kept);
	cmp_ok($after[0], '>=', $before[0], "$method: statistics are there after a restart");
	is($after[1], $before[1], "$method: those of an index, too");
	ok(!-e $node->data_dir . '/pg_stat/pgawait-4-31-32.stat', "$method: their file is not, while the server runs");

	# PostgreSQL without us does not know their file, nor do they need upstream's
	$node->stop;
	unlink $node->data_dir . '/pg_stat/pgawait-4-31-32.stat' or die $!;
	$node->start;
	is($node->safe_psql('postgres', q{SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 't'}), $theirs, "$method: without that file, upstream's are there");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_aio_relation}), 0, "$method: and ours are not");
	unlike(slurp_file($node->logfile), qr/corrupted statistics|WARNING/, "$method: which is no error");

	# statistics of another time are not taken for those of the server that ran last
	$node->safe_psql('postgres', "$insert; SELECT pg_stat_force_next_flush()");
	$node->stop;
	my $file_name = $node->data_dir . '/pg_stat/pgawait-4-31-32.stat';
	rename $file_name, "$file_name.old" or die $!;
	$node->start;
	$node->stop;
	rename "$file_name.old", $file_name or die $!;
	$node->start;
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_aio_relation}), 0, "$method: old statistics are none");
	is($node->safe_psql('postgres', q{SELECT n_tup_ins > 0 FROM pg_stat_user_tables WHERE relname = 't'}), 't', "$method: and upstream's are there");

	# a crash loses them
	$node->safe_psql('postgres', "$insert; SELECT pg_stat_force_next_flush()");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_aio_relation}), 2, "$method: they are counted again");
	$node->stop;
	copy_file($node->data_dir . '/pg_stat/pgawait-4-31-32.stat', $node->data_dir . '/pg_stat/old');
	$node->start;
	$node->stop('immediate');
	rename $node->data_dir . '/pg_stat/old', $node->data_dir . '/pg_stat/pgawait-4-31-32.stat' or die $!;
	$node->start;
	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_aio_relation}), 0, "$method: a crash loses them, as upstream's");
	$node->stop;
}

sub copy_file
{
	my ($from, $to) = @_;
	append_to_file($to, slurp_file($from));
}
done_testing();
