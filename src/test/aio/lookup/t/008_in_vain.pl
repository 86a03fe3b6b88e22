
# Copyright (c) 2026, the pgawait authors

# What may never be needed: below a LIMIT, an EXISTS, a cursor, statements read
# hardly more pages than without lookups ahead, however often a node is rescanned
# and however far away the next row is; a page that is not needed fails nothing;
# and rows that are known to be wanted are looked up ahead all the same.
# INVARIANT-63, INVARIANT-87.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my $method = $methods{io_uring} ? 'worker' : 'io_uring';

# All pages that a statement reads stay in memory.
my $node = create_cold_node('in_vain', $method, conf => q{
	shared_buffers = 64MB
	jit = off
	max_parallel_workers_per_gather = 0
	enable_memoize = off
	enable_bitmapscan = off
	enable_hashjoin = off
	enable_mergejoin = off
	enable_material = off
	enable_sort = off
	random_page_cost = 1
});

# The first 60 rows of a have the status 1.  Rows of gone are dead but for as many.
$node->safe_psql('postgres', q{
	CREATE TABLE b (id int, other int, filler text);
	INSERT INTO b SELECT i, i, repeat('x', 1500) FROM generate_series(1, 4000) i;
	CREATE UNIQUE INDEX b_id ON b (id);
	CREATE INDEX b_other ON b (other);
	CREATE TABLE a (id int, fk int, status int, filler text);
	ALTER TABLE a ALTER filler SET STORAGE PLAIN;
	INSERT INTO a SELECT i, 1 + (i::bigint * 7919 % 3989), (i <= 60)::int, repeat('y', 1000) FROM generate_series(1, 10000) i;
	CREATE UNIQUE INDEX a_id ON a (id);
	CREATE TABLE gone (id int, fk int, filler text);
	INSERT INTO gone SELECT id, fk, filler FROM a;
	CREATE TABLE e (k int, ts int, filler text);
	INSERT INTO e SELECT i % 200, i, repeat('x', 1000) FROM generate_series(1, 10000) i;
	CREATE INDEX e_k ON e (k, ts);
	CREATE TABLE x (k int, ts int, fk int);
	INSERT INTO x SELECT i / 100, i, 1 + (i::bigint * 7919 % 3989) FROM generate_series(0, 99999) i;
	CREATE INDEX x_k ON x (k, ts);
	CREATE TABLE u (k int);
	INSERT INTO u SELECT (i::bigint * 7919) % 200 FROM generate_series(0, 199) i;
	CREATE TABLE p (id int, filler text) PARTITION BY HASH (filler);
	SELECT format('CREATE TABLE p%s PARTITION OF p FOR VALUES WITH (MODULUS 4, REMAINDER %s)', i, i) FROM generate_series(0, 3) i \gexec
	INSERT INTO p SELECT i, repeat(n::text, 1000) FROM generate_series(1, 1500) i, generate_series(1, 9) n;
	CREATE INDEX ON p (id);
	VACUUM (FREEZE, ANALYZE);
	DELETE FROM gone WHERE id > 60;
	CHECKPOINT});

