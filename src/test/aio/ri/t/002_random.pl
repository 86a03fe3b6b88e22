
# Copyright (c) 2026, the pgawait authors

# Random statements on tables with foreign keys and with a deferrable unique key:
# their rows, in the same order, their errors, and the rows and tables that they
# have locked are those of a server that checks each key by a query and looks
# nothing up ahead; or of the installation that AIO_REFERENCE names, such as
# build/stock.  A failure names the seed; AIO_SEED=... repeats it.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{AIO_SEED} // time;
srand($seed);

sub any { return $_[ rand @_ ]; }
sub some_key { return int(rand 12); }

my @actions = ('NO ACTION', 'RESTRICT', 'CASCADE', 'SET NULL', 'SET DEFAULT');
my @deferrals = ('', '', 'DEFERRABLE', 'DEFERRABLE INITIALLY DEFERRED');

# Two columns that are referred to, and tables that refer to them, and so on.
sub schema
{
	my $sql = '';
	my $partitioned = rand() < 0.3;
	$sql .= 'CREATE TABLE a (k int, l int, v int, PRIMARY KEY (k, l), UNIQUE (' . any('k, l', 'l, k') . '))'
	  . ($partitioned ? ' PARTITION BY RANGE (k); CREATE TABLE a1 PARTITION OF a FOR VALUES FROM (MINVALUE) TO (5); CREATE TABLE a2 PARTITION OF a DEFAULT;' : ';');
	$sql .= 'CREATE TABLE b (id ' . any('int', 'bigint', 'numeric', 'text') . ' PRIMARY KEY, v int);';
	foreach my $table ('c', 'd', 'e')
	{
		my $parts = rand() < 0.3;
		my $match = any('', 'MATCH FULL');
		my $type = $sql =~ /b \(id (\w+)/ ? $1 : die;
		$type = any('int', 'bigint', 'smallint') if $type eq 'bigint' || $type eq 'int';
		$sql .= "CREATE TABLE $table (n int, k int DEFAULT 1, l int DEFAULT 1, b $type DEFAULT 3"
		  . ($table eq 'e' ? ', PRIMARY KEY (n)' : '') . ')' . ($parts ? " PARTITION BY HASH (n); CREATE TABLE ${table}1 PARTITION OF $table FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE ${table}2 PARTITION OF $table FOR VALUES WITH (MODULUS 2, REMAINDER 1);" : ';');
		$sql .= "ALTER TABLE $table ADD CONSTRAINT ${table}_a FOREIGN KEY (k, l) REFERENCES a $match ON DELETE " . any(@actions) . ' ON UPDATE ' . any(@actions) . ' ' . any(@deferrals) . ';';
		$sql .= "ALTER TABLE $table ADD CONSTRAINT ${table}_b FOREIGN KEY (b) REFERENCES b ON DELETE " . any(@actions) . ' ON UPDATE ' . any(@actions) . ' ' . any(@deferrals) . ';';
		$sql .= "CREATE INDEX ON $table (" . any('k', 'k, l', 'l, k') . ');' if rand() < 0.7;
		$sql .= "CREATE INDEX ON $table USING " . any('btree', 'hash') . ' (b);' if rand() < 0.7;
	}
	$sql .= 'CREATE TABLE f (n int REFERENCES e ON DELETE CASCADE ON UPDATE CASCADE, up int); ALTER TABLE f ADD UNIQUE (n); ALTER TABLE f ADD FOREIGN KEY (up) REFERENCES f (n) ' . any(@deferrals) . ';';
	$sql .= 'CREATE TABLE g (n int, pad text); ALTER TABLE g ADD UNIQUE (n) ' . any(@deferrals) . '; ALTER TABLE g ALTER pad SET STORAGE EXTERNAL;';
	$sql .= "INSERT INTO g SELECT i, repeat(md5(i::text), 100) FROM generate_series(1, 40) i ORDER BY hashint4(i);";
	$sql .= 'INSERT INTO a SELECT i, j, i FROM generate_series(0, 9) i, generate_series(0, 3) j; INSERT INTO b SELECT i, i FROM generate_series(0, 9) i;';
	return $sql;
}

# The rows of tables that are referred to that this transaction has locked, and
# how.
my $functions = q{
	CREATE EXTENSION pgrowlocks;
	CREATE FUNCTION locked_rows(OUT what text, OUT modes text[]) RETURNS SETOF record LANGUAGE plpgsql AS $$
		DECLARE tab text;
		BEGIN
			FOR tab IN SELECT relname FROM pg_class WHERE relname ~ '^[abe][12]?$' AND relkind = 'r' ORDER BY relname LOOP
				RETURN QUERY EXECUTE format('SELECT %L || t::text, l.modes FROM pgrowlocks(%L) l JOIN %I t ON t.ctid = l.locked_row ORDER BY 1', tab, tab, tab);
			END LOOP;
		END $$;
};

sub key { return any('NULL', map { some_key() } 1 .. 9); }

sub statement
{
	my $table = any('c', 'c', 'd', 'd', 'e');
	my $returning = any('', ' RETURNING *');
	my @k = map { key() } 1 .. 6;
	my $n = int(rand 100);
	return any(
		"INSERT INTO $table VALUES ($n, $k[0], $k[1], $k[2])$returning",
		"INSERT INTO $table SELECT 1000 + $n + i, i % " . (2 + int(rand 9)) . ', i % ' . (1 + int(rand 4)) . ', i % ' . (2 + int(rand 9)) . " FROM generate_series(1, 60) i$returning",
		"UPDATE $table SET k = $k[0], l = $k[1] WHERE n % 3 = $n % 3$returning",
		"UPDATE $table SET b = $k[2] WHERE n % 5 = $n % 5$returning",
		"UPDATE $table SET n = n + 10000 WHERE n % 7 = $n % 7$returning",
		"UPDATE a SET k = k + " . (1 + int(rand 3)) . " WHERE l = " . int(rand 4) . $returning,
		'UPDATE a SET v = v + 1 WHERE k = ' . some_key(),
		'UPDATE b SET v = v + 1 WHERE v = ' . some_key(),
		"DELETE FROM a WHERE k = " . some_key() . ' AND l = ' . int(rand 4) . $returning,
		"DELETE FROM b WHERE v = " . some_key() . $returning,
		"DELETE FROM $table WHERE n % 4 = $n % 4$returning",
		"INSERT INTO a SELECT k, l, 1 FROM generate_series(0, 11) k, generate_series(0, 3) l ON CONFLICT DO NOTHING",
		"INSERT INTO b SELECT i, i FROM generate_series(0, 11) i ON CONFLICT DO NOTHING",
		"INSERT INTO f SELECT n, (SELECT min(n) FROM e) FROM e ON CONFLICT DO NOTHING",
		"DELETE FROM f WHERE n % 3 = $n % 3",
		"WITH x AS (DELETE FROM $table WHERE n % 5 = $n % 5 RETURNING *) INSERT INTO $table SELECT n + 1, k, l, b FROM x",
		'INSERT INTO b SELECT i, i FROM generate_series(' . int(rand 9) . ", 12) i ON CONFLICT (id) DO UPDATE SET v = excluded.v + 1$returning",
		'INSERT INTO a SELECT k, l, 7 FROM generate_series(3, 11) k, generate_series(0, 3) l ON CONFLICT (k, l) DO UPDATE SET '
		  . any('v = excluded.v', 'k = excluded.k + 20', 'l = a.l + 4') . ' WHERE a.l <> ' . int(rand 4) . $returning,
		'MERGE INTO a USING (SELECT i % 12 AS k, i % 4 AS l, i FROM generate_series(' . int(rand 20) . ', 23) i) s ON a.k = s.k AND a.l = s.l WHEN MATCHED AND s.i % 3 = 0 THEN '
		  . any('DELETE', 'DO NOTHING', 'UPDATE SET k = a.k + 1') . ' WHEN MATCHED THEN UPDATE SET v = s.i WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.l, s.i)'
		  . any('', ' RETURNING merge_action(), a.*'),
		"MERGE INTO $table t USING generate_series($n, $n + 50) i ON t.n = i WHEN MATCHED THEN "
		  . any('DELETE', "UPDATE SET b = $k[3]") . " WHEN NOT MATCHED THEN INSERT VALUES (i, $k[4], $k[5], $k[3])" . any('', ' RETURNING merge_action(), t.*'),
		'UPDATE g SET n = n + ' . any(1, 3, 50) . ' WHERE n % ' . (1 + int(rand 3)) . " = 0$returning",
		"INSERT INTO g SELECT i, repeat(md5(i::text), 100) FROM generate_series($n, $n + 20) i",
		'DELETE FROM g WHERE n % 4 = ' . int(rand 4) . ' RETURNING n, md5(pad)',
		'SELECT n, md5(pad) FROM g ' . any('', 'WHERE n < 30 ORDER BY n', "WHERE pad LIKE '%abc%'"),
		'CREATE TABLE h AS SELECT * FROM g; SELECT count(*), md5(string_agg(md5(pad), NULL)) FROM h; DROP TABLE h',
		'SET CONSTRAINTS ALL ' . any('IMMEDIATE', 'DEFERRED'),
		'SAVEPOINT s', 'ROLLBACK TO s', 'RELEASE s',
		'SELECT * FROM locked_rows()', 'SELECT * FROM locked_rows()',
		q{SELECT relation::regclass, mode FROM pg_locks JOIN pg_class c ON c.oid = relation
			WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relkind IN ('r', 'p') AND relname ~ '^[a-g]' ORDER BY relname, mode},
		'COMMIT; BEGIN' . any('', ' ISOLATION LEVEL REPEATABLE READ', ' ISOLATION LEVEL SERIALIZABLE'),
		'ROLLBACK; BEGIN');
}

my $node = PostgreSQL::Test::Cluster->new('ri_random');
$node->init;
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->start;

my $forced = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_lookups'});
my %settings = (
	stock => { 'aio.direct_foreign_key_checks' => 'off', 'aio.lookup_ahead' => 0 },
	direct => { 'aio.direct_foreign_key_checks' => 'on', 'aio.lookup_ahead' => 0 },
	ahead => { 'aio.direct_foreign_key_checks' => 'off', 'aio.lookup_ahead' => 64, $forced ? ('aio.debug_lookups' => 13) : () },
	both => { 'aio.direct_foreign_key_checks' => 'on', 'aio.lookup_ahead' => 64, $forced ? ('aio.debug_lookups' => 64) : () },
);

my $reference = $node;
if (my $install = $ENV{AIO_REFERENCE})
{
	$reference = PostgreSQL::Test::Cluster->new('reference', install_path => $install);
	$reference->init;
	$reference->append_conf('postgresql.conf', 'autovacuum = off');
	$reference->start;
	$settings{stock} = {};
}

foreach my $round (1 .. ($ENV{AIO_ROUNDS} // 20))
{
	my $schema = schema();
	my $script = join ";\n", map { statement() } 1 .. 60;
	my %output;
	foreach my $how (sort keys %settings)
	{
		my $server = $how eq 'stock' ? $reference : $node;
		$server->safe_psql('postgres', "DROP DATABASE IF EXISTS d; CREATE DATABASE d");
		$server->safe_psql('postgres', "ALTER DATABASE d SET $_ = '$settings{$how}{$_}'") foreach keys %{ $settings{$how} };
		$server->safe_psql('d', $functions . $schema);
		my ($out, $err) = ('', '');
		$server->psql('d', "\\set VERBOSITY verbose\n\\set ON_ERROR_ROLLBACK on\n\\set SHOW_CONTEXT never\nBEGIN;\n$script;\nCOMMIT;\n"
			  . join '', map { "SELECT * FROM $_ AS t ORDER BY t::text;\n" } qw(c d e g),
			on_error_stop => 0, stdout => \$out, stderr => \$err);
		$err //= '';
		$output{$how} = $out . "\n" . join "\n", grep { !/^LOCATION:/ } map { s/^psql:<stdin>:\d+: //r } split /\n/, $err;
	}
	is($output{$_}, $output{stock}, "seed $seed, round $round: $_") or diag("$schema\n$script") foreach qw(direct ahead both);
}
$node->stop;
$reference->stop if $reference != $node;

done_testing();
