# Copyright (c) 2026, the pgawait authors

# A subscription's workers look up ahead the rows that are going to be updated
# and deleted: the subscriber has what the publisher has, conflicts and errors
# are those of a subscriber that does not look ahead, and nothing is lost or
# applied twice when workers end.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my ($method) = grep { !$methods{$_} } qw(io_uring libaio worker);
my $rows = 20000;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', "autovacuum = off\nmax_prepared_transactions = 5");
$publisher->start;
my $subscriber = create_cold_node('subscriber', $method);
$subscriber->append_conf('postgresql.conf', q{
	max_prepared_transactions = 5
	max_logical_replication_workers = 8
	wal_retrieve_retry_interval = 100ms
	log_error_verbosity = verbose
});
$subscriber->restart;

# Those of the subscriber differ: in types, in the order of columns, in how they
# are partitioned.
my %tables = (
	t => [ 'id bigint, v int, pad text', 'v int, id bigint, pad text, own int DEFAULT 7', 'PRIMARY KEY (id)' ],
	u => [ 'id uuid, v int, pad text', 'id uuid, v int, pad text', 'PRIMARY KEY (id)' ],
	two => [ 'id int, b text, v int, pad text', 'id bigint, b varchar(20), v int, pad text', 'PRIMARY KEY (b, id)' ],
	parts => [ 'id bigint, v int, pad text', 'id bigint, v int, pad text', 'PRIMARY KEY (id)', 'PARTITION BY HASH (id)' ],
	keyless => [ 'id int, v int, pad text', 'id int, v int, pad text', '' ],
	conflicts_0 => [ 'id int, v int, pad text', 'id int, v int, pad text', 'PRIMARY KEY (id)' ],
	conflicts_64 => [ 'id int, v int, pad text', 'id int, v int, pad text', 'PRIMARY KEY (id)' ],
	failing => [ 'id int, v int, pad text', 'id int, v int, pad text', 'PRIMARY KEY (id)' ],
	keyed => [ 'id int, v int, pad text', 'id int, v int, pad text', '' ],
);
my %values = (u => 'md5(i::text)::uuid, i', two => q{i, 'key ' || i % 7, i});
foreach my $node ($publisher, $subscriber)
{
	my $ours = $node == $subscriber;

	foreach my $name (sort keys %tables)
	{
		my ($theirs, $mine, $key, $partitions) = @{ $tables{$name} };
		$node->safe_psql('postgres', "CREATE TABLE $name (" . ($ours ? $mine : $theirs) . ($key ? ", $key" : '') . ') ' . ($ours && $partitions ? $partitions : ''));
	}
	$node->safe_psql('postgres', q{
		ALTER TABLE keyless REPLICA IDENTITY FULL;
		ALTER TABLE keyed REPLICA IDENTITY FULL;
	});
}
$subscriber->safe_psql('postgres', q{
	CREATE EXTENSION amcheck;
	CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 0);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER 1);
	CREATE TABLE parts_2 (pad text, v int, id bigint PRIMARY KEY);
	ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES WITH (MODULUS 3, REMAINDER 2);
	CREATE INDEX t_v ON t (v) WITH (fillfactor = 30);
	CREATE INDEX u_v ON u (v) WITH (fillfactor = 30);
	CREATE INDEX keyless_id ON keyless (id) WITH (fillfactor = 30);
	ALTER TABLE keyed ADD PRIMARY KEY (id) WITH (fillfactor = 30);
});
foreach my $name (sort keys %tables)
{
	my $values = $values{$name} // 'i, i';
	$publisher->safe_psql('postgres', "INSERT INTO $name SELECT $values, repeat('x', 200) FROM generate_series(1, $rows) i ORDER BY hashint4(i)");
}
$publisher->safe_psql('postgres', q{
	CREATE TABLE pick AS SELECT i, row_number() OVER (ORDER BY hashint4(i + 11)) AS n FROM generate_series(1, } . $rows . q{) i;
	CREATE INDEX ON pick (n);
	CREATE PUBLICATION pub FOR TABLE t, u, two, parts, keyless, keyed, conflicts_0, conflicts_64, failing});
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub WITH (two_phase = on, streaming = off)");
$subscriber->wait_for_subscription_sync($publisher, 'sub');

