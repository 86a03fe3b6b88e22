# Copyright (c) 2026, the pgawait authors

# A standby extends files into space that was allocated before, and gives back
# what it does not need: when there is nothing to replay, when too many files
# grow, when it is stopped and when it is promoted.  Files that are cut, dropped
# or emptied meanwhile become what they are on the primary.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/..";

use AioReplay;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# bytes that a file system may need for its own data about a file
my $OVERHEAD = 256 * 1024;

# more tables than one process remembers to have extended
my $MANY = 20;

my ($primary, $standby);

# How much more than its length does a table's or an index's file take?
sub slack
{
	my ($relation) = @_;
	my @stat = stat($standby->data_dir . '/' . $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$relation')"))
		or die "$relation: $!";

	return $stat[12] * 512 - $stat[7];
}

sub most_slack
{
	my ($most) = sort { $b <=> $a } map { slack($_) } @_;

	return $most;
}

# Nobody looks at the time while there is no WAL.
sub slack_goes
{
	my ($name, @relations) = @_;
	my $attempts = 10 * $PostgreSQL::Test::Utils::timeout_default;

	while (most_slack(@relations) > $OVERHEAD && $attempts-- > 0)
	{
		usleep(100_000);
		$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '', true)});
	}
	cmp_ok(most_slack(@relations), '<=', $OVERHEAD, $name);
}

# Preallocations that the startup process has begun, which it tells when it ends.
sub started
{
	$standby->restart;
	return $standby->safe_psql('postgres',
		q{SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE backend_type = 'startup' AND kind = 'preallocation'});
}

# The standby has what the primary has, in files as long.  A table's file may
# be longer on the primary, which allocates blocks before it needs them.
sub is_the_same
{
	my ($name, @tables) = @_;
	my $query = join ' UNION ALL ', map
	{
		qq{SELECT '$_', count(*)::text, md5(string_agg(t::text, '' ORDER BY i)), pg_relation_size('${_}_u_idx') FROM $_ t}
	} @tables;

	$query = "SELECT * FROM ($query) ORDER BY 1";
	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', $query), $primary->safe_psql('postgres', $query), "$name: rows, and lengths of indexes");

	my %on = map
	{
		$_->name => { map { split /\|/, $_, 2 } split /\n/, $_->safe_psql('postgres', join ' UNION ALL ',
			map { "SELECT '$_', coalesce((SELECT max((ctid::text::point)[0])::int + 1 FROM $_), 0), pg_relation_size('$_') / 8192" } @tables) }
	} $primary, $standby;
	my @wrong = grep
	{
		my ($used, $size) = split /\|/, $on{ $primary->name }->{$_};
		my (undef, $ours) = split /\|/, $on{ $standby->name }->{$_};

		$ours < $used || $ours > $size;
	} @tables;
	is("@wrong", '', "$name: all blocks that are used, and no more than on the primary");
}

sub rows
{
	my ($from, $to) = @_;

	return "SELECT i, some_uuid(i, 'u'), repeat('x', 700) FROM generate_series($from, $to) i";
}

sub create
{
	my ($table) = @_;

	return "CREATE TABLE $table (i int, u uuid, filler text STORAGE PLAIN); CREATE INDEX ON $table (u); CREATE INDEX ON $table USING hash (i);";
}

