# Copyright (c) 2026, the pgawait authors

# What a session sends from anywhere: replies that it has held when they are due,
# what its workers say, and its last words.  In the middle of a read, which others
# may be waiting for, or in a task, whose siblings have pages pinned, it does not
# wait for its client; but what it has to say is not lost.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioClient;
use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('client');
$node->init(auth_extra => [ '--create-role' => 'raw' ]);
$node->append_conf(
	'postgresql.conf', q{
	autovacuum = off
	wal_level = replica
	max_wal_senders = 1
	restart_after_crash = on
	aio.pipelined_commits = on
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION test_aio_core;
	CREATE TABLE t (a int);
	CREATE ROLE raw LOGIN SUPERUSER});

# A commit, whose reply is held as there is more to do.  It is held but for a
# moment, which is over on a busy machine before the second statement runs, and
# that says so with an error.
my $connection = connect_raw($node, 'raw');
my @messages;
foreach (1 .. 100)
{
	my $left = 2;
	send_raw($connection, simple_query('INSERT INTO t VALUES (1)') . simple_query('SELECT hold_handle_and_replies()'));
	@messages = receive($connection, sub { $_[0] eq 'Z' && !--$left });
	last unless grep { $_->[0] eq 'E' } @messages;
	$node->safe_psql('postgres', 'TRUNCATE t');
}
is(join(' ', map { $_->[0] } @messages), 'C Z T D C Z', 'both statements are answered');
is((map { substr $_->[1], 6 } grep { $_->[0] eq 'D' } @messages)[0], 'task read', 'the reply is not sent in a task, and in the middle of a read');

# A session says why it ends.
my $pid_of_raw = q{SELECT pid FROM pg_stat_activity WHERE usename = 'raw' AND query LIKE '%hold_handle()%' AND state = 'active'};
my $last_words = sub {
	my ($statement, $end) = @_;
	send_raw($connection, simple_query($statement));
	$node->poll_query_until('postgres', "SELECT EXISTS ($pid_of_raw)") or die 'the statement does not run';
	$end->($node->safe_psql('postgres', $pid_of_raw));
	return join '|', map { terse_error($_->[1]) } grep { $_->[0] =~ /[EN]/ } receive($connection, sub { 0 });
};
is( $last_words->('SELECT hold_handle()', sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") }),
	'terminating connection due to administrator command',
	'a session is terminated in the middle of a read');

# So does one whose transaction is committed here, and perhaps nowhere else; there
# is no other reply then.  Interrupts are held off.
my $all = sub {
	return join ' ', map { $_->[0] =~ /[EN]/ ? terse_error($_->[1]) : $_->[0] } receive($connection, sub { $_[0] eq 'Z' });
};
$node->append_conf('postgresql.conf', q{synchronous_standby_names = 'nobody'});
# a commit does not wait before the checkpointer has noticed a reload
$node->restart;
$connection = connect_raw($node, 'raw');
send_raw($connection, simple_query('INSERT INTO t VALUES (2)'));
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE usename = 'raw' AND wait_event = 'SyncRep'})
  or die 'no commit waits for a standby';
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'raw'});
is( $all->(),
	'canceling the wait for synchronous replication and terminating connection due to administrator command end',
	'a session says that it has committed locally');
$node->append_conf('postgresql.conf', q{synchronous_standby_names = ''});
$node->reload;

# What a parallel worker says is passed on while it goes on.  It ends when there
# is a certain file.
$connection = connect_raw($node, 'raw');
my $file = $node->data_dir . '/go';
send_raw(
	$connection, simple_query(
		qq{
		SET max_parallel_workers_per_gather = 1;
		SET debug_parallel_query = on;
		CREATE FUNCTION await_file() RETURNS bool LANGUAGE plpgsql PARALLEL SAFE AS \$\$
		BEGIN
			RAISE NOTICE 'awaiting a file';
			WHILE (pg_stat_file('go', true)).size IS NULL LOOP PERFORM pg_sleep(0.01); END LOOP;
			RETURN true;
		END \$\$}));
is($all->(), 'C C C Z', 'statements before');
send_raw($connection, simple_query('SELECT await_file()'));
my ($told) = reverse receive($connection, sub { $_[0] =~ /[NZ]/ });
is(terse_error($told->[1]), 'awaiting a file', 'what a worker says comes while it works');
append_to_file($file, '');
is($all->(), 'D C Z', 'and then its result');
unlink $file;

like(
	$last_words->('SELECT hold_handle()', sub { kill 'QUIT', $_[0] }),
	qr/^terminating connection because of unexpected SIGQUIT signal/,
	'a session is killed there');
$node->poll_query_until('postgres', 'SELECT count(*) = 2 FROM t') or die 'the server does not recover';

ok(!$node->log_contains('TRAP:'), 'no failed assertion');
$node->stop;
done_testing();
