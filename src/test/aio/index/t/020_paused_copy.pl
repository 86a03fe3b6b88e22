# Copyright (c) 2026, the pgawait authors

# A COPY whose client pauses has claimed the keys of the rows that it has got, as
# in PostgreSQL, wherever the pause comes: others that insert the same keys wait.
# So has one whose rows come through a pipe, and one of a subscriber, when who
# sends them pauses, one that leaves out rows, and an INSERT that waits for a
# lock, or whose query computes.
# In single-user mode, rows come through the pipe of the commands.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioClient;
use AioLoad;
use Digest::MD5 qw(md5_hex);
use IO::Handle;
use POSIX qw(mkfifo);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($method) = grep { !$methods{$_} } sort keys %methods;
my $node = create_cold_node('main', $method, conf => "wal_level = logical\nmax_wal_senders = 4\n");
$node->safe_psql(
	'postgres', q{
	CREATE ROLE raw LOGIN SUPERUSER;
	CREATE TABLE t (id uuid PRIMARY KEY, ext uuid UNIQUE, n int);
	INSERT INTO t SELECT md5('old' || n)::uuid, md5('x' || n)::uuid, n FROM generate_series(1, 100000) n;
	-- would who inserts a row with these keys wait?  It is not inserted in any case
	CREATE FUNCTION is_claimed(id uuid, ext uuid) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '10ms' AS $$
	DECLARE
		context text;
	BEGIN
		INSERT INTO t VALUES (id, ext, 0);
		RAISE EXCEPTION 'it would not';
	EXCEPTION
		WHEN lock_not_available THEN
			-- it may have been another lock, such as that for extending the table
			GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
			RETURN context LIKE '%while inserting index tuple%';
		WHEN raise_exception THEN RETURN false;
	END $$});
my $control = $node->background_psql('postgres');
my $database = 'postgres';

sub row
{
	my ($n) = @_;
	return md5_hex("new$n") . "\t" . md5_hex("y$n") . "\t$n\n";
}

# Begin a COPY of rows, the first of which are in messages, and the last in the
# first half of one.  Returns the connection and the other half.
sub begin_copy
{
	my ($whole, @rest) = @_;
	my $connection = connect_raw($node, 'raw');
	send_raw($connection, simple_query('COPY t FROM STDIN'));
	receive($connection, sub { $_[0] eq 'G' });
	for (my $i = 0; $i < @$whole; $i += 500)
	{
		my $last = $i + 499 < @$whole ? $i + 499 : $#$whole;
		send_raw($connection, copy_data(join '', @$whole[ $i .. $last ]));
	}
	my $message = @rest ? copy_data(join '', @rest) : '';
	my $half = int(length($message) / 2);
	send_raw($connection, substr $message, 0, $half) if $half;
	return $connection, substr($message, $half);
}

my $done = 'c' . pack('N', 4);

# One that resets its connection while its keys wait is said to have done so: here,
# since it has not read what it was told.
my $log = -s $node->logfile;
foreach (1 .. 5)
{
	my $connection = connect_raw($node, 'raw');
	send_raw($connection, simple_query('COPY t FROM STDIN'));
	my $told = '';
	vec($told, fileno($connection->{socket}), 1) = 1;
	select($told, undef, undef, $PostgreSQL::Test::Utils::timeout_default);
	send_raw($connection, copy_data(join '', map { row($_) } 1 .. 2000));
	close $connection->{socket};
	wait_until($control, q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'raw'});
}
my @resets = slurp_file($node->logfile, $log) =~ /could not receive data from client: Connection reset by peer/g;
is(scalar(@resets), 5, 'connections that are reset');

