# Copyright (c) 2026, the pgawait authors

# The error of the first row that fails is raised, also where keys of later rows
# are waiting, or those of earlier ones when rows begin to be inserted at once;
# and user code that a search in an index calls may do what it likes.

use strict;
use warnings FATAL => 'all';

use POSIX qw(mkfifo);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "io_method = worker\nshared_buffers = 16MB\n");
$node->start;
my $file = $node->basedir . '/rows';
my $suspend = $node->safe_psql('postgres', q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_suspend'})
  ? 'SET aio.debug_suspend = on;' : '';

# What a client is told of an error, without the time it takes.
sub error_of
{
	my ($sql) = @_;
	my ($code, $stdout, $stderr) = $node->psql('postgres', "$suspend$sql", on_error_stop => 1);

	return $stderr;
}

# A row that is too large for an index, and a later one whose key is a duplicate.
$node->safe_psql('postgres', q{
	CREATE FUNCTION large(int) RETURNS text LANGUAGE sql STABLE AS
		$$SELECT string_agg(md5(i::text), '') FROM generate_series(1, $1) i$$;
	CREATE TABLE l (a int UNIQUE, b text);
	CREATE INDEX l_b ON l (b);
	CREATE INDEX l_brin ON l USING brin (a);
	CREATE TABLE source AS SELECT n, CASE n WHEN 1502 THEN 7 ELSE n * 710375::bigint % 1000003 END AS a,
		CASE n WHEN 1500 THEN large(120) ELSE n::text END AS b FROM generate_series(1, 3000) n;
	UPDATE source SET a = 7 WHERE n = 3;});
$node->safe_psql('postgres', "COPY (SELECT a, b FROM source ORDER BY n) TO '$file'");
like(error_of("COPY l FROM '$file'"), qr/index row size \d+ exceeds btree.*CONTEXT:  COPY l, line 1500/s, 'COPY: the row that is too large comes first');
like(error_of('INSERT INTO l SELECT a, b FROM source ORDER BY n'), qr/index row size \d+ exceeds btree/, 'INSERT: it does, too');
like(error_of('DROP INDEX l_b; CREATE INDEX l_expression ON l USING brin (lower(b)); INSERT INTO l SELECT a, CASE n WHEN 1500 THEN large(300) ELSE b END FROM source ORDER BY n'),
	qr/index row size \d+ exceeds maximum \d+ for index "l_expression"/, 'also in an index whose entries are not collected');
like(error_of('INSERT INTO l SELECT a, left(b, 10) FROM source ORDER BY n'), qr/Key \(a\)=\(7\) already exists/, 'the duplicate is one');

# Keys are waiting when a function of an index turns out to be user code.
my $fifo = $node->basedir . '/fifo';
mkfifo($fifo, 0600) or die "mkfifo: $!";
$node->safe_psql('postgres', q{
	CREATE FUNCTION myabs(int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'int4abs';
	CREATE TABLE f (a int UNIQUE, b text);
	CREATE INDEX ON f (myabs(a));});
# COPY reads 64 kB before it looks at a line
my $copy = $node->background_psql('postgres', on_error_stop => 0);
$copy->query_until(qr/begun/, "\\echo begun\nCOPY f FROM '$fifo';\n");
open(my $out, '>', $fifo) or die "open: $!";
$out->autoflush(1);
my $line = sub { my ($n) = @_; return ($n == 2700 ? 1500 : $n) * 710375 % 1000003 . "\t" . ($n == 2600 ? join('', map { rand() } (1 .. 1000)) : 'x' x 100) . "\n" };
print $out $line->($_) foreach 1 .. 2100;
$node->poll_query_until('postgres', 'SELECT tuples_processed > 1000 FROM pg_stat_progress_copy')
  or die 'COPY has not come so far';
$node->safe_psql('postgres', q{ALTER FUNCTION myabs(int) SET work_mem = '1MB'});
print $out $line->($_) foreach 2101 .. 4000;
close($out);
$copy->query_until(qr/ended/, "\\echo ended\n");
like($copy->{stderr}, qr/CONTEXT:  COPY f, line 2700/, 'the later row is the duplicate, not the earlier one');
$copy->quit;

# A comparison function that runs a query, with a page of the index locked: what
# waits is inserted meanwhile.
$node->safe_psql('postgres', q{
	CREATE TABLE side (n int);
	CREATE FUNCTION looks(int, int) RETURNS int LANGUAGE plpgsql AS $$BEGIN PERFORM FROM public.side; RETURN btint4cmp($1, $2); END$$;
	CREATE OPERATOR CLASS looking FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 looks(int, int);
	CREATE TABLE c (a int, b int);
	CREATE INDEX ON c (a looking);
	CREATE INDEX c_b ON c (b);
	INSERT INTO c SELECT n * 7919 % 3000, n * 31 % 3000 FROM generate_series(1, 3000) n;});
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), sum(b) FROM c WHERE b >= 0'), '3000|4498500', 'a comparison that looks');

# One that writes: rows are not kept back for others to insert.
$node->safe_psql('postgres', q{
	CREATE FUNCTION writes(int, int) RETURNS int LANGUAGE plpgsql AS
		$$BEGIN IF $1 % 500 = 0 THEN INSERT INTO public.side VALUES ($1); END IF; RETURN btint4cmp($1, $2); END$$;
	CREATE OPERATOR CLASS writing FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 writes(int, int);
	CREATE TABLE looked_up AS SELECT n AS k FROM generate_series(1, 3000) n;
	CREATE INDEX ON looked_up (k writing);
	CREATE TABLE r (id int PRIMARY KEY, next int REFERENCES r);});
my ($code, $stdout, $stderr) = $node->psql('postgres', q{
	SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
	INSERT INTO r SELECT k, CASE WHEN g < 3000 THEN g + 1 END FROM generate_series(1, 3000) g JOIN looked_up ON k = g});
is($stderr, '', 'rows that refer to later ones');
is($node->safe_psql('postgres', 'SELECT count(*) FROM r'), '3000', 'are in');

is($node->safe_psql('postgres', 'CREATE EXTENSION amcheck; SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid IN ($$c$$::regclass, $$r$$::regclass)') =~ /\S/, '', 'heap and indexes agree');
$node->stop;
done_testing();
