# Copyright (c) 2026, the pgawait authors

# A COPY whose client pauses has claimed the keys of the rows that it has got, as
# in PostgreSQL, wherever the pause comes: others that insert the same keys wait.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioClient;
use AioLoad;
use Digest::MD5 qw(md5_hex);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($method) = grep { !$methods{$_} } sort keys %methods;
my $node = create_cold_node('main', $method);
$node->safe_psql(
	'postgres', q{
	CREATE ROLE raw LOGIN SUPERUSER;
	CREATE TABLE t (id uuid PRIMARY KEY, ext uuid UNIQUE, n int);
	INSERT INTO t SELECT md5('old' || n)::uuid, md5('x' || n)::uuid, n FROM generate_series(1, 100000) n;
	-- would who inserts a row with these keys wait?  It is not inserted in any case
	CREATE FUNCTION is_claimed(id uuid, ext uuid) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '10ms' AS $$
	BEGIN
		INSERT INTO t VALUES (id, ext, 0);
		RAISE EXCEPTION 'it would not';
	EXCEPTION
		WHEN lock_not_available THEN RETURN true;
		WHEN raise_exception THEN RETURN false;
	END $$});
my $control = $node->background_psql('postgres');

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

# Another session that inserts a key waits for this one, which pauses.
sub waits
{
	my ($what, $id, $ext) = @_;
	my $statement = "INSERT INTO t VALUES ('$id', '$ext', 0)";
	wait_until($control, "SELECT is_claimed('$id', '$ext')");
	my $other = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $other->query_safe('SELECT pg_backend_pid()');
	$other->query_until(qr/begun/, "\\echo begun\n$statement;\n\\echo ended\n");
	wait_until($control, qq{SELECT wait_event_type = 'Lock' OR state = 'idle' FROM pg_stat_activity WHERE pid = $pid});
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

$control->quit;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 100000, 'nothing is left of it');
check_log($node, 'paused copies');
$node->stop;
done_testing();