sub contents
{
	my ($node) = @_;
	return join "\n", map { $node->safe_psql('postgres', "SELECT '$_', count(*), sum(hashtext(r::text)::bigint) FROM (SELECT id, v, pad FROM $_) r") } grep { !/^conflicts/ } sort keys %tables;
}

sub check
{
	my ($what) = @_;
	$publisher->wait_for_catchup('sub');
	is(contents($subscriber), contents($publisher), "$what: rows");
	return;
}

# Counters of what the workers have looked up.
sub lookups
{
	my ($count) = @_;
	return $subscriber->safe_psql('postgres', qq{
		SELECT coalesce(sum($count), 0) FROM pg_stat_aio WHERE backend_type = 'background worker' AND kind = 'lookup'});
}

# Conflicts that have been counted.
sub conflicts
{
	return $subscriber->safe_psql('postgres', q{
		SELECT apply_error_count, confl_insert_exists, confl_update_origin_differs, confl_update_exists, confl_update_missing,
			confl_delete_origin_differs, confl_delete_missing FROM pg_stat_subscription_stats WHERE subname = 'sub'});
}

sub start_cold
{
	$publisher->wait_for_catchup('sub');
	$subscriber->safe_psql('postgres', q{CHECKPOINT; SELECT FROM pg_buffercache_evict_all()});
	return;
}

# A new worker has its counts reported when it is idle, or ends.
sub restart_workers
{
	my ($settings) = @_;
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub DISABLE');
	$subscriber->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker'})
	  or die 'workers do not end';
	$subscriber->safe_psql('postgres', "ALTER SYSTEM SET $_") foreach @$settings;
	$subscriber->reload if @$settings;
	$subscriber->safe_psql('postgres', q{CHECKPOINT; SELECT FROM pg_buffercache_evict_all()});
	$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub ENABLE');
	return;
}

# Rows of the publisher that are picked, in random order; some may have been
# deleted before, when it begins anew.
my $picked = 0;
sub picked
{
	my ($n) = @_;
	$picked = 0 if $picked + $n > $rows;
	$picked += $n;
	return "(SELECT i FROM pick WHERE n > $picked - $n AND n <= $picked)";
}
sub by_id
{
	my ($verb, $table, $n, $what) = @_;
	$what //= '';
	my $key = $table eq 'u' ? 'md5(p.i::text)::uuid' : 'p.i';
	my $more = $table eq 'two' ? q{ AND r.b = 'key ' || p.i % 7} : '';
	my $from = $verb eq 'DELETE' ? 'USING' : 'FROM';
	return ($verb eq 'DELETE' ? "DELETE FROM $table r" : "UPDATE $table r SET $what") . " $from @{[ picked($n) ]} p WHERE r.id = $key$more;";
}

# One transaction each.
my @cases = (
	[ 'updates', sub { by_id('UPDATE', 't', 800, "pad = repeat('y', 200)") } ],
	[ 'updates of an indexed column', sub { by_id('UPDATE', 'u', 800, 'v = v + 100000') } ],
	[ 'deletions', sub { by_id('DELETE', 't', 800) } ],
	[ 'two columns of other types', sub { by_id('UPDATE', 'two', 800, 'v = -v') } ],
	[ 'partitions', sub { by_id('UPDATE', 'parts', 800, 'v = -v') } ],
	[ 'deletions from partitions', sub { by_id('DELETE', 'parts', 400) } ],
	[ 'whole rows, and a primary key', sub { by_id('UPDATE', 'keyed', 800, 'v = -v') } ],
	[ 'whole rows, and an index', sub { by_id('DELETE', 'keyless', 800) } ],
	[ 'other keys', sub { by_id('UPDATE', 'u', 800, "id = md5((p.i + 1000000)::text)::uuid") } ],
	[ 'two tables', sub { by_id('UPDATE', 't', 400, 'v = -v') . by_id('DELETE', 'u', 400) } ],
);

