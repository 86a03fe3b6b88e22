# Copyright (c) 2026, the pgawait authors

# Tables grow into space that was allocated before: while sessions load at the
# same time, after errors and crashes, over the end of a segment, on a promoted
# standby, and when the file is truncated meanwhile.  What is not needed is given back.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# bytes that a file system may need for its own data about a file
my $OVERHEAD = 1024 * 1024;

my $node;

sub path
{
	my ($table) = @_;

	return $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$table')");
}

# How much more than its length does a file take?
sub slack
{
	my ($path) = @_;
	my @stat = stat($path) or die "$path: $!";

	return $stat[12] * 512 - $stat[7];
}

sub slack_goes
{
	my ($path, $name) = @_;
	my $attempts = 10 * $PostgreSQL::Test::Utils::timeout_default;

	usleep(100_000) while (slack($path) > $OVERHEAD && $attempts-- > 0);
	cmp_ok(slack($path), '<=', $OVERHEAD, $name);
}

# The heap is sound, and has so many rows.
sub check
{
	my ($table, $rows, $name) = @_;

	is( $node->safe_psql(
			'postgres', "SELECT count(*), count(*) FILTER (WHERE filler = repeat('x', 1000)), (SELECT count(*) FROM verify_heapam('$table')) FROM $table"),
		"$rows|$rows|0", "$name: all rows are there, and sound");
}

sub rows
{
	my ($n) = @_;

	return "SELECT i, repeat('x', 1000) FROM generate_series(1, $n) i";
}

