
# Copyright (c) 2026, the pgawait authors

# Random statements on tables with foreign keys: their rows, in the same order,
# their errors, and the rows that they have locked are those of a server that
# checks each key by a query and looks nothing up ahead.  A failure names the
# seed; AIO_SEED=... repeats it.

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
	$sql .= 'INSERT INTO a SELECT i, j, i FROM generate_series(0, 9) i, generate_series(0, 3) j; INSERT INTO b SELECT i, i FROM generate_series(0, 9) i;';
	return $sql;
}

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
		'SET CONSTRAINTS ALL ' . any('IMMEDIATE', 'DEFERRED'),
		'SAVEPOINT s', 'ROLLBACK TO s', 'RELEASE s',
		"SELECT count(*), sum(k * 10 + l) FROM a WHERE xmax::text::bigint >= pg_current_xact_id()::text::bigint",
		"SELECT count(*), sum(v) FROM b WHERE xmax::text::bigint >= pg_current_xact_id()::text::bigint",
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

foreach my $round (1 .. ($ENV{AIO_ROUNDS} // 20))
{
	my $schema = schema();
	my $script = join ";\n", map { statement() } 1 .. 60;
	my %output;
	foreach my $how (sort keys %settings)
	{
		$node->safe_psql('postgres', "DROP DATABASE IF EXISTS d; CREATE DATABASE d");
		$node->safe_psql('postgres', "ALTER DATABASE d SET $_ = '$settings{$how}{$_}'") foreach keys %{ $settings{$how} };
		$node->safe_psql('d', $schema);
		my ($out, $err) = ('', '');
		$node->psql('d', "\\set VERBOSITY verbose\n\\set ON_ERROR_ROLLBACK on\n\\set SHOW_CONTEXT never\nBEGIN;\n$script;\nCOMMIT;\n"
			  . join '', map { "SELECT * FROM $_ ORDER BY 1, 2, 3;\nSELECT n, k, l, b FROM $_ WHERE false;\n" } qw(c d e),
			on_error_stop => 0, stdout => \$out, stderr => \$err);
		$err //= '';
		$output{$how} = $out . "\n" . join "\n", grep { !/^LOCATION:/ } map { s/^psql:<stdin>:\d+: //r } split /\n/, $err;
	}
	is($output{$_}, $output{stock}, "seed $seed, round $round: $_") or diag("$schema\n$script") foreach qw(direct ahead both);
}
$node->stop;

done_testing();
