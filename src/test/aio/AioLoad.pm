
# Copyright (c) 2026, the pgawait authors

=head1 NAME

AioLoad - servers under an index-bound load, and the checks that follow

=head1 DESCRIPTION

A table with an index of every kind, far larger than shared_buffers, scripts
for pgbench that load it, and a ledger: each transaction notes there, in the
same transaction, by how many rows it has changed the table.

=cut

package AioLoad;

use strict;
use warnings FATAL => 'all';

use Config;
use Exporter 'import';
use Fcntl qw(:DEFAULT);
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(can_shuffle create_cold_node create_loaded_node create_quiet_primary is_needed io_methods lookups_ahead
  pgbench_command check_table check_log direct_io_works rows_file run_and_count run_cold start_after_kill
  wait_until warm_for_injection_points writing_ways);

# The asynchronous I/O methods, each with the reason why it cannot be used
# here, or undef.  AIO_IO_METHOD, in the environment, leaves one of them.
sub io_methods
{
	my %methods = (worker => undef, libaio => libaio_unusable());

	# the message about an invalid value lists the valid ones
	my (undef, $stderr) =
	  run_command [qw(postgres -C invalid -c io_method=invalid)];
	if ($stderr !~ /Available values: .*io_uring/)
	{
		$methods{io_uring} = 'server is built without io_uring';
	}
	else
	{
		# io_uring_setup(1, zeroed parameters)
		my $params = "\0" x 128;
		my $fd = syscall(425, 1, $params);

		$methods{io_uring} = $fd < 0 ? "io_uring cannot be used: $!" : undef;
		POSIX::close($fd) if $fd >= 0;
	}
	if (my $only = $ENV{AIO_IO_METHOD})
	{
		$methods{$_} //= "only $only is tested in this run" foreach grep { $_ ne $only } keys %methods;
	}
	return %methods;
}

# In which ways pages are written, as [I/O method, debug_io_direct]: with sync,
# too, unless AIO_IO_METHOD leaves one of the others.
sub writing_ways
{
	my %methods = io_methods();

	return ((map { [ $_, 'data' ] } grep { !$methods{$_} } sort keys %methods),
		$methods{worker} ? () : [ 'worker', '' ],
		$ENV{AIO_IO_METHOD} ? () : [ 'sync', 'data' ]);
}

# Why the kernel's asynchronous I/O cannot be used here, or undef.
sub libaio_unusable
{
	return 'only Linux has libaio' unless $^O eq 'linux';
	return 'there is no direct I/O here' unless direct_io_works();

	my ($context, $setup, $destroy) = (pack('Q', 0), $Config{archname} =~ /^x86_64/ ? (206, 207) : (0, 1));
	return "libaio cannot be used: $!" if syscall($setup, 1, $context) < 0;
	syscall($destroy, unpack('Q', $context));
	return undef;
}

# Wait until a query in this session returns true.
sub wait_until
{
	my ($session, $query) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $session->query_safe($query) eq 't';
		usleep(100_000);
	}
	die "still false: $query";
}

# Have a session wait at an injection point, and go on.  Only a process that has
# done so may wait at one in a critical section.
sub warm_for_injection_points
{
	my ($control, $session) = @_;

	$control->query_safe(q{SELECT count(*) FROM pg_aios; SELECT injection_points_attach('warm', 'wait'), injection_points_load('warm')});
	$session->query_until(qr/begun/, "\\echo begun\nSELECT injection_points_run('warm');\n");
	wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'warm'});
	$control->query_safe(q{SELECT injection_points_detach('warm'); SELECT injection_points_wakeup('warm')});
}

# Can files here be opened with O_DIRECT?
sub direct_io_works
{
	return 0 unless eval { O_DIRECT() };
	my $name = "$PostgreSQL::Test::Utils::tmp_check/direct_io_probe";
	my $works = sysopen(my $file, $name, O_RDWR | O_CREAT | O_DIRECT());
	close($file) if $works;
	unlink($name);
	return $works;
}