foreach my $case (@cases)
{
	my ($what, $script) = @$case;
	restart_workers(['aio.lookup_ahead = 0']);
	my $before = lookups('started');
	$publisher->safe_psql('postgres', 'BEGIN; ' . $script->() . ' COMMIT');
	check("$what, not ahead");
	restart_workers(['aio.lookup_ahead = 64']);
	is(lookups('started'), $before, "$what: nothing is looked up ahead if that is switched off");

	# if the machine is busy, what is looked up may come too late
	my ($started, $late);
	foreach my $try (1 .. 5)
	{
		($started, $late) = (lookups('started'), lookups('waited'));
		$publisher->safe_psql('postgres', 'BEGIN; ' . $script->() . ' COMMIT');
		check("$what, ahead");
		restart_workers([]);
		($started, $late) = (lookups('started') - $started, lookups('waited') - $late);
		last if 2 * $late < $started;
		restart_workers(['aio.lookup_ahead = 64']);
	}
	cmp_ok($started, '>', 200, "$what: looked up ahead");
	cmp_ok(2 * $late, '<', $started, "$what: in most cases what will be needed");
}


# Many small transactions, with rows that are missing or have been changed by
# others: what is counted and logged is the same if nothing is looked up ahead.
sub conflicts_of
{
	my ($table) = @_;
	my $script = '';

	$subscriber->safe_psql('postgres', qq{
		UPDATE $table SET v = -1 WHERE id % 10 = 3;
		DELETE FROM $table WHERE id % 10 = 5});
	foreach my $i (1 .. 300)
	{
		my $id = $i * 7919 % $rows + 1;
		$script .= $i % 3 ? "UPDATE $table SET pad = 'new' WHERE id = $id;\n" : "DELETE FROM $table WHERE id = $id;\n";
	}
	$publisher->wait_for_catchup('sub');
	my @before = split /\|/, conflicts();
	my $offset = -s $subscriber->logfile;
	start_cold();
	$publisher->safe_psql('postgres', $script);
	$publisher->wait_for_catchup('sub');
	restart_workers([]);
	my @after = split /\|/, conflicts();
	my @lines = grep { s/.*(conflict detected on relation|Updating the row|Deleting the row|Could not find the row|Existing local row|Remote row|Replica identity)/$1/ } split /\n/, slurp_file($subscriber->logfile, $offset);
	return map { s/ at \d+-.*?([;:.]$|\+\S+)//gmr =~ s/in transaction \d+//gr =~ s/$table/TABLE/gr }
	  (join(' ', map { $after[$_] - $before[$_] } 0 .. $#after), join("\n", @lines));
}
restart_workers(['track_commit_timestamp = on']);
$subscriber->restart;
my @conflicts = map { [ (restart_workers(["aio.lookup_ahead = $_"]), conflicts_of("conflicts_$_"))[-2, -1] ] } 0, 64;
is($conflicts[1][0], $conflicts[0][0], 'small transactions: as many conflicts of each kind');
like($conflicts[0][0], qr/^0 0 [1-9]\d* 0 [1-9]\d* [1-9]\d* [1-9]\d*$/, 'there are some');
is($conflicts[1][1], $conflicts[0][1], 'small transactions: the same is logged of them');

# What waits behind a change that cannot be applied is not lost, nor is anything
# applied behind it.
sub failing_change
{
	my ($table) = @_;
	$publisher->wait_for_catchup('sub');
	my $offset = -s $subscriber->logfile;
	my ($in_the_way) = (5 * $rows);
	$subscriber->safe_psql('postgres', "INSERT INTO $table VALUES ($in_the_way)");
	$publisher->safe_psql('postgres', join(' ', map { "UPDATE $table SET v = -$_ WHERE id = @{[ $_ * 31 + 1 ]}; " } 1 .. 100) . "INSERT INTO $table VALUES ($in_the_way); "
		  . join(' ', map { "UPDATE $table SET v = -$_ WHERE id = @{[ $_ * 31 + 1 ]};" } 101 .. 200));
	$subscriber->wait_for_log(qr/conflict detected on relation "public.$table": conflict=insert_exists.*Key \(id\)=\($in_the_way\)/s, $offset);
	my $applied = $subscriber->safe_psql('postgres', "SELECT count(*) FROM $table WHERE v BETWEEN -200 AND -1");
	$subscriber->safe_psql('postgres', "DELETE FROM $table WHERE id = $in_the_way");
	$publisher->wait_for_catchup('sub');
	return ($applied, $subscriber->safe_psql('postgres', "SELECT count(*) FROM $table WHERE v BETWEEN -200 AND -1"));
}
$subscriber->safe_psql('postgres', 'ALTER SYSTEM SET aio.lookup_ahead = 64');
is(join(' ', failing_change('failing')), '100 200', 'a change that fails');

# The connection is lost while messages are kept: what has been sent is applied
# before the worker notices, and if it has not, it is sent again.
my $number = 0;
foreach my $what ('sender is terminated', 'worker is terminated', 'publisher is killed', 'publisher stops')
{
	my $rows_of = sub { return join ' ', map { "UPDATE u SET v = -$number WHERE id = md5('@{[ $_ * 41 + $number ]}')::uuid;" } @_ };
	my $terminate = sub {
		my ($node, $type) = @_;
		$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = '$type'");
	};

	# the worker waits for a row that somebody has locked
	$number++;
	restart_workers([]);
	my $lock = $subscriber->background_psql('postgres');
	$lock->query_safe('BEGIN; UPDATE t SET own = 8 WHERE id = (SELECT min(id) FROM t)');
	$publisher->safe_psql('postgres', 'BEGIN;' . $rows_of->(1 .. 150) . 'UPDATE t SET v = v + 1 WHERE id = (SELECT min(id) FROM t);' . $rows_of->(151 .. 180) . 'COMMIT');
	$subscriber->poll_query_until('postgres', q{
		SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'logical replication apply worker' AND wait_event = 'transactionid'})
	  or die 'the worker does not wait';
	$publisher->poll_query_until('postgres', q{SELECT sent_lsn >= pg_current_wal_lsn() FROM pg_stat_replication WHERE application_name = 'sub'})
	  or die 'not all is sent';
	my $changed = $publisher->safe_psql('postgres', "SELECT count(*) FROM u WHERE v = -$number");
	$terminate->($publisher, 'walsender') if $what =~ /sender/;
	$terminate->($subscriber, 'logical replication apply worker') if $what =~ /worker/;
	$publisher->stop('immediate') if $what =~ /killed/;
	$publisher->command_ok([ 'pg_ctl', '--no-wait', '--pgdata' => $publisher->data_dir, '--mode' => 'fast', 'stop' ], 'stopping')
	  if $what =~ /stops/;
	$lock->quit;
	if ($what =~ /publisher/)
	{
		$subscriber->poll_query_until('postgres', "SELECT count(*) = $changed FROM u WHERE v = -$number")
		  or fail("$what: what had been sent is applied");
		$publisher->stop if $what =~ /stops/;
		$publisher->start;
	}
	check($what);
}

# Large transactions are streamed.  Parts that are rolled back, and keys that
# are met again in later parts.
my $streamed = sub {
	return join ' ', 'BEGIN;', by_id('UPDATE', 't', 900, 'v = v + 1'), 'SAVEPOINT a;', by_id('DELETE', 'parts', 500), 'ROLLBACK TO a;',
	  by_id('UPDATE', 'u', 300, 'v = -7'), by_id('UPDATE', 'parts', 500, 'v = -8'), 'SAVEPOINT b;', by_id('DELETE', 't', 400), by_id('UPDATE', 't', 400, 'v = -9'), 'COMMIT;';
};
$publisher->safe_psql('postgres', q{ALTER SYSTEM SET logical_decoding_work_mem = '64kB'; SELECT pg_reload_conf()});
foreach my $how ('on', 'parallel')
{
	my $before = lookups('started');
	$subscriber->safe_psql('postgres', "ALTER SUBSCRIPTION sub SET (streaming = $how)");
	restart_workers([]);
	$publisher->safe_psql('postgres', $streamed->());
	check("streaming = $how");
	$publisher->safe_psql('postgres', "BEGIN; @{[ by_id('DELETE', 'u', 800) ]} PREPARE TRANSACTION 'p'; @{[ by_id('UPDATE', 't', 900, 'v = -10') ]} COMMIT PREPARED 'p'");
	check("streaming = $how, a prepared transaction");
	restart_workers([]);
	cmp_ok(lookups('started') - $before, '>', 1000, "streaming = $how: looked up ahead");
}

# The leading worker cannot hand over changes, and writes them to a file.
$subscriber->safe_psql('postgres', 'ALTER SYSTEM SET debug_logical_replication_streaming = immediate');
restart_workers([]);
$publisher->safe_psql('postgres', $streamed->());
check('parallel, by a file');
$subscriber->safe_psql('postgres', 'ALTER SYSTEM RESET debug_logical_replication_streaming');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub SET (streaming = off, binary = true)');
$publisher->safe_psql('postgres', 'ALTER SYSTEM RESET logical_decoding_work_mem; SELECT pg_reload_conf()');

# Values in binary form; tables are altered while others are changed.
restart_workers([]);
my $before = lookups('started');
$publisher->safe_psql('postgres', 'BEGIN; ' . by_id('UPDATE', 't', 800, 'v = -11') . by_id('UPDATE', 'u', 400, 'v = -11') . 'COMMIT');
check('binary');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION sub SET (binary = false)');
restart_workers([]);
cmp_ok(lookups('started') - $before, '>', 600, 'binary: looked up ahead');
foreach my $ddl ('ALTER TABLE t ADD more int', 'ALTER TABLE t ALTER id TYPE numeric', 'ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id)', 'ALTER TABLE t DROP more',
	'ALTER TABLE u DROP CONSTRAINT u_pkey, ADD CONSTRAINT u_key UNIQUE (id); ALTER TABLE u ALTER id SET NOT NULL, REPLICA IDENTITY USING INDEX u_key', 'VACUUM FULL u')
{
	start_cold();
	$publisher->safe_psql('postgres', by_id('UPDATE', 't', 200, 'v = -12') . by_id('UPDATE', 'u', 200, 'v = -12'));
	$subscriber->safe_psql('postgres', $ddl);
	$publisher->safe_psql('postgres', by_id('UPDATE', 't', 200, 'v = -13') . by_id('UPDATE', 'u', 200, 'v = -13'));
	check($ddl);
}

# A trigger that fires, and looks.
$subscriber->safe_psql('postgres', q{
	CREATE TABLE seen (id numeric, n int);
	CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF OLD.id % 10 = 0 THEN INSERT INTO public.seen SELECT OLD.id, count(*) FROM public.t WHERE v = -14; END IF;
			RETURN NEW;
		END $$;
	CREATE TRIGGER look BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION look();
	ALTER TABLE t ENABLE ALWAYS TRIGGER look});
start_cold();
$publisher->safe_psql('postgres', by_id('UPDATE', 't', 500, 'v = -14'));
check('a trigger');
my ($looks, $sights) = split /\|/, $subscriber->safe_psql('postgres', 'SELECT count(*), count(DISTINCT n) FROM seen');
cmp_ok($looks, '>', 10, 'a trigger looks');
is($sights, $looks, 'it sees what has been applied before');
is($subscriber->safe_psql('postgres', q{
	SELECT count(bt_index_parent_check(indexrelid, true, true)) > 10 FROM pg_index JOIN pg_class c ON c.oid = indexrelid
	 WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace}), 't', 'heap and indexes agree');

$subscriber->stop;
$publisher->stop;
done_testing();