my %methods = io_methods();
foreach my $method (sort keys %methods)
{
  SKIP:
	{
		skip $methods{$method}, 1 if $methods{$method};

		$node = PostgreSQL::Test::Cluster->new($method);
		$node->init(allows_streaming => 1);
		$node->append_conf(
			'postgresql.conf', qq{
			io_method = $method
			io_max_concurrency = 32
			shared_buffers = 16MB
			autovacuum = off
			max_wal_size = 4GB
			max_connections = 40
		});
		$node->start;
		$node->safe_psql('postgres', 'CREATE EXTENSION aio; CREATE EXTENSION amcheck;');
		my $create = 'CREATE TABLE %s (i int, filler text STORAGE PLAIN)';

		# one session, in many transactions
		$node->safe_psql('postgres', sprintf($create, 'single'));
		my $session = $node->background_psql('postgres');
		$session->query_safe('INSERT INTO single ' . rows(2500)) foreach (1 .. 8);
		my $path = path('single');
		my ($hits, $waits, $requests) = split /\|/, $session->query_safe('SELECT * FROM aio_session_preallocation()');
		cmp_ok($hits, '>', 10, "$method: files grow into preallocated space");
		cmp_ok($requests, '>', 0, "$method: which has been asked for");
		slack_goes($path, "$method: what a session has not used is given back when it does nothing");
		$session->query_safe('BEGIN');
		my $excess = -$OVERHEAD;
		foreach (1 .. 12)
		{
			$session->query_safe('INSERT INTO single ' . rows(2500));
			my $over = slack($path) - (-s $path) / 4;
			$excess = $over if $over > $excess;
		}
		cmp_ok($excess, '<=', $OVERHEAD, "$method: at most a quarter of the file is preallocated");
		$session->query_safe('COMMIT');
		$session->quit;
		slack_goes($path, "$method: and when it ends");
		check('single', 50000, "$method, one session");

		# statistics count what a client has asked for, idle or at its end
		my %commits;
		foreach my $n (1, 2500)
		{
			my $database = "counts_$n";

			$node->safe_psql('postgres', "CREATE DATABASE $database");
			$session = $node->background_psql($database);
			$session->query_safe('CREATE EXTENSION aio');
			$session->query_safe(sprintf($create, 't'));
			foreach my $time (1 .. 2)
			{
				$session->query_safe('INSERT INTO t ' . rows($n)) foreach (1 .. 8);
				$path = $node->data_dir . '/' . $session->query_safe("SELECT pg_relation_filepath('t')");
				slack_goes($path, "$method: $n rows at a time, given back") if $time == 1;
			}
			cmp_ok($session->query_safe('SELECT extensions FROM aio_session_preallocation()'), $n > 1 ? '>' : '==', 0, "$method: $n rows at a time, preallocated or not");
			$session->quit;
			$node->poll_query_until('postgres', "SELECT numbackends = 0 FROM pg_stat_database WHERE datname = '$database'");
			slack_goes($path, "$method: $n rows at a time, given back at its end");
			$commits{$n} = $node->safe_psql('postgres', "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = '$database'");
		}
		is($commits{2500}, $commits{1}, "$method: giving back is not counted as a transaction");

		# nor is a small table given any
		$session = $node->background_psql('postgres');
		$session->query_safe(sprintf($create, 'small'));
		$session->query_safe('INSERT INTO small ' . rows(3000));
		is($session->query_safe('SELECT requests FROM aio_session_preallocation()'), 0, "$method: nothing is preallocated for a small table");
		$session->quit;

		# many sessions: no block is used twice, and few are left unused
		$node->safe_psql('postgres', sprintf($create, 'many'));
		my $script = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
		append_to_file($script, "INSERT INTO many " . rows(250) . ";\n") if !-e $script;
		$node->command_ok([ 'pgbench', '-n', '-c' => 32, '-j' => 2, '-t' => 20, '-f' => $script, 'postgres' ],
			"$method: 32 sessions load one table");
		check('many', 160_000, "$method, 32 sessions");
		my ($blocks, $used) = split /\|/, $node->safe_psql('postgres', "SELECT pg_relation_size('many') / 8192, count(DISTINCT (ctid::text::point)[0]) FROM many");
		cmp_ok($blocks - $used, '<=', 64 + $blocks / 100, "$method: of $blocks blocks, $used are used");
		slack_goes(path('many'), "$method: 32 sessions leave nothing past the end");

		# errors
		$node->safe_psql('postgres', sprintf($create, 'failing'));
		$session = $node->background_psql('postgres', on_error_stop => 0);
		$session->query_safe('INSERT INTO failing ' . rows(8000));
		$session->query("INSERT INTO failing SELECT 1 / (20000 - i), repeat('x', 1000) FROM generate_series(1, 20000) i");
		like($session->{stderr}, qr/division by zero/, "$method: a statement fails after it has extended the table");
		$session->{stderr} = '';
		slack_goes(path('failing'), "$method: it leaves nothing past the end");
		$session->query_safe('VACUUM (TRUNCATE off) failing');
		$blocks = $session->query_safe("SELECT pg_relation_size('failing') / 8192");
		$session->query_safe('INSERT INTO failing ' . rows(20000));
		# but for those that VACUUM has left alone because they were being written
		cmp_ok($session->query_safe("SELECT pg_relation_size('failing') / 8192"), '<=', $blocks + 500, "$method: its blocks are used again");
		check('failing', 28000, "$method, after an error");

		# truncation while space is preallocated
		my $other = $node->background_psql('postgres');
		$session->query_safe('BEGIN; ' . sprintf($create, 'cut') . '; INSERT INTO cut ' . rows(20000) . '; TRUNCATE cut; INSERT INTO cut ' . rows(1000) . '; COMMIT');
		check('cut', 1000, "$method, truncated in its transaction");
		$session->query_safe('INSERT INTO cut ' . rows(20000) . '; DELETE FROM cut WHERE i > 100');
		# it stops half way if anybody wants the table meanwhile, as who gives space back
		foreach (1 .. 10)
		{
			$other->query_safe('VACUUM cut');
			$blocks = $other->query_safe("SELECT pg_relation_size('cut') / 8192");
			last if $blocks < 1000;
		}
		cmp_ok($blocks, '<', 1000, "$method: VACUUM has truncated the table");
		$session->query_safe('INSERT INTO cut ' . rows(20000));
		cmp_ok(slack(path('cut')), '>=', -8192, "$method: the table has no holes");
		check('cut', 20200, "$method, truncated by VACUUM");
		$_->quit foreach ($session, $other);

		# a crash leaves what was allocated; VACUUM finds it
		$session = $node->background_psql('postgres');
		$session->query_safe(sprintf($create, 'crash'));
		$session->query_safe('INSERT INTO crash ' . rows(20000));
		$path = path('crash');
		$session->query_safe('INSERT INTO crash ' . rows(20));
		my $before = slack($path);
		$node->stop('immediate');
		$node->start;
		check('crash', 20020, "$method, after a crash");
		note("$before bytes were allocated past the end, " . slack($path) . ' are after the crash');
		$node->safe_psql('postgres', 'VACUUM crash');
		slack_goes($path, "$method: VACUUM has what a crash has left given back");

		# truncation leaves segments empty, and an allocation may be done after it
		open(my $empty, '>', "$path.1") or die "$path.1: $!";
		close($empty);
		system_or_bail('fallocate', '--keep-size', '--length', '16MiB', "$path.1");
		cmp_ok(slack("$path.1"), '>', $OVERHEAD, "$method: space of an empty segment");
		$node->safe_psql('postgres', 'VACUUM crash');
		slack_goes("$path.1", "$method: VACUUM has that of an empty segment given back");

		# the end of a segment
		if ($method ne 'worker')
		{
			$session = $node->background_psql('postgres');
			$session->query_safe('CREATE UNLOGGED TABLE large (i int, filler text STORAGE PLAIN)');
			$session->query_safe("INSERT INTO large SELECT i, repeat('x', 8000) FROM generate_series(1, 140000) i");
			$path = path('large');
			is(-s $path, 1024 * 1024 * 1024, "$method: one segment is full");
			is($session->query_safe("SELECT count(*), sum(length(filler)) FROM large"), '140000|1120000000', "$method: rows in two segments");
			$session->quit;
			slack_goes("$path.1", "$method: the second segment has nothing past its end");
			slack_goes($path, "$method: nor has the first");
			$node->safe_psql('postgres', 'DROP TABLE large');
		}
		# a standby, promoted after its primary has died in the middle of a load
		$node->safe_psql('postgres', sprintf($create, 'replicated'));
		$node->backup('b');
		my $standby = PostgreSQL::Test::Cluster->new("${method}_standby");
		$standby->init_from_backup($node, 'b', has_streaming => 1);
		$standby->start;
		$node->safe_psql('postgres', 'INSERT INTO replicated ' . rows(20000));
		$session = $node->background_psql('postgres');
		$session->query_safe('BEGIN; INSERT INTO replicated ' . rows(20000));
		$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO replicated " . rows(1_000_000) . ";\n");
		$node->poll_query_until('postgres', "SELECT pg_relation_size('replicated') > 100 * 1024 * 1024");
		$node->wait_for_replay_catchup($standby, $node);
		$node->stop('immediate');
		$session->{run}->finish;
		$standby->promote;
		$standby->safe_psql('postgres', 'INSERT INTO replicated ' . rows(20000));
		is( $standby->safe_psql('postgres', "SELECT count(*), (SELECT count(*) FROM verify_heapam('replicated')) FROM replicated"),
			'40000|0', "$method: a promoted standby has what was committed, and goes on");
		$standby->stop;
		$node->start;

		# what VACUUM has not used may be lost
		$node->safe_psql('postgres', 'CREATE TABLE lost AS SELECT generate_series(1, 1000) AS i; CREATE INDEX lost_i ON lost (i); DELETE FROM lost WHERE i % 3 = 0');
		$path = path('lost_i');
		$node->stop;
		unlink($path) or die "$path: $!";
		$node->start;
		$node->command_ok([ 'psql', '-d' => 'postgres', '-c' => 'VACUUM (INDEX_CLEANUP off, FREEZE) lost' ], "$method: a table whose index is lost is vacuumed");

		$node->stop;
		command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], "$method: checksums are right");
	}
}

