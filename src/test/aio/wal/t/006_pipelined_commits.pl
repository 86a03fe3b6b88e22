
# Copyright (c) 2026, the pgawait authors

# Pipelined commits: the server goes on while a commit is on its way to disk,
# and its reply does not leave before it is there.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioClient;
use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my $injection = ($ENV{enable_injection_points} // '') eq 'yes';

# What replies say, without the noise.
sub summary
{
	return join ' ', map { $_->[0] eq 'C' ? $_->[1] =~ s/\0//r : $_->[0] eq 'E' ? 'error' : $_->[0] eq 'end' ? 'end' : () } @_;
}

foreach my $method ('sync', grep { !$methods{$_} } sort keys %methods)
{
	my $node = PostgreSQL::Test::Cluster->new($method);
	$node->init(auth_extra => [ '--create-role' => 'raw' ]);
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		autovacuum = off
		wal_level = logical
		wal_writer_delay = 10s
		aio.pipelined_commits = on
	});
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION aio; CREATE TABLE t (a int PRIMARY KEY); CREATE ROLE raw LOGIN SUPERUSER');

	my $connection = connect_raw($node, 'raw');
	my @values = (1 .. 60);

	# replies come in order, an error in between belongs to its transaction
	send_raw($connection, join '', map { simple_query("INSERT INTO t VALUES ($_)") } @values, 30, 61);
	my $left = @values + 2;
	my @replies = receive($connection, sub { $_[0] eq 'Z' && !--$left });
	is(summary(@replies), join(' ', ('INSERT 0 1') x 60, 'error', 'INSERT 0 1'), "$method: replies in order");
	my ($held) = map { $_->[1] } grep { $_->[0] eq 'D' } do {
		send_raw($connection, simple_query('SELECT commits_held FROM aio_session_wal()'));
		receive($connection, sub { $_[0] eq 'Z' });
	};
	$held = substr $held, 6;
	cmp_ok($held, '>', 30, "$method: commits were not waited for");
	my $flushed = $node->safe_psql('postgres', 'SELECT count(*) FROM t');
	is($flushed, 61, "$method: all rows are there");

	# one at a time, none is held: there is nothing to go on with
	foreach my $value (100 .. 105)
	{
		send_raw($connection, simple_query("INSERT INTO t VALUES ($value)"));
		receive($connection, sub { $_[0] eq 'Z' });
	}
	send_raw($connection, simple_query('SELECT commits_held FROM aio_session_wal()'));
	($_) = map { substr $_->[1], 6 } grep { $_->[0] eq 'D' } receive($connection, sub { $_[0] eq 'Z' });
	is($_, $held, "$method: a commit after which nothing comes is waited for");

	# a long statement behind it does not keep a reply
	my $lock = $node->background_psql('postgres');
	$lock->query_safe('SELECT pg_advisory_lock(1)');
	send_raw($connection, simple_query('INSERT INTO t VALUES (200)') . simple_query('SELECT pg_advisory_lock(1)'));
	@replies = receive($connection, sub { $_[0] eq 'Z' });
	is(summary(@replies), 'INSERT 0 1', "$method: a reply is not held while the next statement waits");
	$lock->query_safe('SELECT pg_advisory_unlock(1)');
	receive($connection, sub { $_[0] eq 'Z' });
	$lock->quit;

	# what the same session does next finds its commits where WAL is flushed
	$node->safe_psql('postgres', q{SELECT pg_create_logical_replication_slot('own', 'test_decoding')});
	send_raw($connection, join('', map { simple_query($_) } 'INSERT INTO t VALUES (210)',
		q{SELECT count(*) FROM pg_logical_slot_get_changes('own', NULL, NULL) WHERE data LIKE '%210'},
		'INSERT INTO t VALUES (211)',
		q{SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn(), pg_current_wal_lsn() >= pg_current_wal_insert_lsn()}));
	my $nready = 4;
	@replies = map { $_->[1] =~ s/[^[:print:]]//gr } grep { $_->[0] eq 'D' } receive($connection, sub { $_[0] eq 'Z' && !--$nready });
	is("@replies", '1 tt', "$method: a session finds its own commits where WAL is flushed");
	$node->safe_psql('postgres', q{SELECT pg_drop_replication_slot('own')});

	# a client that says goodbye at once still gets its replies
	send_raw($connection, join('', map { simple_query("INSERT INTO t VALUES ($_)") } 300 .. 320) . 'X' . pack('N', 4));
	@replies = receive($connection, sub { 0 });
	is(summary(@replies), join(' ', ('INSERT 0 1') x 21, 'end'), "$method: replies before the connection ends");

	# nor does a commit inside a procedure count
	$node->safe_psql('postgres', 'CREATE PROCEDURE p() LANGUAGE plpgsql AS $$BEGIN FOR i IN 400..409 LOOP INSERT INTO t VALUES (i); COMMIT; END LOOP; END$$');
	$connection = connect_raw($node, 'raw');
	send_raw($connection, simple_query('CALL p()') . simple_query('SELECT commits_held FROM aio_session_wal()'));
	my $calls = 2;
	($_) = map { substr $_->[1], 6 } grep { $_->[0] eq 'D' } receive($connection, sub { $_[0] eq 'Z' && !--$calls });
	is($_, 0, "$method: commits in a procedure are waited for");

	if ($injection && $method ne 'sync')
	{
		# Another session is about to sync, and is stopped.  What commits
		# meanwhile is done and visible, but its reply is not sent.
		$node->safe_psql('postgres', 'CREATE EXTENSION injection_points');
		my $control = $node->background_psql('postgres');
		my $stopped = $node->background_psql('postgres');
		warm_for_injection_points($control, $stopped);
		$stopped->query_safe(q{SELECT injection_points_set_local(), injection_points_attach('aio-wal-written', 'wait'), injection_points_load('aio-wal-written')});
		$stopped->query_until(qr/begun/, "\\echo begun\nINSERT INTO t VALUES (1000);\n");
		wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'aio-wal-written'});

		# The replies are due, as the session waits for a lock.  On a busy
		# machine they are due earlier: only the first commit is sure to be done.
		$control->query_safe('SELECT pg_advisory_lock(1)');
		send_raw($connection, join('', map { simple_query("INSERT INTO t VALUES ($_)") } 1001 .. 1010) . simple_query('SELECT pg_advisory_lock(1)'));
		wait_until($control, q{SELECT max(a) > 1000 FROM t});
		wait_until($control, q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'AioWalSync' AND application_name = 'raw'});
		is(summary(receive($connection)), '', "$method: no reply while the commits are not on disk");
		$_->{run}->pump_nb foreach ($control, $stopped);
		$node->stop('immediate');
		$_->{run}->finish foreach ($control, $stopped);
		is(summary(receive($connection, sub { 0 })) =~ s/error //r, 'end', "$method: nor when the server is stopped");
		$node->start;
		is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE a < 1000'), 61 + 6 + 1 + 2 + 21 + 10, "$method: what was acknowledged is there after a crash");

		# The session that holds replies finds that it cannot sync.
		my $log = -s $node->logfile;
		$connection = connect_raw($node, 'raw');
		send_raw($connection, simple_query(q{SELECT injection_points_set_local(), injection_points_attach('aio-wal-written', 'error'), injection_points_load('aio-wal-written')}));
		receive($connection, sub { $_[0] eq 'Z' });
		send_raw($connection, join '', map { simple_query("INSERT INTO t VALUES ($_)") } 2001 .. 2010);
		is(summary(receive($connection, sub { 0 })), 'end', "$method: nothing is sent after a PANIC");
		ok($node->log_contains(qr/PANIC:  error triggered for injection point aio-wal-written/, $log), "$method: which there was");
		$node->{_pid} = undef;
		start_after_kill($node);
		my $found = $node->safe_psql('postgres', q{SELECT string_agg(a::text, ',' ORDER BY a) FROM t WHERE a > 2000});
		like(join(',', 2001 .. 2010), qr/^\Q$found\E(,|$)/, "$method: in order, as far as they go");
	}
	$node->stop;
}
done_testing();