foreach my $way (grep { ($_->[1] eq 'data') == ($_->[0] ne 'worker') } replay_ways())
{
	my ($method, $direct) = @$way;
	my $name = $direct ? "$method, direct I/O" : $method;
	my $suffix = $direct ? "${method}_direct" : $method;
	my $strategy = $direct ? 'wal_log' : 'file_copy';
	my @many = map { "many$_" } 1 .. $MANY;

	$primary = PostgreSQL::Test::Cluster->new("primary_$suffix");
	$primary->init(allows_streaming => 1);
	$primary->append_conf('postgresql.conf', "autovacuum = off\nmax_wal_size = 4GB\ncheckpoint_timeout = 1h\nshared_buffers = 32MB\nmax_connections = 20\n");
	$primary->start;
	$primary->safe_psql('postgres',
		q{CREATE EXTENSION aio; CREATE FUNCTION some_uuid(i int, salt text) RETURNS uuid IMMUTABLE LANGUAGE sql AS 'SELECT md5(salt || i)::uuid';});
	$primary->safe_psql('postgres', 'CREATE DATABASE growing');
	$primary->safe_psql('growing', "CREATE TABLE tab (i int, filler text STORAGE PLAIN); INSERT INTO tab SELECT i, repeat('x', 700) FROM generate_series(1, 10000) i");
	$primary->backup('backup');

	$standby = PostgreSQL::Test::Cluster->new("standby_$suffix");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->append_conf('postgresql.conf', "io_method = $method\ndebug_io_direct = '$direct'\nshared_buffers = 8MB\nio_max_concurrency = 16\nlog_min_messages = debug2\n");
	$standby->start;

	# two tables grow
	$primary->safe_psql('postgres', create($_)) foreach 'one', 'two';
	foreach my $round (1 .. 10)
	{
		$primary->safe_psql('postgres', "INSERT INTO $_ " . rows($round * 3000, $round * 3000 + 2999)) foreach 'one', 'two';
	}
	is_the_same("$name, tables that grow", 'one', 'two');
	slack_goes("$name: what is not needed is given back when there is nothing to replay", 'one', 'two');
	cmp_ok(started(), '>', 5, "$name: space was preallocated");
	my ($times) = sort { $b <=> $a } slurp_file($standby->logfile) =~ /recovery has extended files into preallocated space (\d+) times/g;
	cmp_ok($times // 0, '>', 1000, "$name: and used");

	my $before = started();
	$primary->safe_psql('postgres', create('small') . 'INSERT INTO small ' . rows(1, 2000) . '; INSERT INTO one ' . rows(1, 10));
	$primary->wait_for_replay_catchup($standby);
	is(started(), $before, "$name: none was for a small table, or for one that has grown a little");

	# files are cut, emptied and dropped while they have space
	$primary->safe_psql('postgres', 'INSERT INTO one ' . rows(50000, 55000) . '; TRUNCATE one; INSERT INTO one ' . rows(1, 8000));
	$primary->safe_psql('postgres', 'INSERT INTO two ' . rows(50000, 55000));
	$primary->safe_psql('postgres', 'DELETE FROM two WHERE i > 3500');
	$primary->safe_psql('postgres', 'VACUUM two');
	cmp_ok($primary->safe_psql('postgres', q{SELECT pg_relation_size('two') / 8192}), '<', 2000, "$name: VACUUM has truncated a table");
	$primary->safe_psql('postgres', 'INSERT INTO two ' . rows(60000, 75000));
	$primary->safe_psql('postgres', create('gone') . 'INSERT INTO gone ' . rows(1, 15000) . '; DROP TABLE gone');
	foreach my $round (1 .. 2)
	{
		# the same files come again, shorter
		my $last = 60000 - $round * 20000;

		$primary->safe_psql('postgres', "CREATE DATABASE other OID = 99999 TEMPLATE growing STRATEGY $strategy");
		$primary->safe_psql('other', "INSERT INTO tab SELECT i, repeat('x', 700) FROM generate_series(10001, $last) i");
		$primary->wait_for_replay_catchup($standby);
		is($standby->safe_psql('other', 'SELECT count(*) FROM tab'), $last, "$name: a database, round $round");
		$primary->safe_psql('postgres', 'DROP DATABASE other');
	}
	is_the_same("$name, files that shrink and go", 'one', 'two');
	cmp_ok(slack($_), '>=', -8192, "$name: $_ has no holes") foreach 'one', 'two', 'two_u_idx';
	slack_goes("$name: nor space past its end", 'one', 'two');

	# too many tables grow at a time
	$primary->safe_psql('postgres', create($_)) foreach @many;
	$primary->safe_psql('postgres', join ';', map { "INSERT INTO $_ " . rows(1, 6000) } @many);
	foreach my $round (1 .. 3)
	{
		$primary->safe_psql('postgres', join ';', map { "INSERT INTO $_ " . rows($round * 10000, $round * 10000 + 700) } @many);
	}
	is_the_same("$name, many tables", @many);
	slack_goes("$name: which leave nothing past their ends", @many);

	# a file that is not open, and cannot be opened, does not matter
	$primary->safe_psql('postgres', 'INSERT INTO one ' . rows(80000, 90000));
	$primary->wait_for_replay_catchup($standby);
	my $unreadable = $standby->data_dir . '/' . $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('one')});
	my $start = -s $standby->logfile;
	chmod(0, $unreadable) or die "$unreadable: $!";
	my $denied = qr/could not give back unused space of file .*: Permission denied/;
	my $attempts = 10 * $PostgreSQL::Test::Utils::timeout_default;
	while (!$standby->log_contains($denied, $start) && $attempts-- > 0)
	{
		usleep(100_000);
		$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '', true)});
	}
	ok($standby->log_contains($denied, $start), "$name: a file cannot be opened");
	chmod(0600, $unreadable) or die "$unreadable: $!";
	is_the_same("$name, a file that cannot be opened", 'one');

	# a crash, and a stop, while files grow
	$primary->safe_psql('postgres', 'INSERT INTO one ' . rows(100000, 110000));
	$primary->wait_for_replay_catchup($standby);
	$standby->stop('immediate');
	$primary->safe_psql('postgres', 'INSERT INTO one ' . rows(110001, 120000));
	$standby->start;
	is_the_same("$name, after a crash", 'one', 'two', @many);
	$primary->safe_psql('postgres', 'INSERT INTO two ' . rows(100000, 110000));
	$primary->wait_for_replay_catchup($standby);
	$standby->stop;
	cmp_ok(most_slack('two', 'two_u_idx'), '<=', $OVERHEAD, "$name: a standby that is stopped leaves no space past the end");
	$standby->start;

	# promotion
	$primary->safe_psql('postgres', 'INSERT INTO two ' . rows(120000, 130000));
	is_the_same("$name, before promotion", 'one', 'two', @many);
	$standby->promote;
	$attempts = 10 * $PostgreSQL::Test::Utils::timeout_default;
	usleep(100_000) while (most_slack('one', 'two', 'two_u_idx', @many) > $OVERHEAD && $attempts-- > 0);
	cmp_ok(most_slack('one', 'two', 'two_u_idx', @many), '<=', $OVERHEAD, "$name: nor does recovery when it ends");
	$standby->safe_psql('postgres', 'INSERT INTO two ' . rows(130001, 140000));
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM two WHERE i > 130000'), 10000, "$name: a new primary goes on");
	$standby->stop;
	$primary->stop;
	command_ok([ 'pg_checksums', '--check', $standby->data_dir ], "$name: checksums are right");
}

