# Copyright (c) 2026, the pgawait authors

package AioClient;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(connect_raw copy_data receive send_raw simple_query terse_error);

# A connection that speaks the protocol itself, so that it can send what it
# likes and see what has arrived, and read when it likes.
sub connect_raw
{
	my ($node, $user) = @_;
	my $socket = $node->raw_connect;
	my $connection = { socket => $socket, input => '', messages => [] };

	my $startup = pack('N', 196608) . "user\0$user\0database\0postgres\0application_name\0raw\0\0";
	syswrite($socket, pack('N', length($startup) + 4) . $startup) or die "cannot write: $!";
	receive($connection, sub { $_[0] eq 'Z' });
	return $connection;
}

sub simple_query
{
	my ($query) = @_;
	return 'Q' . pack('N', length($query) + 5) . "$query\0";
}

sub send_raw
{
	my ($connection, $bytes) = @_;
	syswrite($connection->{socket}, $bytes) == length $bytes or die "cannot write: $!";
}

# Messages that have arrived: letter and contents.  Waits until one satisfies a
# condition, or the end; or with none returns what is there already.
sub receive
{
	my ($connection, $until) = @_;
	my @messages;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	for (;;)
	{
		while (length $connection->{input} >= 5)
		{
			my ($type, $length) = unpack 'aN', $connection->{input};
			last if length $connection->{input} < $length + 1;
			my $body = substr $connection->{input}, 5, $length - 4;
			substr($connection->{input}, 0, $length + 1) = '';
			push @messages, [ $type, $body ];
			return @messages if $until && $until->($type, $body);
		}
		my $readable = '';
		vec($readable, fileno($connection->{socket}), 1) = 1;
		my $n = select($readable, undef, undef, $until ? 1 : 0);
		die 'timed out' if time > $deadline;
		next if $until && $n <= 0;
		return @messages if $n <= 0;
		my $got = sysread($connection->{socket}, $connection->{input}, 65536, length $connection->{input});
		if (!$got)
		{
			push @messages, ['end', ''];
			return @messages;
		}
	}
}

# A message with data for COPY.
sub copy_data
{
	my ($data) = @_;
	return 'd' . pack('N', length($data) + 4) . $data;
}

# What an error says.
sub terse_error
{
	my ($body) = @_;
	return (map { substr $_, 1 } grep { /^M/ } split /\0/, $body)[0];
}

1;