# Another session that inserts a key waits for this one, which pauses.
sub waits
{
	my ($what, $id, $ext) = @_;
	my $statement = "INSERT INTO t VALUES ('$id', '$ext', 0)";
	wait_until($control, "SELECT is_claimed('$id', '$ext')");
	my $other = $node->background_psql($database, on_error_stop => 0);
	my $pid = $other->query_safe('SELECT pg_backend_pid()');
	$other->query_until(qr/begun/, "\\echo begun\n$statement;\n\\echo ended\n");
	wait_until($control, qq{SELECT wait_event_type = 'Lock' OR (state = 'idle' AND query LIKE 'INSERT%') FROM pg_stat_activity WHERE pid = $pid});
	is($control->query_safe("SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid"), 'Lock', "$what: who inserts the same key waits");
	return $other;
}

# Its statement has ended with this error.
sub fails
{
	my ($what, $other) = @_;
	$other->query('SELECT 1');
	like($other->{stderr}, qr/duplicate key value/, "$what: and fails");
	$other->quit;
}

my @rows = map { row($_) } 1 .. 6000;

foreach my $pause ('between messages', 'in a message', 'before the length of one')
{
	my ($connection, $rest) = begin_copy($pause eq 'between messages' ? \@rows : [ @rows[ 0 .. 4999 ] ],
		$pause eq 'in a message' ? @rows[ 5000 .. 5999 ] : ());
	if ($pause eq 'before the length of one')
	{
		my $message = copy_data(join '', @rows[ 5000 .. 5999 ]);
		send_raw($connection, substr $message, 0, 3);
		$rest = substr $message, 3;
	}
	my @others = (
		waits("pause $pause", md5_hex('new3000'), md5_hex('z1')),
		waits("pause $pause", md5_hex('z2'), md5_hex('y2500')));
	send_raw($connection, $rest . $done);
	my @messages = receive($connection, sub { $_[0] eq 'Z' });
	is((map { $_->[1] =~ s/\0//r } grep { $_->[0] eq 'C' } @messages)[0], 'COPY 6000', "pause $pause: the COPY ends well");
	fails("pause $pause", $_) foreach @others;
	close $connection->{socket};
	$node->safe_psql('postgres', q{DELETE FROM t WHERE id IN (SELECT md5('new' || n)::uuid FROM generate_series(1, 6000) n); VACUUM t});
}

# A duplicate is found out while the client pauses.  The connection goes on after
# the rest of the message.
{
	my ($connection, $rest) = begin_copy([ @rows[ 0 .. 2999 ], row(1500), @rows[ 3000 .. 4999 ] ], @rows[ 5000 .. 5999 ]);
	my @messages = receive($connection, sub { $_[0] eq 'Z' });
	is(join('', map { $_->[0] } @messages), 'EZ', 'an error does not wait for the rest of a message');
	like(terse_error($messages[0]->[1]), qr/duplicate key value violates unique constraint "t_pkey"/, 'which is about the key');
	send_raw($connection, $rest . $done . simple_query('SELECT 42'));
	@messages = receive($connection, sub { $_[0] eq 'Z' });
	is((map { substr $_->[1], 6 } grep { $_->[0] eq 'D' } @messages)[0], '42', 'after it, the connection goes on');
	close $connection->{socket};
}

is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 100000, 'nothing is left of it');

# Who writes into a pipe pauses.
my $pipe = PostgreSQL::Test::Utils::tempdir . '/rows';
mkfifo($pipe, 0600) or die "cannot make $pipe: $!";
foreach my $source ("'$pipe'", "PROGRAM 'cat $pipe'")
{
	my $what = $source =~ /PROGRAM/ ? 'a program pauses' : 'who writes into a pipe pauses';
	my $copy = $node->background_psql('postgres', on_error_stop => 0);
	$copy->query_until(qr/begun/, "\\echo begun\nCOPY t FROM $source;\n\\echo copied\n");
	open my $writer, '>', $pipe or die "cannot open $pipe: $!";
	$writer->autoflush(1);
	print $writer join '', @rows;
	my @others = (
		waits($what, md5_hex('new3000'), md5_hex('z1')),
		waits($what, md5_hex('z2'), md5_hex('y2500')));
	close $writer;
	$copy->query_until(qr/copied/, '');
	is($copy->{stderr}, '', "$what: the COPY ends well");
	$copy->quit;
	fails($what, $_) foreach @others;
	is($node->safe_psql('postgres', 'WITH d AS (DELETE FROM t WHERE id IN (SELECT md5(\'new\' || n)::uuid FROM generate_series(1, 6000) n) RETURNING 1) SELECT count(*) FROM d'),
		6000, "$what: all rows have come");
	$node->safe_psql('postgres', 'VACUUM t');
}
# A statement whose function waits for a lock on another table has claimed its
# keys as well.
{
	$node->safe_psql('postgres', q{
		CREATE TABLE ranges (i int) PARTITION BY RANGE (i);
		CREATE TABLE range PARTITION OF ranges FOR VALUES FROM (0) TO (10)});
	my $locker = $node->background_psql('postgres');
	my $insert = $node->background_psql('postgres', on_error_stop => 0);

	$locker->query_safe('BEGIN; LOCK TABLE range');
	$insert->query_until(
		qr/begun/, q{\echo begun
		INSERT INTO t SELECT md5('new' || n)::uuid, md5('y' || n)::uuid,
			coalesce(length(pg_get_partition_constraintdef(CASE WHEN n = 5500 THEN 'range'::regclass::oid END)), n)
		  FROM generate_series(1, 6000) n;
		\echo inserted
});
	my @others = (
		waits('a function waits for a lock', md5_hex('new3000'), md5_hex('z1')),
		waits('a function waits for a lock', md5_hex('z2'), md5_hex('y2500')));
	$locker->query_safe('COMMIT');
	$insert->query_until(qr/inserted/, '');
	is($insert->{stderr}, '', 'a function waits for a lock: the INSERT ends well');
	fails('a function waits for a lock', $_) foreach @others;
	is($node->safe_psql('postgres', q{WITH d AS (DELETE FROM t WHERE id IN (SELECT md5('new' || n)::uuid FROM generate_series(1, 6000) n) RETURNING 1) SELECT count(*) FROM d}),
		6000, 'a function waits for a lock: all rows have come');
	$_->quit foreach ($locker, $insert);
	$node->safe_psql('postgres', 'VACUUM t');
}

# So has one whose query computes for ever before its next row, whether there are
# enough rows to be collected or not; whether it does so in many steps, or in one
# scan that leaves out all rows; and also if it has taken long for its first row.
my $computes = 'SELECT NULL, NULL, count(*) FROM t a, t b, t c WHERE a.n + b.n + c.n < 0';
$node->safe_psql('postgres', q{
	CREATE TABLE wide (n int, x text);
	INSERT INTO wide SELECT n, repeat('x', 100) FROM generate_series(1, 200000) n});
foreach ([ 6000, 'computes', '', $computes ], [ 20000, 'computes and has BRIN indexes', '', $computes ], [ 900, 'computes', '', $computes ],
	[ 6000, 'leaves out rows', '', q{SELECT NULL, NULL, n FROM wide WHERE md5(repeat(x, 5000)) = ''} ],
	[ 6000, 'computes, after a late first row', q{JOIN (SELECT count(*) AS least FROM t a, t b WHERE a.n < 200 AND a.n + b.n < 0) l ON n > least}, $computes ])
{
	my ($rows, $does, $where, $rest) = @$_;
	my $what = "a query $does after $rows rows";
	# of many rows, the first thousand are inserted one by one
	my ($first, $second) = $does =~ /BRIN/ ? ($rows, $rows - 1) : $rows > 1000 ? (3000, 2500) : (300, 250);
	my $insert = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $insert->query_safe('SELECT pg_backend_pid()');

	# The timer is noticed while entries of BRIN indexes are inserted by tasks,
	# where nothing can be done about it.
	if ($does =~ /BRIN/)
	{
		$node->safe_psql('postgres', 'CREATE INDEX brin_1 ON t USING brin (n); CREATE INDEX brin_2 ON t USING brin (id); CREATE INDEX brin_3 ON t USING brin (ext)');
		$insert->query_safe('SET aio.debug_spill = on; SET aio.debug_suspend = on');
	}
	$insert->query_until(
		qr/begun/, qq{\\echo begun
		INSERT INTO t SELECT md5('new' || n)::uuid, md5('y' || n)::uuid, n FROM generate_series(1, $rows) n $where UNION ALL $rest;
		\\echo ended
});
	my @others = (
		waits($what, md5_hex("new$first"), md5_hex('z1')),
		waits($what, md5_hex('z2'), md5_hex("y$second")));
	$control->query_safe("SELECT pg_cancel_backend($pid)");
	$insert->query_until(qr/ended/, '');
	like($insert->{stderr}, qr/canceling statement/, "$what: until it is cancelled");
	foreach (@others)
	{
		$_->query_until(qr/ended/, '');
		is($_->{stderr}, '', "$what: who waited inserts its row");
		$_->quit;
	}
	is($node->safe_psql('postgres', 'WITH d AS (DELETE FROM t WHERE n = 0 RETURNING 1) SELECT count(*) FROM d'), 2, "$what: which are there");
	$insert->quit;
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS brin_1, brin_2, brin_3; VACUUM t');
}

# So has a COPY that leaves out all the other rows, and takes long for it.
{
	my $what = 'a COPY leaves out rows';
	my $file = PostgreSQL::Test::Utils::tempdir . '/file';
	my $copy = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $copy->query_safe('SELECT pg_backend_pid()');

	append_to_file($file, join '', @rows, map { row($_) } 6001 .. 300000);
	$copy->query_until(
		qr/begun/, qq{\\echo begun
		COPY t FROM '$file' WHERE n <= 6000 OR md5(repeat(id::text, 10000)) = '';
		\\echo ended
});
	my @others = (
		waits($what, md5_hex('new3000'), md5_hex('z1')),
		waits($what, md5_hex('z2'), md5_hex('y2500')));
	$control->query_safe("SELECT pg_cancel_backend($pid)");
	$copy->query_until(qr/ended/, '');
	like($copy->{stderr}, qr/canceling statement.*COPY t, line/s, "$what: until it is cancelled");
	foreach (@others)
	{
		$_->query_until(qr/ended/, '');
		is($_->{stderr}, '', "$what: who waited inserts its row");
		$_->quit;
	}
	$node->safe_psql('postgres', 'DELETE FROM t WHERE n = 0');
	$node->safe_psql('postgres', 'VACUUM t');
	$copy->quit;
}

# To find out whether keys may wait gets no lock on a partition's parent, for
# which PostgreSQL would have asked before the first row.
{
	$node->safe_psql('postgres', q{
		CREATE TABLE parent (id int[], b int) PARTITION BY RANGE (b);
		CREATE TABLE part PARTITION OF parent FOR VALUES FROM (0) TO (1000000);
		CREATE UNIQUE INDEX ON part (id)});
	my $connection = connect_raw($node, 'raw');

	# from then on, the relation cache has the constraint
	send_raw($connection, simple_query(q{INSERT INTO part VALUES ('{999999}', 1)}));
	receive($connection, sub { $_[0] eq 'Z' });
	send_raw($connection, simple_query('COPY part FROM STDIN'));
	receive($connection, sub { $_[0] eq 'G' });
	# not as many as are inserted at a time
	my @lines = map { sprintf "{%030d}\t%030d\n", $_, $_ } 1 .. 900;
	send_raw($connection, copy_data(join '', @lines));
	wait_until($control, 'SELECT count(*) = 1 FROM pg_stat_progress_copy WHERE bytes_processed > 50000');
	wait_until($control, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'raw' AND wait_event = 'ClientRead'});
	$node->safe_psql('postgres', 'ANALYZE part');
	send_raw($connection, copy_data(join '', map { "{$_}\t$_\n" } 901 .. 30000));
	wait_until($control, 'SELECT count(*) = 1 FROM pg_stat_progress_copy WHERE tuples_processed > 20000');
	is($control->query_safe(q{SELECT count(*) FROM pg_locks WHERE relation = 'parent'::regclass}), '0', 'a COPY to a partition has no lock on its parent');
	send_raw($connection, $done);
	my @messages = receive($connection, sub { $_[0] eq 'Z' });
	is((map { $_->[1] =~ s/\0//r } grep { $_->[0] eq 'C' } @messages)[0], 'COPY 30000', 'and ends well');
	close $connection->{socket};
}
$control->quit;

# So does the publisher of a table, while a subscriber copies it.
my $is_claimed = $node->safe_psql('postgres', q{SELECT pg_get_functiondef('is_claimed'::regproc)});
$node->safe_psql('postgres', q{
	TRUNCATE t;
	INSERT INTO t SELECT md5('new' || n)::uuid, md5('y' || n)::uuid, n FROM generate_series(1, 6000) n;
	CREATE FUNCTION pause(n int) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		IF n = 5500 THEN
			PERFORM pg_advisory_lock_shared(1);
		END IF;
		RETURN true;
	END $$;
	ALTER TABLE t ENABLE ROW LEVEL SECURITY;
	CREATE POLICY pauses ON t USING (pause(n));
	CREATE ROLE publisher LOGIN REPLICATION;
	GRANT SELECT ON t TO publisher;
	CREATE PUBLICATION p FOR TABLE t;
	SELECT pg_create_logical_replication_slot('s', 'pgoutput');
	CREATE DATABASE subscriber});
$database = 'subscriber';
$node->safe_psql($database, $is_claimed);
$node->safe_psql($database, q{
	CREATE TABLE t (id uuid PRIMARY KEY, ext uuid UNIQUE, n int);
	INSERT INTO t SELECT md5('old' || n)::uuid, md5('x' || n)::uuid, n FROM generate_series(1, 100000) n});
my $pause = $node->background_psql('postgres');
$pause->query_safe('SELECT pg_advisory_lock(1)');
$control = $node->background_psql($database);
my $publisher = $node->connstr . ' dbname=postgres user=publisher';
$control->query_safe("CREATE SUBSCRIPTION s CONNECTION '$publisher' PUBLICATION p WITH (create_slot = false)");
my @others = (
	waits('the publisher pauses', md5_hex('new3000'), md5_hex('z1')),
	waits('the publisher pauses', md5_hex('z2'), md5_hex('y2500')));
$pause->query_safe('SELECT pg_advisory_unlock(1)');
wait_until($control, q{SELECT srsubstate IN ('r', 's') FROM pg_subscription_rel});
fails('the publisher pauses', $_) foreach @others;
is($node->safe_psql($database, 'SELECT count(*) FROM t'), 106000, 'all rows have been copied');
$node->safe_psql($database, 'DROP SUBSCRIPTION s');
$control->quit;
$pause->quit;

check_log($node, 'paused copies');
$node->stop;

# What a server in single-user mode has read of its input, with the command,
# belongs to the rows.
my $input = join "\n", 'CREATE TABLE lines (s text);', 'COPY lines FROM STDIN;', 'CREATE TABLE made AS SELECT 1', 'a row', '';
my $said = '';
ok(IPC::Run::run([ 'postgres', '--single', '-F', '-D', $node->data_dir, 'postgres' ], '<', \$input, '>&', \$said),
	'a server in single-user mode copies rows that come through a pipe');
note($said);
$node->start;
is($node->safe_psql('postgres', q{SELECT count(*), to_regclass('made') IS NULL FROM lines}), '2|t',
	'and executes none of them');
$node->stop;
done_testing();
