# Copyright (c) 2026, the pgawait authors

# A page that cannot be read is nothing to a statement that does not need it,
# although it has been looked up ahead; others fail as they do without lookups
# ahead.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my $node = PostgreSQL::Test::Cluster->new('damaged');
$node->init;
$node->append_conf('postgresql.conf', q{
	autovacuum = off
	statement_timeout = 0
	enable_hashjoin = off
	enable_mergejoin = off
	enable_memoize = off
	enable_material = off
	enable_bitmapscan = off
	random_page_cost = 1
	max_parallel_workers_per_gather = 0
});
$node->start;
plan skip_all => 'lookups can be forced only in a build with assertions'
  unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
plan skip_all => 'extension pageinspect is not installed' unless $node->check_extension('pageinspect');

# keys.a refers to items in order
$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION pageinspect;
	CREATE TABLE items (id int PRIMARY KEY, t text);
	INSERT INTO items SELECT i, 'text ' || i FROM generate_series(1, 20000) i;
	CREATE TABLE keys AS SELECT n, n * 20 AS a FROM generate_series(1, 1000) n;
	CREATE TABLE child (a int REFERENCES items);
	CREATE TABLE long (id int, v text STORAGE EXTERNAL);
	INSERT INTO long SELECT i, repeat(md5(i::text), 70) FROM generate_series(1, 2000) i;
	VACUUM ANALYZE;
	CHECKPOINT});

# Damage a page of a file, at some of its bytes.
sub damage_page
{
	my ($file, $block, $place) = @_;

	$node->stop;
	open my $handle, '+<:raw', $node->data_dir . "/$file" or die "$file: $!";
	seek $handle, 8192 * $block + $place, 0;
	print $handle 'damage' x 10;
	close $handle;
	$node->start;
	return;
}

# Damage a leaf in the middle of an index.  Returns its first key.
sub damage
{
	my ($index, $block) = @_;
	my ($key, $file) = split /\|/, $node->safe_psql('postgres', qq{
		SELECT ('x' || string_agg(b, '' ORDER BY n DESC))::bit(32)::int, pg_relation_filepath('$index')
			FROM bt_page_items('$index', $block) i, LATERAL regexp_split_to_table(left(data, 11), ' ') WITH ORDINALITY s (b, n)
			WHERE itemoffset = 2 GROUP BY itemoffset});

	damage_page($file, $block, 4000);
	return $key;
}

# The first row of keys whose item cannot be found, the first value that cannot.
my $bad = int((damage('items_pkey', 30) + 19) / 20);
my $value = damage($node->safe_psql('postgres', q{SELECT reltoastrelid::regclass || '_index' FROM pg_class WHERE relname = 'long'}), 5);
my $bad_value = $node->safe_psql('postgres', "SET aio.lookup_ahead = 0; SELECT id FROM long WHERE pg_column_toast_chunk_id(v) = $value");
my $good = $bad - 1;
my $good_value = $bad_value - 1;