# Space that was requested before the preallocation was lost comes later: what is
# left is given back after that.
SKIP:
{
	skip 'server is built without injection points', 26 if ($ENV{enable_injection_points} // '') ne 'yes';

	my $point = 'aio-worker-after-reopen';
	$node = PostgreSQL::Test::Cluster->new('late');
	$node->init;
	$node->append_conf(
		'postgresql.conf', q{
		io_method = worker
		io_workers = 1
		aio.wal_write_ahead = 0
		bgwriter_lru_maxpages = 0
		shared_buffers = 128MB
		autovacuum = off
		checkpoint_timeout = 1h
		max_prepared_transactions = 2
	});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');
	my ($session, $control) = map { $node->background_psql('postgres') } 1 .. 2;
	# nobody may need the worker for anything else while it is held up
	my $held = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'io worker' AND wait_event = '$point'";
	$control->query_safe("$held; SELECT injection_points_attach('nowhere', 'wait'); SELECT injection_points_detach('nowhere')");

	$session->query_safe('BEGIN; CREATE TABLE late (i int, filler text STORAGE PLAIN); INSERT INTO late ' . rows(20000));
	$control->query_safe("SELECT injection_points_attach('$point', 'wait')");
	foreach (1 .. 1000)
	{
		$session->query_safe('INSERT INTO late ' . rows(50));
		last if $control->query_safe($held);
	}
	is($control->query_safe($held), 1, 'space is on its way');
	$session->query_safe('TRUNCATE late; INSERT INTO late ' . rows(1000) . '; COMMIT');
	is($session->query_safe('SELECT count(*) FROM late'), 1000, 'who has asked for it does not wait for it');
	$control->query_safe("SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
	slack_goes(path('late'), 'and gives it back');
	$_->quit foreach ($session, $control);
	is($node->safe_psql('postgres', 'SELECT count(*) FROM late'), 1000, 'the table has what it should');

	# a session that is idle does not wait for a device
	my $trims = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'background writer' AND wait_event = 'aio-trim'};
	my $idle = $node->background_psql('postgres');
	my $locks = 'SELECT count(*) FROM pg_locks WHERE pid = ' . $idle->query_safe('SELECT pg_backend_pid()');
	$node->safe_psql('postgres', "SELECT injection_points_attach('aio-trim', 'wait')");
	$idle->query_safe('INSERT INTO late ' . rows(20000));
	ok($node->poll_query_until('postgres', $trims, '1'), 'space is being given back');
	is($node->safe_psql('postgres', $locks), 0, 'by nobody who has a lock');
	is($idle->query_safe('CREATE TABLE another AS SELECT generate_series(1, 10000) AS n; SELECT count(*) FROM another'), 10000,
		'the session goes on meanwhile');
	$idle->query_until(qr/begun/, "\\echo begun\nTRUNCATE late;\n");
	ok($node->poll_query_until('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND wait_event = 'DataFileTruncate'}, '1'),
		'but for the same file');
	$node->safe_psql('postgres', "SELECT injection_points_detach('aio-trim'); SELECT injection_points_wakeup('aio-trim')");
	$idle->query_safe('INSERT INTO late ' . rows(1000));
	is($node->safe_psql('postgres', 'SELECT count(*) FROM late'), 1000, 'which is as it should be');

	# nor does it need anything that may be locked: it has no transaction
	my $locker = $node->background_psql('postgres');
	# of some loads nothing is left
	my $path = path('late');
	$idle->query_safe('BEGIN; INSERT INTO late ' . rows(20000));
	$idle->query_safe('INSERT INTO late ' . rows(500)) while slack($path) <= $OVERHEAD;
	$locker->query_safe('BEGIN; LOCK pg_class, pg_attribute');
	$idle->query_safe('COMMIT');
	slack_goes($path, 'a session gives space back while catalogs are locked');
	is($idle->query_safe('SELECT 1'), 1, 'and goes on');
	$locker->query_safe('COMMIT');
	$idle->query_safe('BEGIN; CREATE TABLE prepared (LIKE late); INSERT INTO prepared ' . rows(20000));
	$path = $node->data_dir . '/' . $idle->query_safe("SELECT pg_relation_filepath('prepared')");
	$idle->query_safe("PREPARE TRANSACTION 'prepared'");
	slack_goes($path, 'what a prepared transaction has not used is given back');
	$idle->query_safe("COMMIT PREPARED 'prepared'");

	# nothing is given back of a file while another session is extending it
	my $changes = q{SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'aio-file-change'};
	my $deferred = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'background writer' AND wait_event = 'aio-trim-deferred'};
	$path = path('late');
	$idle->query_safe('BEGIN; INSERT INTO late ' . rows(20000));
	$idle->query_safe('INSERT INTO late ' . rows(500)) while slack($path) <= $OVERHEAD;
	my $before = $idle->query_safe('SELECT count(*) FROM late');
	$node->safe_psql('postgres', "SELECT injection_points_attach('aio-trim-deferred', 'wait'), injection_points_attach('aio-file-change', 'wait')");
	$locker->query_until(qr/begun/, "\\echo begun\nINSERT INTO late " . rows(1000) . ";\n");
	ok($node->poll_query_until('postgres', $changes, '1'), 'a session extends a file');
	$idle->query_safe('COMMIT');
	ok($node->poll_query_until('postgres', $deferred, '1'), 'space stays meanwhile');
	cmp_ok(slack(path('late')), '>', $OVERHEAD, 'all of it');
	$node->safe_psql('postgres', "SELECT injection_points_detach('aio-trim-deferred'), injection_points_detach('aio-file-change')");
	$node->safe_psql('postgres', "SELECT injection_points_wakeup('aio-file-change'), injection_points_wakeup('aio-trim-deferred')");
	is($locker->query_safe('SELECT count(*) FROM late'), $before + 1000, 'the table has what it should');
	slack_goes(path('late'), 'and space is given back after that');
	$locker->quit;
	$locker = $node->background_psql('postgres', on_error_stop => 0);
	$node->safe_psql('postgres', "SELECT injection_points_attach('aio-file-change', 'error')");
	my ($output, $failed) = $locker->query('INSERT INTO late ' . rows(1000));
	is($failed, 1, 'a session fails while it extends a file');
	$node->safe_psql('postgres', "SELECT injection_points_detach('aio-file-change')");
	$idle->query_safe('BEGIN; INSERT INTO late ' . rows(20000));
	$idle->query_safe('INSERT INTO late ' . rows(500)) while slack($path) <= $OVERHEAD;
	$idle->query_safe('COMMIT');
	slack_goes(path('late'), 'which does not change any more then');
	$locker->quit;

	# an error of the background writer is the end of it
	$node->safe_psql('postgres', "SELECT injection_points_attach('aio-trim', 'error')");
	my $log = -s $node->logfile;
	$idle->query_safe('BEGIN; INSERT INTO late ' . rows(20000));
	$idle->query_safe('INSERT INTO late ' . rows(500)) while slack($path) <= $OVERHEAD;
	$before = $idle->query_safe('SELECT count(*) FROM late');
	$idle->query_safe('COMMIT');
	$node->wait_for_log(qr/error triggered for injection point aio-trim/, $log);
	$node->safe_psql('postgres', "SELECT injection_points_detach('aio-trim')");
	is($idle->query_safe('INSERT INTO late ' . rows(1000) . '; SELECT count(*) FROM late'), $before + 1000, 'after which others go on');

	# nor does it wait for space that it has asked for itself, after it has read ahead
	$idle->query_safe(q{CREATE TABLE source (i int PRIMARY KEY, filler text STORAGE PLAIN); INSERT INTO source SELECT i, repeat('x', 1000)
		FROM generate_series(1, 40000) i ORDER BY md5(i::text); VACUUM ANALYZE source});
	$idle->quit;
	$node->restart;
	($session, $control) = map { $node->background_psql('postgres') } 1 .. 2;
	$control->query_safe("$held; SELECT injection_points_attach('nowhere', 'wait'); SELECT injection_points_detach('nowhere')");
	$session->query_safe(q{SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SELECT pg_stat_clear_snapshot()});
	$session->query_safe('INSERT INTO late ' . rows(20000) . ' \\; SELECT count(filler) FROM (SELECT * FROM source WHERE i < 20000 ORDER BY i) s'
		  . " \\; SELECT injection_points_attach('$point', 'wait')"
		  . ' \\; DO $$ BEGIN FOR n IN 1 .. 1000 LOOP INSERT INTO late ' . rows(50)
		  . "; PERFORM pg_stat_clear_snapshot(); EXIT WHEN ($held) > 0; END LOOP; END \$\$");
	is($control->query_safe($held), 1, 'space is on its way again');
	is($session->query_safe('SELECT 1'), 1, 'and a session that has read ahead does not wait for it');
	$control->query_safe("SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
	$_->quit foreach ($session, $control);
	$idle = $node->background_psql('postgres');

	# a file becomes that of another relation than it was extended for
	$idle->query_safe('ALTER TABLE late ALTER i TYPE bigint');
	slack_goes(path('late'), 'what a rewritten table has not used is given back');
	$idle->query_safe('CREATE MATERIALIZED VIEW seen AS SELECT * FROM late; REFRESH MATERIALIZED VIEW seen');
	slack_goes(path('seen'), 'and what a materialized view has not used that is refreshed');
	$idle->quit;

	# what is left of a file system is for those who need it now, WAL above all
	$node->safe_psql('postgres', "CREATE EXTENSION aio; SELECT injection_points_attach('aio-no-room', 'notice')");
	my $requests = 'INSERT INTO late ' . rows(20000) . '; SELECT requests FROM aio_session_preallocation()';
	is($node->safe_psql('postgres', $requests), 0, 'nothing is preallocated where there is little room');
	$node->safe_psql('postgres', "SELECT injection_points_detach('aio-no-room')");
	cmp_ok($node->safe_psql('postgres', $requests), '>', 0, 'and again when there is more');
	$node->stop;
}
done_testing();
