
# Copyright (c) 2026, the pgawait authors

# Random changes of a publisher, applied by a subscriber that looks ahead and
# collects index entries, and by one that does neither; or by one of the
# installation that AIO_REFERENCE names, such as build/stock.  Their rows, the
# conflicts that they count and what they log of these are the same.  A failure
# names the seed; AIO_SEED=... repeats it, and AIO_ROUNDS=... makes more rounds.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{AIO_SEED} // time;
srand($seed);

sub any { return $_[ rand @_ ]; }
sub chance { return rand() < $_[0]; }

# Rows that a publisher may have are below this, unless they are meant to meet
# others; those that only a subscriber has are not.
my $keys_end = 5000;

# Tables of the publisher and of the subscribers, and which columns have the key.
# Some differ in types, in the order of columns and in partitions.
my ($theirs, $mine, %key);

sub index_of
{
	my ($table, $columns, $share) = @_;
	return chance($share // 0.7) ? "CREATE INDEX ON $table " . any("($columns)", "($columns)", "USING hash ($columns)") . ';' : '';
}

sub choose_schema
{
	my $type = any('int', 'bigint', 'numeric');
	%key = (plain => 'id', pair => 'id, b', whole => 'id', other => 'id', parts => 'id');
	$theirs = qq{
		CREATE TABLE plain (id int PRIMARY KEY, v int, doc text);
		CREATE TABLE pair (b text, id int, v int, doc text, PRIMARY KEY (id, b));
		CREATE TABLE whole (id int, v int, doc text);
		CREATE TABLE other (id int NOT NULL, v int, doc text);
		CREATE TABLE parts (id int PRIMARY KEY, v int, doc text)};
	$theirs .= chance(0.5) ? ' PARTITION BY RANGE (id); CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (150); CREATE TABLE parts_b PARTITION OF parts DEFAULT;' : ';';
	$theirs .= 'CREATE TABLE marker (n int PRIMARY KEY, id int);';
	$mine = "CREATE TABLE plain (doc text, id $type PRIMARY KEY, own int DEFAULT 7, v int);"
	  . 'CREATE TABLE pair (id bigint, b varchar(20), v int, doc text, PRIMARY KEY (' . any('id, b', 'b, id') . '));'
	  . 'CREATE TABLE whole (id int, v int, doc text);' . index_of('whole', 'id')
	  . 'CREATE TABLE other (id int NOT NULL, v int, doc text);'
	  . 'CREATE TABLE parts (id int ' . (chance(0.8) ? 'PRIMARY KEY' : 'NOT NULL') . ', v int, doc text) PARTITION BY ' . any('HASH', 'RANGE') . ' (id);'
	  . 'CREATE TABLE marker (n int PRIMARY KEY, id int);';
	$mine .= $mine =~ /BY HASH/
	  ? 'CREATE TABLE parts_a PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE parts_b (doc text, v int, id int NOT NULL); ALTER TABLE parts ATTACH PARTITION parts_b FOR VALUES WITH (MODULUS 2, REMAINDER 1);'
	  : 'CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (200); CREATE TABLE parts_b (gone int, v int, id int NOT NULL, doc text); ALTER TABLE parts_b DROP gone; ALTER TABLE parts ATTACH PARTITION parts_b DEFAULT;';
	foreach my $sql (\$theirs, \$mine)
	{
		$$sql .= 'ALTER TABLE whole REPLICA IDENTITY FULL;';
		$$sql .= 'ALTER TABLE parts REPLICA IDENTITY FULL; ALTER TABLE parts_a REPLICA IDENTITY FULL; ALTER TABLE parts_b REPLICA IDENTITY FULL;' if $mine !~ /TABLE parts \(id int PRIMARY/ && $theirs =~ /parts_a/;
		$$sql .= 'ALTER TABLE parts REPLICA IDENTITY FULL;' if $mine !~ /TABLE parts \(id int PRIMARY/ && $theirs !~ /parts_a/;
		$$sql .= 'CREATE UNIQUE INDEX other_id ON other (id); ALTER TABLE other REPLICA IDENTITY USING INDEX other_id;';
		$$sql .= "ALTER TABLE $_ ALTER doc SET STORAGE EXTERNAL;" foreach qw(plain pair whole other);
	}
	$mine .= index_of($_, 'v') foreach sort keys %key;
	$mine .= index_of($_, 'id', 0.3) foreach sort keys %key;
	$mine .= 'CREATE INDEX ON plain USING gin (string_to_array(left(doc, 20), NULL));' if chance(0.3);
	return;
}

# Some rows, by their keys.
sub some_rows
{
	my $modulus = any(2, 5, 17, 50);
	my $n = int(rand $modulus);
	return chance(0.3) ? "id = " . int(rand 300) : "id % $modulus = $n" . (chance(0.3) ? ' AND id < ' . int(rand 300) : '');
}

sub value { return any("'short'", "'v' || id", "repeat(md5(id::text), 100)", 'NULL'); }

# Other keys, which no row has.
sub new_key
{
	my ($table, $column, $key, $rows) = @_;
	return "UPDATE $table t SET $column = $key WHERE NOT EXISTS (SELECT FROM $table o WHERE o.$column = " . ($key =~ s/\b(id|b)\b/t.$1/r) . ") AND $rows";
}

# A statement of the publisher.  It does not fail.
sub change
{
	my ($collides) = @_;
	my $table = any(sort keys %key);
	my $rows = some_rows();
	my $columns = $table eq 'pair' ? 'id, b, v, doc' : 'id, v, doc';
	my $values = $table eq 'pair' ? q{id, 'b' || id % 3, id, } : 'id, id, ';
	my $first = int(rand 300);
	my @changes = (
		"INSERT INTO $table ($columns) SELECT $values" . value() . " FROM generate_series($first, $first + " . any(3, 20, 100) . ') id'
		  . ($table eq 'whole' ? '' : ' ON CONFLICT DO NOTHING'),
		"UPDATE $table SET v = v + 1 WHERE $rows",
		"UPDATE $table SET v = v + 1 WHERE $rows",
		"UPDATE $table SET doc = " . value() . " WHERE $rows",
		new_key($table, 'id', 'id + ' . any(1, 300, 1000), "id < 3000 AND $rows"),
		"DELETE FROM $table WHERE $rows");
	push @changes, new_key('pair', 'b', "b || 'x'", "length(b) < 15 AND $rows");
	push @changes, "TRUNCATE $table" . any('', ', plain') if chance(0.15);
	push @changes, "INSERT INTO $table ($columns) SELECT $values" . "'meets another' FROM generate_series($keys_end + $first, $keys_end + $first + 3) id ON CONFLICT DO NOTHING" if $collides && $table ne 'whole';
	return any(@changes);
}

my $nprepared = 0;

# Whether a publisher sends a prepared transaction that is rolled back depends on
# how soon it comes to it, and so do conflicts of such a one.
my $may_be_sent;

# Assertions of PostgreSQL 18.6 fail in a walsender (ReorderBufferRestoreCleanup(),
# pgoutput_stream_abort()) that has spilled a part of a transaction before it could
# stream it, and meets a subtransaction, or the end of one that is rolled back.  So
# transactions that are too large for logical_decoding_work_mem have neither.
sub transaction
{
	my ($collides, $two_phase, $large) = @_;
	my $end = $large ? 'COMMIT' : any('COMMIT', 'COMMIT', 'COMMIT', 'COMMIT', 'ROLLBACK');
	my $sql = 'BEGIN;';
	foreach (1 .. any(1, 2, 5, 12))
	{
		$sql .= change($collides) . ";\n";
		$sql .= 'SAVEPOINT s;' . change($collides) . ';' . any('ROLLBACK TO s', 'RELEASE s') . ";\n" if !$large && chance(0.2);
	}
	return "$sql$end;\n" unless $two_phase && chance(0.2);
	$nprepared++;
	$may_be_sent = 1 if $end eq 'ROLLBACK';
	return $sql . "PREPARE TRANSACTION 'p$nprepared';\n$end PREPARED 'p$nprepared';\n";
}

# What a subscriber changes by itself, so that rows are missing, have another
# origin, or are in the way.
sub own_change
{
	my ($collides) = @_;
	my $table = any(sort keys %key);
	my $rows = some_rows();
	my $columns = $table eq 'pair' ? 'id, b, v' : 'id, v';
	my $values = $table eq 'pair' ? q{id, 'b' || id % 3, -1} : 'id, -1';
	my @changes = ("DELETE FROM $table WHERE $rows", "UPDATE $table SET v = -v WHERE $rows");
	push @changes, "INSERT INTO $table ($columns) SELECT $values FROM generate_series($keys_end, $keys_end + 300, 7) id ON CONFLICT DO NOTHING" if $collides && $table ne 'whole';
	return any(@changes);
}

my $conf = q{
	autovacuum = off
	max_prepared_transactions = 5
	track_commit_timestamp = on
	max_logical_replication_workers = 8
	wal_retrieve_retry_interval = 100ms
	log_error_verbosity = default
};
my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', $conf);
$publisher->start;

my %subscribers;
my $install = $ENV{AIO_REFERENCE};
foreach my $how ('off', 'on')
{
	my $node = PostgreSQL::Test::Cluster->new($how, $install && $how eq 'off' ? (install_path => $install) : ());
	$node->init;
	$node->append_conf('postgresql.conf', $conf);
	$node->append_conf('postgresql.conf', 'aio.lookup_ahead = 0') if $how eq 'off' && !$install;
	$node->append_conf('postgresql.conf', "aio.await_index_inserts = off\naio.index_batch_memory = 0") if $how eq 'off' && !$install;
	$node->start;
	$subscribers{$how} = $node;
}
my $forced = $subscribers{on}->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_lookups'});
if ($forced)
{
	$subscribers{on}->append_conf('postgresql.conf', "aio.debug_lookups = 13\naio.debug_rows_before_batch = 0");
	$subscribers{on}->restart;
}
$subscribers{on}->safe_psql('postgres', 'CREATE EXTENSION aio');

# Wait until a subscriber has applied what comes before this marker.  A
# transaction that cannot be applied is skipped.
my %offset;

sub wait_for_marker
{
	my ($node, $marker) = @_;
	for (;;)
	{
		$node->poll_query_until('d', "SELECT count(*) > 0 FROM marker WHERE n = $marker UNION ALL SELECT NOT subenabled FROM pg_subscription WHERE subname = 'sub' ORDER BY 1 DESC LIMIT 1")
		  or die "seed $seed: changes are not applied";
		return if $node->safe_psql('d', "SELECT count(*) FROM marker WHERE n = $marker") > 0;
		my ($lsn) = slurp_file($node->logfile, $offset{ $node->name }) =~ /.*finished at ([0-9A-F]+\/[0-9A-F]+)/s
		  or die "seed $seed: it is not known what to skip";
		$node->safe_psql('d', "ALTER SUBSCRIPTION sub SKIP (lsn = '$lsn'); ALTER SUBSCRIPTION sub ENABLE");
	}
}

sub contents
{
	my ($node) = @_;
	return join "\n", map { "$_: " . $node->safe_psql('d', "SELECT id, v, doc, " . ($_ eq 'pair' ? 'b' : "''") . " FROM $_ t ORDER BY 1, 2, 3, 4") } sort keys %key;
}

# What is logged of conflicts, without what differs from server to server.
sub logged
{
	my ($node) = @_;
	my @lines = grep { s/.*?(conflict detected on relation|Updating the row|Deleting the row|Could not find the row|Existing local row|Key already exists|Key \(|Remote row|Replica identity)/$1/ }
	  split /\n/, slurp_file($node->logfile, $offset{ $node->name });
	return join "\n", map { s/ at \d+-\d+-\d+ [\d:.]+\S*( \S+)??(?=[;:.,]|$)//gr =~ s/in transaction \d+/in transaction/gr =~ s/pg_\d+/origin/gr } @lines;
}

my $skipped = 0;
my $conflicts = 0;
my $marker = 0;
my $rounds = $ENV{AIO_ROUNDS} // 4;
foreach my $round (1 .. $rounds)
{
	choose_schema();
	my $streaming = any('off', 'on', 'parallel');
	my $two_phase = chance(0.5);
	my $large = $streaming ne 'off';

	# what is streamed to parallel workers cannot be skipped
	my $collides = $streaming ne 'parallel';
	my $via_root = $theirs =~ /parts_a/ ? 'true' : any('true', 'false');
	my $script = '';
	$may_be_sent = 0;

	$publisher->safe_psql('postgres', "ALTER SYSTEM SET logical_decoding_work_mem = '" . ($large ? '64kB' : '64MB') . q{'; SELECT pg_reload_conf()});
	$_->safe_psql('postgres', 'CREATE DATABASE d') foreach $publisher, values %subscribers;
	$publisher->safe_psql('d', "$theirs CREATE PUBLICATION pub FOR TABLE " . join(', ', sort(keys %key), 'marker') . " WITH (publish_via_partition_root = $via_root)");
	foreach my $how (sort keys %subscribers)
	{
		my $node = $subscribers{$how};
		$offset{ $node->name } = -s $node->logfile;
		$node->safe_psql('d', $mine);
		$node->safe_psql('d', "CREATE SUBSCRIPTION sub CONNECTION '" . $publisher->connstr . " dbname=d' PUBLICATION pub WITH (slot_name = 'sub_$how', copy_data = off, disable_on_error = true, "
			  . "streaming = $streaming, two_phase = " . ($two_phase ? 'on' : 'off') . ')');
	}
	foreach (1 .. 4)
	{
		my $changes = join '', map { transaction($collides, $two_phase, $large) } 1 .. 12;
		my $own = join '', map { own_change($collides) . ";\n" } 1 .. any(0, 2, 4);
		$marker++;
		$script .= "-- publisher\n$changes-- subscriber\n$own";
		$publisher->safe_psql('d', "${changes}INSERT INTO marker VALUES ($marker, 1);");
		foreach my $node (values %subscribers)
		{
			wait_for_marker($node, $marker);
			$node->safe_psql('d', $own) if $own;
		}
	}

	# workers that end have reported what they have counted
	my %result;
	foreach my $how (sort keys %subscribers)
	{
		my $node = $subscribers{$how};
		$node->safe_psql('d', 'ALTER SUBSCRIPTION sub DISABLE');
		$node->poll_query_until('d', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker'})
		  or die 'workers do not end';
		$result{$how}{rows} = contents($node);
		$result{$how}{counts} = $node->safe_psql('d', q{
			SELECT apply_error_count, confl_insert_exists, confl_update_origin_differs, confl_update_exists, confl_update_missing,
				confl_delete_origin_differs, confl_delete_missing, confl_multiple_unique_conflicts FROM pg_stat_subscription_stats});
		$result{$how}{log} = logged($node);

		# a transaction that has changed no row is sent again after a restart, and takes
		# back what is to be skipped, which its successor notices or not
		$may_be_sent = 1 if slurp_file($node->logfile, $offset{ $node->name }) =~ /did not match skip-LSN/;
		$node->safe_psql('d', 'DROP SUBSCRIPTION sub');
	}
	$conflicts += $_ foreach split /\|/, $result{on}{counts};
	$skipped += (split /\|/, $result{on}{counts})[0];
	foreach my $what ('rows', $may_be_sent ? () : ('counts', 'log'))
	{
		is($result{on}{$what}, $result{off}{$what}, "seed $seed, round $round: $what")
		  or diag("streaming = $streaming, two_phase = $two_phase, via root = $via_root\n$theirs\n$mine\n$script");
	}
	$_->safe_psql('postgres', 'DROP DATABASE d') foreach $publisher, values %subscribers;
}
cmp_ok($conflicts, '>', 0, "seed $seed: there have been conflicts, $conflicts; $skipped transactions were skipped");

sub lookups
{
	return $subscribers{on}->safe_psql('postgres', q{
		SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE backend_type = 'background worker' AND kind = 'lookup'});
}
cmp_ok(lookups(), '>', 100 * $rounds, 'keys were looked up ahead') if $forced;
$_->stop foreach values %subscribers;
$publisher->stop;

done_testing();