# Create and start a server with few buffers, whose pages are read with direct
# I/O and written by nobody in the background, and whose scans begin with the
# first page, wherever one was before that was cancelled.  'conf' adds to its
# configuration.
sub create_cold_node
{
	my ($name, $io_method, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf(
		'postgresql.conf', qq(
io_method = $io_method
debug_io_direct = '@{[ direct_io_works() ? 'data' : '' ]}'
shared_buffers = 4MB
max_connections = 10
io_max_concurrency = 64
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
synchronize_seqscans = off
));
	$node->append_conf('postgresql.conf', $options{conf} // '');
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION aio; CREATE EXTENSION pg_buffercache');
	return $node;
}

# Create and start a server that can have standbys, and writes no WAL but that of
# what a test does.  'conf' adds to its configuration.
sub create_quiet_primary
{
	my (%options) = @_;
	my $node = PostgreSQL::Test::Cluster->new('primary');

	$node->init(allows_streaming => 1);
	$node->append_conf(
		'postgresql.conf', q(
io_method = worker
autovacuum = off
checkpoint_timeout = 1d
max_wal_size = 4GB
));
	$node->append_conf('postgresql.conf', $options{conf} // '');
	$node->start;
	return $node;
}

# Execute a script on a cold server in a transaction that is rolled back, with
# nothing in memory.  'before' is executed before the transaction, 'after' after
# it.  Returns what they print, and the messages without the places in the source
# that they came from.
sub run_cold
{
	my ($node, $script, %options) = @_;
	my ($output, $errors);

	$node->psql('postgres', qq{
		CHECKPOINT;
		SELECT FROM pg_buffercache_evict_all();
		\\set VERBOSITY verbose
		\\set ON_ERROR_ROLLBACK on
		\\set SHOW_CONTEXT never
		@{[ $options{before} // '' ]};
		BEGIN;
		$script;
		ROLLBACK;
		@{[ $options{after} // '' ]}}, on_error_stop => 0, stdout => \$output, stderr => \$errors);
	$errors = join "\n", grep { !/^(LOCATION|SCHEMA NAME):/ } map { s/^psql:<stdin>:\d+: //r } split /\n/, $errors;
	return ($output, $errors);
}

# What clients' sessions have counted of lookups ahead of need: a column of
# pg_stat_aio.
sub lookups_ahead
{
	my ($node, $column) = @_;
	return $node->safe_psql('postgres', qq{
		SELECT coalesce(sum($column), 0) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'});
}

# How many blocks of relations clients' sessions that have ended have read.
sub blocks_read
{
	my ($node) = @_;

	# a session's last counts are there when it has gone
	$node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'}) or return;
	return $node->safe_psql('postgres', q{
		SELECT sum(read_bytes) / current_setting('block_size')::int FROM pg_stat_io
		WHERE backend_type = 'client backend' AND object = 'relation'});
}

# Run something in sessions of its own, without dead rows of what has run before.
# Returns its result, and how many blocks it has read.
sub run_and_count
{
	my ($node, $run) = @_;

	$node->safe_psql('postgres', q{
		SELECT format('VACUUM (FREEZE) %s', oid::regclass) FROM pg_class
		WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace \gexec});
	my $before = blocks_read($node);
	my $result = $run->();
	return ($result, blocks_read($node) - $before);
}

# Check that a run that looked up this many blocks ahead read about as many as
# one that looks up nothing.  If it looked up others than those that it needs, it
# would read them besides.
sub is_needed
{
	my ($what, $read, $needed, $started) = @_;

	ok($read - $needed < ($started < $needed ? $started : $needed) / 4, $what)
	  or diag("$started lookups, $read blocks instead of $needed");
	return;
}

# Create and start a server, with the table and some rows.  'conf' adds to its
# configuration, other options are those of init().
sub create_loaded_node
{
	my ($name, $io_method, %options) = @_;
	my $conf = delete $options{conf} // '';
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(%options);
	$node->append_conf(
		'postgresql.conf', qq(
io_method = $io_method
# few buffers, but many for each backend
shared_buffers = 8MB
max_connections = 20
autovacuum_naptime = 1s
checkpoint_timeout = 30s
restart_after_crash = on
log_min_messages = warning
));
	$node->append_conf('postgresql.conf', 'debug_io_direct = data')
	  if direct_io_works();
	$node->append_conf('postgresql.conf', $conf);
	$node->start;
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION aio;
		CREATE EXTENSION amcheck;

		CREATE SEQUENCE ids;
		CREATE TABLE load (
			id bigint DEFAULT nextval('ids'),
			u uuid DEFAULT gen_random_uuid(),
			t text DEFAULT md5(random()::text),
			words text[],
			p point DEFAULT point(random() * 1000, random() * 1000),
			slot int,
			changed int DEFAULT 0
		);
		CREATE TABLE ledger (script int, change bigint);

		CREATE FUNCTION rows(n int) RETURNS TABLE (words text[]) LANGUAGE sql AS
		$$SELECT ARRAY[md5((x % 10)::text), md5(random()::text)] FROM generate_series(1, n) x$$;
		INSERT INTO load (words) SELECT * FROM rows(30000);
		INSERT INTO ledger VALUES (0, 30000);
		ALTER TABLE load ADD PRIMARY KEY (u), ADD UNIQUE (slot);
		CREATE INDEX load_t ON load (t, changed);
		CREATE INDEX load_hash ON load USING hash (t);
		CREATE INDEX load_words ON load USING gin (words);
		CREATE INDEX load_words_now ON load USING gin (words) WITH (fastupdate = off);
		CREATE INDEX load_p ON load USING gist (p);
		CREATE INDEX load_spgist ON load USING spgist (t);
		CREATE INDEX load_id ON load USING brin (id);
	});
	# input for COPY, whose other columns get random values
	$node->safe_psql('postgres',
		"COPY (SELECT * FROM rows(300)) TO '" . rows_file() . q{'});
	write_scripts();
	return $node;
}

# Input for COPY into the table's column words.
sub rows_file
{
	return "$PostgreSQL::Test::Utils::tmp_check/rows";
}

sub script_file
{
	my ($number) = @_;
	return "$PostgreSQL::Test::Utils::tmp_check/script$number.sql";
}

# Write the scripts for pgbench.
sub write_scripts
{
	my @scripts = (
		# 0: what matters most
		qq{BEGIN;
		COPY load (words) FROM '@{[ rows_file() ]}';
		INSERT INTO ledger VALUES (0, 300);
		COMMIT;},
		# 1
		q{BEGIN;
		INSERT INTO load (words) SELECT * FROM rows(100);
		INSERT INTO ledger VALUES (1, 100);
		COMMIT;},
		# 2: not HOT
		q{\set n random(0, 255)
		BEGIN;
		WITH chosen AS (SELECT u FROM load WHERE t LIKE lpad(to_hex(:n), 2, '0') || '%' ORDER BY u LIMIT 20 FOR UPDATE SKIP LOCKED)
		UPDATE load SET t = md5(t), changed = changed + 1 FROM chosen WHERE load.u = chosen.u;
		INSERT INTO ledger VALUES (2, 0);
		COMMIT;},
		# 3
		q{\set n random(0, 255)
		WITH chosen AS (SELECT u FROM load WHERE t LIKE lpad(to_hex(:n), 2, '0') || '%' ORDER BY u LIMIT 20 FOR UPDATE SKIP LOCKED),
		gone AS (DELETE FROM load USING chosen WHERE load.u = chosen.u RETURNING 1)
		INSERT INTO ledger SELECT 3, -count(*) FROM gone;},
		# 4: clients collide
		q{\set n random(0, 500)
		WITH kept AS (
			INSERT INTO load (slot, words) SELECT s, '{x}' FROM generate_series(:n, :n + 20) s
			ON CONFLICT (slot) DO UPDATE SET changed = load.changed + 1
			RETURNING load.changed)
		INSERT INTO ledger SELECT 4, count(*) FROM kept WHERE changed = 0;});
	for my $i (0 .. $#scripts)
	{
		unlink(script_file($i));
		append_to_file(script_file($i), $scripts[$i]);
	}
}

# The command line of pgbench; extra arguments are passed on to it.
sub pgbench_command
{
	my ($node, @arguments) = @_;
	return (
		'pgbench', '--no-vacuum', '--client' => 4, '--jobs' => 1,
		(map { ('--file' => script_file($_) . '@' . ($_ == 0 ? 3 : 1)) } 0 .. 4),
		@arguments,
		'--host' => $node->host, '--port' => $node->port, 'postgres');
}

# Start a server whose postmaster was killed.  Its orphans may take a moment to
# notice, and hold the shared memory until then.
sub start_after_kill
{
	my ($node) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $node->start(fail_ok => 1);
		# forgets the process that has not started
		$node->stop('immediate', fail_ok => 1);
		usleep(100_000);
	}
	die 'server does not start after its postmaster was killed';
}

# Can tasks be made to suspend wherever that is permitted?
sub can_shuffle
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_suspend'});
}

# Table, indexes and ledger agree, and nothing is held.
sub check_table
{
	my ($node, $what) = @_;

	is( $node->safe_psql(
			'postgres',
			q{SELECT (SELECT count(*) FROM load) = (SELECT sum(change) FROM ledger)}),
		't',
		"$what: table has the rows that were committed");
	is( $node->safe_psql('postgres', q{SELECT * FROM verify_heapam('load', check_toast => true)}),
		'', "$what: heap is sound");
	is( $node->safe_psql(
			'postgres', q{
			SELECT count(*),
				   count(bt_index_parent_check(indexrelid, true, true, indisunique))
			  FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			 WHERE indrelid = 'load'::regclass AND amname = 'btree'}),
		'3|3', "$what: btree indexes are sound and complete");
	is( $node->safe_psql(
			'postgres', q{
			SELECT count(gin_index_check(indexrelid))
			  FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			 WHERE indrelid = 'load'::regclass AND amname = 'gin'}),
		'2', "$what: GIN indexes are sound");

	# the others: do their scans find the rows that a sequential scan finds?
	my %conditions = (
		load_hash => q{t = ANY (ARRAY(SELECT t FROM load WHERE t < '04'))},
		load_p => q{p <@ box '(-1,-1),(1001,1001)'},
		load_spgist => q{t >= '0' COLLATE "C"},
		load_id => q{id >= 5000},
		load_words => q{words && ARRAY[md5('3'), 'x']},
		load_words_now => q{words && ARRAY[md5('3'), 'x']});
	foreach my $index (sort keys %conditions)
	{
		is( $node->safe_psql(
				'postgres', qq{
				SET enable_seqscan = off;
				BEGIN;
				-- leave the planner no other index
				UPDATE pg_index SET indisvalid = indexrelid = '$index'::regclass WHERE indrelid = 'load'::regclass;
				CREATE TEMP TABLE by_index AS SELECT ctid AS tid FROM load WHERE $conditions{$index};
				SET LOCAL enable_indexscan = off;
				SET LOCAL enable_bitmapscan = off;
				CREATE TEMP TABLE by_heap AS SELECT ctid AS tid FROM load WHERE $conditions{$index};
				SELECT count(*) > 0 FROM by_heap;
				SELECT count(*) FROM by_heap FULL JOIN by_index USING (tid) WHERE by_heap IS NULL OR by_index IS NULL;
				ROLLBACK}),
			"t\n0",
			"$what: $index and table agree");
	}
	ok( $node->poll_query_until(
			'postgres', q{SELECT count(*) = 0 FROM pg_aios WHERE state NOT LIKE 'COMPLETED%'}),
		"$what: no AIO is in flight");
}

# Nothing has gone wrong that nobody noticed.
sub check_log
{
	my ($node, $what) = @_;
	my $log = slurp_file($node->logfile);

	unlike($log,
		qr/TRAP|PANIC|resource was not closed|leaked|invalid page|(?<!resource manager data )checksum/,
		"$what: nothing unusual in the log");
}

1;