# Nobody waits for a device that takes long to give space back but who extends the
# same file: the standby goes on, and is promoted.
SKIP:
{
	skip 'server is built without injection points', 4 if ($ENV{enable_injection_points} // '') ne 'yes';

	$primary = PostgreSQL::Test::Cluster->new('primary_held');
	$primary->init(allows_streaming => 1);
	$primary->append_conf('postgresql.conf', "autovacuum = off\nmax_wal_size = 4GB\nshared_buffers = 32MB\n");
	$primary->start;
	$primary->safe_psql('postgres', q{CREATE EXTENSION injection_points;
		CREATE FUNCTION some_uuid(i int, salt text) RETURNS uuid IMMUTABLE LANGUAGE sql AS 'SELECT md5(salt || i)::uuid';});
	$primary->backup('backup');
	$standby = PostgreSQL::Test::Cluster->new('standby_held');
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->start;
	my $held = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'background writer' AND wait_event = 'aio-trim'};
	$standby->safe_psql('postgres', q{SELECT injection_points_attach('aio-trim', 'wait')});
	$primary->safe_psql('postgres', create('grows') . 'INSERT INTO grows ' . rows(1, 20000) . '; CREATE TABLE other (n int)');
	my $attempts = 10 * $PostgreSQL::Test::Utils::timeout_default;
	while ($standby->safe_psql('postgres', $held) ne 't' && $attempts-- > 0)
	{
		usleep(100_000);
		$primary->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '', true)});
	}
	is($standby->safe_psql('postgres', $held), 't', 'the background writer is held up by a file');
	$primary->safe_psql('postgres', q{INSERT INTO other SELECT generate_series(1, 10000)});
	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM other'), 10000, 'other files are extended');
	$primary->stop;
	$standby->promote;
	$standby->safe_psql('postgres', q{INSERT INTO other SELECT generate_series(1, 10000)});
	is($standby->safe_psql('postgres', $held), 't', 'a standby is promoted meanwhile, and goes on');
	my $session = $standby->background_psql('postgres');
	$session->query_until(qr/begun/, "\\echo begun\nINSERT INTO grows " . rows(30001, 40000) . ";\n");
	$standby->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND wait_event = 'DataFileTruncate'});
	$standby->safe_psql('postgres', q{SELECT injection_points_detach('aio-trim'); SELECT injection_points_wakeup('aio-trim')});
	$session->quit;
	is($standby->safe_psql('postgres', 'SELECT count(*), count(*) FILTER (WHERE u = some_uuid(i, $$u$$)) FROM grows'), '30000|30000',
		'who extends that file has waited for it');
	$standby->stop;
}

done_testing();
