# Copyright (c) 2026, the pgawait authors

# Rows whose values are looked up ahead of need are sent to a client that does
# not read.  While the session waits for the client, it has no read in flight,
# whose page would be pinned, and no page of the TOAST table pinned, and of the
# table not more than its scan needs: VACUUM does not wait for a client.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use IO::Socket::UNIX;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (!$PostgreSQL::Test::Utils::use_unix_sockets)
{
	plan skip_all => 'no Unix sockets';
}

my $tries = 5;
my %methods = io_methods();

# A connection that has sent a query, and reads nothing.
sub send_query
{
	my ($node, $query) = @_;
	my $socket = IO::Socket::UNIX->new($node->host . '/.s.PGSQL.' . $node->port) or die "could not connect: $!";
	my $user = getpwuid($>);
	my $body = pack('N', 3 << 16) . "user\0$user\0database\0postgres\0application_name\0slow\0\0";

	$socket->syswrite(pack('N', 4 + length $body) . $body);
	$socket->syswrite('Q' . pack('N', 5 + length $query) . "$query\0");
	return $socket;
}

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	my $node = create_cold_node("slow_$method", $method);
	$node->safe_psql('postgres', q{
		CREATE TABLE items (id int, a text STORAGE EXTERNAL) WITH (fillfactor = 30);
		INSERT INTO items SELECT i, NULL FROM generate_series(1, 1500) i;
		UPDATE items SET a = (SELECT string_agg(md5(items.id || ' ' || j), '') FROM generate_series(1, 160) j)
			FROM (SELECT id FROM items ORDER BY hashint4(id) OFFSET 0) i WHERE i.id = items.id;
		VACUUM items});
	my $toast = $node->safe_psql('postgres', q{SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'items'});
	my $pins = qq{SELECT coalesce(sum(pinning_backends) FILTER (WHERE relfilenode <> pg_relation_filenode('items')), 0), coalesce(sum(pinning_backends), 0)
		FROM pg_buffercache WHERE relfilenode IN (SELECT pg_relation_filenode(relid) FROM
			(SELECT 'items'::regclass UNION ALL SELECT '$toast'::regclass UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = '$toast'::regclass) AS t (relid))};

	foreach my $statement ('COPY items TO STDOUT', 'SELECT * FROM items')
	{
		my (@reads, @values, @all);

		$node->safe_psql('postgres', 'SELECT FROM aio_stat_reset()');
		foreach my $try (1 .. $tries)
		{
			$node->safe_psql('postgres', 'CHECKPOINT; SELECT FROM pg_buffercache_evict_all()');
			my $socket = send_query($node, $statement);
			$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'slow' AND wait_event = 'ClientWrite'})
			  or die 'the session does not wait for its client';
			push @reads, $node->safe_psql('postgres', q{SELECT count(*) FROM pg_aios JOIN pg_stat_activity USING (pid) WHERE application_name = 'slow'});
			my ($values, $all) = split /\|/, $node->safe_psql('postgres', $pins);
			push @values, $values;
			push @all, $all;
			# aggressive, as it must clean up all pages then
			$node->safe_psql('postgres', "SET statement_timeout = '100s'; VACUUM (FREEZE) $toast") if $try == 1;
			$socket->close;
			$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'slow'}) or die 'the session does not end';
		}
		# a page stays pinned until its read is completed, by the session itself if it uses io_uring
		is("@reads", join(' ', (0) x $tries), "$method, $statement: no read is in flight while the client does not read");
		is("@values", join(' ', (0) x $tries), "$method, $statement: no page of a value is pinned");
		is((grep { $_ > 2 } @all), 0, "$method, $statement: and of the table what its scan needs, and the page after that");
		cmp_ok($node->safe_psql('postgres', q{SELECT sum(started) FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'}),
			'>', 20 * $tries, "$method, $statement: values were looked up ahead");
	}
	$node->stop;
}

done_testing();
