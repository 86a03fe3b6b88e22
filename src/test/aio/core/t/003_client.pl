# Copyright (c) 2026, the pgawait authors

# What a session sends from anywhere: replies that it has held when they are due,
# and its last words.  In the middle of a read, which others may be waiting for,
# it does not wait for its client; but what it has to say is not lost.

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
	restart_after_crash = on
	aio.pipelined_commits = on
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION test_aio_core;
	CREATE TABLE t (a int);
	CREATE ROLE raw LOGIN SUPERUSER});

# a commit, whose reply is held as there is more to do
my $connection = connect_raw($node, 'raw');
send_raw($connection, simple_query('INSERT INTO t VALUES (1)') . simple_query('SELECT hold_handle_and_replies()'));
my $left = 2;
my @messages = receive($connection, sub { $_[0] eq 'Z' && !--$left });
is(join(' ', map { $_->[0] } @messages), 'C Z T D C Z', 'both statements are answered');
is((map { substr $_->[1], 6 } grep { $_->[0] eq 'D' } @messages)[0], 't', 'the reply is not sent in the middle of a read');

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

$connection = connect_raw($node, 'raw');
like(
	$last_words->('SELECT hold_handle()', sub { kill 'QUIT', $_[0] }),
	qr/^terminating connection because of unexpected SIGQUIT signal/,
	'a session is killed there');
$node->poll_query_until('postgres', 'SELECT count(*) = 1 FROM t') or die 'the server does not recover';

ok(!$node->log_contains('TRAP:'), 'no failed assertion');
$node->stop;
done_testing();