sub output
{
	my ($statements, $settings) = @_;
	my ($output, $errors);

	$node->psql('postgres', "$settings; BEGIN; $statements; ROLLBACK;
		SELECT FROM pg_stat_force_next_flush();
		SELECT 'lookups', sum(started) > 0 FROM pg_stat_aio WHERE backend_type = 'client backend' AND kind = 'lookup'",
		stdout => \$output, stderr => \$errors, on_error_stop => 0);
	my ($any) = $output =~ s/\n?lookups\|(\w*)$// ? $1 : die $errors;
	return ("$output\n" . $errors =~ s/^psql:<stdin>:\d+: //gmr, $any);
}

# What is said of a page that cannot be read: 'fails', or else ''.
my @cases = (
	[ 'a limit', "SELECT count(*) FROM (SELECT t FROM keys JOIN items ON id = a LIMIT $good) i", '' ],
	[ 'an inner limit', "SELECT count(*), max(t) FROM (SELECT (SELECT t FROM items WHERE id = a) FROM keys LIMIT $good) i (t)", '' ],
	[ 'a cursor', "DECLARE c CURSOR FOR SELECT a, t FROM keys JOIN items ON id = a; FETCH $good FROM c", '' ],
	[ 'an earlier error', "SELECT 1 / ($good - n), t FROM keys JOIN items ON id = a", '' ],
	[ 'an array', "SELECT count(*) FROM (SELECT t FROM items WHERE id = ANY (ARRAY(SELECT a FROM keys ORDER BY n)) LIMIT $good) i", '' ],
	[ 'keys that conflict', "INSERT INTO items SELECT a, 1 / ($good - n) FROM keys ON CONFLICT DO NOTHING", '' ],
	[ 'a foreign key', "INSERT INTO child SELECT CASE n WHEN $good THEN 0 ELSE a END FROM keys", '' ],
	[ 'values', "SELECT id, 1 / ($good_value - id), length(v || 'x') FROM long", '' ],
	[ 'an exception', "DO \$\$ DECLARE n int := 0; r record; BEGIN FOR r IN SELECT t FROM keys JOIN items ON id = a LOOP n := n + 1; END LOOP;
		EXCEPTION WHEN data_corrupted THEN RAISE NOTICE '%', SQLERRM; END \$\$; SELECT count(*) FROM keys JOIN items ON id = a WHERE a < 1000", 'fails' ],
	[ 'a join', 'SELECT a, t FROM keys JOIN items ON id = a', 'fails' ],
	[ 'a subquery', 'SELECT a, (SELECT t FROM items WHERE id = a) FROM keys', 'fails' ],
	[ 'all of an array', 'SELECT * FROM items WHERE id = ANY (ARRAY(SELECT a FROM keys ORDER BY n))', 'fails' ],
	[ 'a conflict', 'INSERT INTO items SELECT a, NULL FROM keys ON CONFLICT DO NOTHING', 'fails' ],
	[ 'a check', 'INSERT INTO child SELECT a FROM keys', 'fails' ],
	[ 'a value', "SELECT id, length(v || 'x') FROM long", 'fails' ],
	[ 'a row', 'SELECT * FROM long', 'fails' ],
	[ 'COPY', 'COPY long TO STDOUT', 'fails' ],
);
foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	next if $method eq 'sync';
	$node->append_conf('postgresql.conf', "io_method = $method");
	$node->restart;
	foreach my $case (@cases)
	{
		my ($what, $statements, $fails) = @$case;
		my ($wanted) = output($statements, 'SET aio.lookup_ahead = 0');

		is($wanted =~ /invalid page in block/ ? 'fails' : '', $fails, "$method, $what: without lookups ahead");
		foreach my $ahead (3, 64)
		{
			my ($got, $any) = output($statements, "SELECT FROM aio_stat_reset(); SET aio.debug_seed = 1; SET aio.debug_lookups = $ahead");

			is($got, $wanted, "$method, $what: with lookups up to $ahead ahead");
			is($any, 't', "$method, $what: there were some");
		}
	}
}

# A read that cannot be begun: the page is waited for by nobody, neither by an
# earlier row of the statement that needs it, too, nor by others.
$node->safe_psql('postgres', q{
	CREATE TABLE segments (id int PRIMARY KEY, other int, t text DEFAULT repeat('x', 100));
	INSERT INTO segments SELECT i, i FROM generate_series(1, 400) i;
	CREATE FUNCTION note(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n > 440 THEN RAISE NOTICE 'row %', n; END IF; RETURN n; END $$;
	ANALYZE segments; CHECKPOINT});
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('segments')");
$node->stop;
truncate $file, 2**30 or die "$file: $!";
$node->start;
$node->safe_psql('postgres', q{
	INSERT INTO segments SELECT i, CASE WHEN i BETWEEN 450 AND 458 THEN 460 ELSE i END FROM generate_series(401, 800) i});
$node->stop;
rename "$file.1", "$file.away" or die "$file.1: $!";
$node->start;
my $from = 'FROM segments a JOIN segments b ON b.id = a.other WHERE a.id > 0';
foreach my $statement ("SELECT note(a.id), length(b.t) $from ORDER BY a.id", "SELECT length(b.t) $from ORDER BY a.id LIMIT 440")
{
	my $settings = "SET statement_timeout = '30s'; SET enable_seqscan = off";
	my ($wanted) = output($statement, "$settings; SET aio.lookup_ahead = 0");
	my ($got, $any) = output($statement, "$settings; SELECT FROM aio_stat_reset(); SET aio.debug_lookups = 64");

	like($wanted, qr/could not open file|^100$/m, 'a segment that is missing');
	is($got, $wanted, 'with lookups ahead');
	is($any, 't', 'there were some');
}
rename "$file.away", "$file.1" or die "$file.1: $!";

# Workers of a parallel plan are stopped when the leader has enough: one of them
# has the rows from the second leaf on, and sends no more than its queue holds.
{
	my $limited = 'SELECT count(filler), count(t) FROM (SELECT r.id, filler, t FROM rows r JOIN items i ON i.id = r.item ORDER BY r.id LIMIT 400) x';
	my $settings = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
		SET min_parallel_index_scan_size = 0; SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 2;
		SET enable_sort = off; SET enable_seqscan = off';

	$node->safe_psql('postgres', q{
		CREATE TABLE rows (id int PRIMARY KEY, item int, filler text);
		ALTER TABLE rows ALTER filler SET STORAGE PLAIN;
		INSERT INTO rows SELECT n, 1 + n * 7919 % 500, repeat('y', 7500) FROM generate_series(1, 2000) n;
		VACUUM ANALYZE rows});
	my ($path, $block) = split /\|/, $node->safe_psql('postgres', "SELECT pg_relation_filepath('rows'), (ctid::text::point)[0]::int FROM rows WHERE id = 416");
	damage_page($path, $block, 5000);
	like($node->safe_psql('postgres', "$settings; EXPLAIN (COSTS OFF) $limited"), qr/Gather Merge.*Nested Loop.*Parallel Index Scan/s, 'a parallel plan');
	foreach my $ahead ('lookup_ahead = 0', 'lookup_ahead = 64', 'debug_lookups = 64')
	{
		is(($node->psql('postgres', "$settings; SET aio.$ahead; $limited"))[1], '400|400', "a worker that is stopped before a damaged page, $ahead");
	}
	$node->safe_psql('postgres', 'DROP TABLE rows');
}

# A key that cannot be fetched: rows before it are returned, or fail.
$node->safe_psql('postgres', q{
	CREATE TABLE outside (id int PRIMARY KEY, k text STORAGE EXTERNAL);
	INSERT INTO outside SELECT i, CASE WHEN i = 200 THEN repeat('x', 3000) ELSE 'k' || i END FROM generate_series(1, 300) i;
	CREATE TABLE inside (k text, t text);
	INSERT INTO inside SELECT 'k' || i, i FROM generate_series(1, 1000) i;
	CREATE INDEX ON inside USING hash (k);
	VACUUM ANALYZE});
$file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 'outside'");
$node->stop;
truncate $file, 0 or die "$file: $!";
$node->start;
foreach my $memoize ('on', 'off')
{
	foreach my $case ([ 'id / (195 - o.id)', 'division by zero' ], [ 'o.id', 'could not read blocks' ])
	{
		my $statement = "SELECT $case->[0], i.t FROM outside o JOIN inside i ON i.k = o.k WHERE o.id > 0";
		my $settings = "SET statement_timeout = '30s'; SET enable_seqscan = off; SET enable_memoize = $memoize";
		my ($wanted) = output($statement, "$settings; SET aio.lookup_ahead = 0");
		my ($got, $any) = output($statement, "$settings; SELECT FROM aio_stat_reset(); SET aio.debug_lookups = 64");

		like($wanted, qr/$case->[1]/, "memoize $memoize: a key that cannot be fetched");
		is($got, $wanted, 'with lookups ahead');
		is($any, 't', 'there were some');
	}
}
unlike(slurp_file($node->logfile), qr/WARNING|PANIC|TRAP|was terminated/, 'nothing else is wrong');

$node->stop;
done_testing();