# The pages that statements read, cold, and the lookups that they make.
sub pages
{
	my ($statements, $ahead) = @_;

	my $result = $node->safe_psql('postgres', qq{
		CHECKPOINT;
		SELECT FROM pg_buffercache_evict_all();
		SELECT FROM aio_stat_reset();
		SET enable_seqscan = off;
		SET aio.lookup_ahead = $ahead;
		SELECT FROM pg_stat_force_next_flush();
		SELECT sum(read_bytes) AS before FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'relation' \\gset
		$statements;
		SELECT FROM pg_stat_force_next_flush();
		SELECT 'pages', ((sum(read_bytes) - :before) / 8192)::int FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'relation';
		SELECT 'lookups', coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'});

	my ($rows, $pages, $lookups) = $result =~ /\A(.*)^pages\|(\d+)\nlookups\|(\d+)\Z/ms or die $result;
	return ($rows, $pages, $lookups);
}

# what, statements, at least so many lookups
my $join = 'SELECT a.id, length(b.filler) FROM a JOIN b ON b.id = a.fk WHERE a.status = 1 ORDER BY a.id';
my @cases = (
	[ 'the next match is far away', "$join LIMIT 60", 30 ],
	[ 'the next match is far away, one more is wanted for each', "$join OFFSET 5 ROWS FETCH FIRST 55 ROWS ONLY", 30 ],
	[ 'several matches', 'SELECT a.id, length(b.filler) FROM a JOIN b ON b.other = a.fk WHERE a.status = 1 ORDER BY a.id LIMIT 60', 0 ],
	[ 'a cursor', "BEGIN; DECLARE c CURSOR FOR $join; FETCH 30 FROM c; FETCH 30 FROM c; COMMIT", 30 ],
	[ 'a join of three', 'SELECT a.id, length(b.filler), c.id FROM a JOIN b ON b.id = a.fk JOIN b c ON c.id = b.other WHERE a.status = 1 ORDER BY a.id LIMIT 60', 30 ],
	[ 'a subquery in the output', 'SELECT a.id, (SELECT length(b.filler) FROM b WHERE b.id = a.fk) FROM a WHERE a.status = 1 ORDER BY a.id LIMIT 60', 30 ],
	[ 'a subquery in a condition', 'SELECT a.id FROM a WHERE a.status = 1 AND (SELECT length(b.filler) FROM b WHERE b.id = a.fk) > 0 ORDER BY a.id LIMIT 60', 30 ],
	[ 'a row exists', 'SELECT EXISTS (SELECT FROM a JOIN b ON b.id = a.fk WHERE a.status = 1 AND a.id >= 60)', 0 ],
	[ 'only dead rows follow', 'SET enable_seqscan = on; SELECT g.id, length(b.filler) FROM (SELECT * FROM gone OFFSET 0) g JOIN b ON b.id = g.fk LIMIT 60', 30 ],
	[ 'dead rows follow, a cursor stops', 'SET enable_seqscan = on; BEGIN; DECLARE c CURSOR FOR SELECT g.id, length(b.filler) FROM gone g JOIN b ON b.other = g.fk; FETCH 60 FROM c; COMMIT', 0 ],
	[ 'the last of each key', 'SELECT u.k, l.ts, length(l.filler) FROM u, LATERAL (SELECT * FROM e WHERE e.k = u.k ORDER BY e.ts DESC LIMIT 1) l', 0 ],
	[ 'the last three of each key', 'SELECT u.k, l.ts, length(l.filler) FROM u, LATERAL (SELECT * FROM e WHERE e.k = u.k ORDER BY e.ts DESC LIMIT 3) l', 100 ],
	[ 'the first of each key, joined', 'SELECT u.k, length(l.filler) FROM u, LATERAL (SELECT b.* FROM x JOIN b ON b.id = x.fk WHERE x.k = u.k ORDER BY x.ts LIMIT 1) l', 0 ],
	[ 'a semi join of a join', q{SELECT u.k FROM u WHERE EXISTS (SELECT FROM x JOIN b ON b.id = x.fk WHERE x.k = u.k AND b.filler <> '')}, 0 ],
	[ 'an anti join of a join', q{SELECT u.k FROM u WHERE NOT EXISTS (SELECT FROM x JOIN b ON b.id = x.fk WHERE x.k = u.k AND b.filler <> '')}, 0 ],
	[ 'a semi join with partitions', 'SELECT u.k FROM u WHERE EXISTS (SELECT FROM p WHERE p.id = u.k + 1 AND length(p.filler) > 10)', 0 ],
	[ 'the first row of some partition', 'SELECT u.k, l.x FROM u, LATERAL (SELECT length(filler) AS x FROM p WHERE p.id = u.k * 7 + 1 LIMIT 1) l', 10 ],
	[ 'a merge join that ends', 'SET enable_mergejoin = on; SET enable_nestloop = off; SELECT count(*) FROM (SELECT * FROM a ORDER BY id OFFSET 0) a JOIN (VALUES (1), (2), (60)) v (id) USING (id)', 0 ],
	[ 'some of an array', 'SELECT length(filler) FROM b WHERE id = ANY (ARRAY(SELECT fk FROM a ORDER BY id LIMIT 3000)) LIMIT 60', 20 ],
	[ 'some of an array, several matches', 'SELECT length(filler) FROM b WHERE other = ANY (ARRAY(SELECT fk FROM a ORDER BY id LIMIT 3000)) LIMIT 60', 0 ],
	[ 'some TIDs', q{SELECT length(filler) FROM b WHERE ctid = ANY (ARRAY(SELECT format('(%s,1)', i * 7)::tid FROM generate_series(0, 100) i)) LIMIT 60}, 30 ],
	[ 'the first of some TIDs', q{SELECT u.k, l.x FROM u, LATERAL (SELECT length(filler) AS x FROM b WHERE ctid = ANY (ARRAY(SELECT format('(%s,1)', i * 7)::tid FROM generate_series(u.k % 50, 100) i)) LIMIT 1) l}, 0 ],
	[ 'the order of an index', 'SELECT length(filler) FROM e ORDER BY k, ts LIMIT 60', 30 ],
	[ 'all rows', 'SELECT count(b.filler) FROM a JOIN b ON b.id = a.fk WHERE a.id < 500', 100 ],
	[ 'all rows that are inserted', 'CREATE TEMP TABLE t AS SELECT b.filler FROM a JOIN b ON b.other = a.fk WHERE a.id < 500', 100 ],
	[ 'the inner side of a join to its end', 'SELECT u.k, sum(length(e.filler)) FROM u JOIN e ON e.k = u.k GROUP BY u.k', 100 ],
);
foreach my $case (@cases)
{
	my ($what, $statements, $wanted) = @$case;
	my ($rows, $needed) = pages($statements, 0);
	my ($rows_ahead, $pages, $lookups) = pages($statements, 64);

	is($rows_ahead, $rows, "$what: the same rows");
	cmp_ok($pages, '<=', 1.05 * $needed + 8, "$what: few pages are read in vain, beside $needed");
	cmp_ok($lookups, '>=', $wanted, "$what: what is wanted is looked up");
}

# An expression of an index that fails, of a row which a trigger changes before it
# is inserted: nothing is left behind.
$node->safe_psql('postgres', q{
	CREATE EXTENSION test_aio_lookup;
	CREATE TABLE keyed (id int, filler text);
	INSERT INTO keyed SELECT i, repeat('x', 900) FROM generate_series(30000, 40000) i WHERE i % 7 <> 0;
	CREATE UNIQUE INDEX ON keyed (fail_in_spi(id)) WITH (fillfactor = 10);
	CREATE UNIQUE INDEX keyed_built_in ON keyed ((1000000 / (id % 7)), id) WITH (fillfactor = 10);
	CREATE FUNCTION no_sevens() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id % 7 = 0 THEN NEW.id := NEW.id + 1; END IF; RETURN NEW; END $$;
	CREATE TRIGGER no_sevens BEFORE INSERT ON keyed FOR EACH ROW EXECUTE FUNCTION no_sevens();
	CREATE FUNCTION load(factor bigint) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO keyed SELECT 30000 + (i * factor % 9991), 'new' FROM generate_series(1, 2000) i ON CONFLICT DO NOTHING;
		RETURN repeat('do', 1) || 'ne';
	END $$;
	CHECKPOINT});
foreach my $index ('with a function that executes queries', 'with an operator')
{
	my ($output, $errors);
	$node->psql('postgres', q{SELECT FROM pg_buffercache_evict_all(); SELECT load(7919); SELECT load(6133); BEGIN; SELECT load(4241); COMMIT},
		stdout => \$output, stderr => \$errors);
	is($output =~ s/^\n+//r . $errors, "done\ndone\ndone", "an index $index that fails leaves nothing");
	$node->safe_psql('postgres', 'DELETE FROM keyed WHERE filler = \'new\'; DROP INDEX keyed_fail_in_spi_idx') if $index =~ /queries/;
}

# Copies of rows of partitions that have been read are not kept.
$node->safe_psql('postgres', q{
	CREATE TABLE wide (id int, fk int, filler text) PARTITION BY RANGE (id);
	ALTER TABLE wide ALTER filler SET STORAGE PLAIN;
	SELECT format('CREATE TABLE wide%s PARTITION OF wide FOR VALUES FROM (%s) TO (%s)', i, i * 50, (i + 1) * 50) FROM generate_series(0, 29) i \gexec
	INSERT INTO wide SELECT i, 1 + (i::bigint * 7919 % 3989), repeat('y', 7500) FROM generate_series(0, 1499) i;
	VACUUM ANALYZE;
	CHECKPOINT});
my ($rows, undef, $lookups) = pages(q{SET work_mem = '1MB'; SET enable_seqscan = on;
	SELECT count(f), count(l), max((SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name LIKE '%rows ahead' AND x.id = 1499))
		FROM (SELECT w.id, w.filler || '' AS f, (SELECT filler FROM b WHERE b.id = w.fk) AS l FROM wide w OFFSET 0) x}, 64);
my ($count, $memory) = $rows =~ /^(\d+)\|1500\|(\d+)$/m or die $rows;
is($count, 1500, 'partitions: rows');
cmp_ok($lookups, '>', 500, 'partitions: lookups are made');
cmp_ok($memory, '<', 1536 * 1024, 'partitions: copies of rows of all of them take no more than work_mem');
cmp_ok($memory, '>', 0, 'partitions: there are copies');

# A page that cannot be read: not needed, or needed after other rows.
$node->safe_psql('postgres', q{
	CREATE FUNCTION note(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'note %', $1; RETURN $1; END $$});
my ($file, $block) = split /\|/, $node->safe_psql('postgres', "SELECT pg_relation_filepath('a'), (ctid::text::point)[0]::int FROM a WHERE id = 1000");
$node->stop;
open my $handle, '+<:raw', $node->data_dir . "/$file" or die "$file: $!";
seek $handle, 8192 * $block + 5000, 0;
print $handle 'damaged';
close $handle;
$node->start;

sub output
{
	my ($statement, $ahead) = @_;
	my ($output, $errors);

	$node->psql('postgres', "SELECT FROM pg_buffercache_evict_all(); SET enable_seqscan = off; SET aio.lookup_ahead = $ahead; $statement",
		stdout => \$output, stderr => \$errors, on_error_stop => 0);
	return "$output\n" . $errors =~ s/^psql:<stdin>:\d+: //gmr;
}
foreach my $case (
	[ 'a LIMIT before it', 'SELECT count(filler) FROM (SELECT b.filler FROM a JOIN b ON b.id = a.fk ORDER BY a.id LIMIT 990) x', '' ],
	[ 'a LIMIT before it, several matches', 'SELECT count(filler) FROM (SELECT b.filler FROM a JOIN b ON b.other = a.fk ORDER BY a.id LIMIT 990) x', '' ],
	[ 'a cursor before it', 'BEGIN; DECLARE c CURSOR FOR SELECT b.id FROM a JOIN b ON b.id = a.fk ORDER BY a.id; FETCH 990 FROM c; COMMIT', '' ],
	[ 'all rows', 'SELECT count(note(id)), count(filler) FROM (SELECT a.id, b.filler FROM a JOIN b ON b.id = a.fk ORDER BY a.id OFFSET 0) x', 'fails' ],
	[ 'all rows, with a subquery', 'SELECT count(note(id)), count(filler) FROM (SELECT a.id, (SELECT b.filler FROM b WHERE b.id = a.fk) FROM a ORDER BY a.id OFFSET 0) x', 'fails' ],
	[ 'an exception', 'DO $$ BEGIN PERFORM count(note(id)), count(filler) FROM (SELECT a.id, b.filler FROM a JOIN b ON b.id = a.fk ORDER BY a.id OFFSET 0) x;
		EXCEPTION WHEN data_corrupted THEN RAISE NOTICE \'%\', SQLERRM; END $$; SELECT count(*) FROM a JOIN b ON b.id = a.fk WHERE a.id < 900', 'fails' ])
{
	my ($what, $statement, $fails) = @$case;
	my $without = output($statement, 0);

	is($without =~ /invalid page in block/ ? 'fails' : '', $fails, "a page that cannot be read, $what: without lookups ahead");
	is(output($statement, 64), $without, "a page that cannot be read, $what: the same with lookups ahead");
}

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated|leak|still referenced/, 'nothing else is wrong');
done_testing();
