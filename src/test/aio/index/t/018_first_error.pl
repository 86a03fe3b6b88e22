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

# A row whose place an index cannot tell, and a later one that is no row, or whose
# key is a duplicate.
$node->safe_psql('postgres', q{
	CREATE TABLE places (id int, p point);
	CREATE INDEX ON places USING spgist (p);
	CREATE TABLE areas (id int UNIQUE, p point);
	CREATE INDEX ON areas USING spgist (p);
	CREATE FUNCTION place(int) RETURNS text LANGUAGE sql AS
		$$SELECT format('(%s,%s)', CASE $1 WHEN 3500 THEN 'NaN' ELSE ($1 * 7919 % 10007)::text END, $1 * 104729 % 10009)$$;});
$node->safe_psql('postgres', "COPY (SELECT CASE n WHEN 6000 THEN 'x' ELSE n::text END, place(n) FROM generate_series(1, 7000) n) TO '$file'");
like(error_of("COPY places FROM '$file'"), qr/getQuadrant.*CONTEXT:  COPY places, line 3500/s, 'a point that is in no quadrant, before a row that is none');
$node->safe_psql('postgres', "COPY (SELECT CASE n WHEN 4500 THEN 1 ELSE n END, place(n) FROM generate_series(1, 7000) n) TO '$file'");
like(error_of("COPY areas FROM '$file'"), qr/getQuadrant.*CONTEXT:  COPY areas, line 3500/s, 'before a duplicate');

# A point that is in no quadrant, and boxes of huge areas, which keep the root from
# being split; and a box that is in an index with inner pages, next to which only
# those have a place that are not too far away.  The equal points fill the root,
# and none of its children: one that is split for others has room for what comes.
$node->safe_psql('postgres', q{
	CREATE TABLE crowd (id int, p point);
	CREATE INDEX ON crowd USING spgist (p);
	INSERT INTO crowd SELECT n, CASE n WHEN 5 THEN point('NaN', 0) ELSE point(n, -n) END FROM generate_series(1, 100) n;
	CREATE TABLE pile (id int, p point);
	CREATE INDEX ON pile USING spgist (p);
	INSERT INTO pile SELECT n, point(1, 1) FROM generate_series(1, 300) n;
	INSERT INTO pile VALUES (0, point('NaN', 0));
	CREATE TABLE overlay (id int, p box);
	CREATE INDEX ON overlay USING gist (p);
	INSERT INTO overlay SELECT n, CASE n WHEN 5 THEN box(point(0, 0), point(1e200, 1)) WHEN 6 THEN box(point(0, 0), point(1, 1e200))
		ELSE box(point(n, n), point(n, n)) END FROM generate_series(1, 100) n;
	CREATE TABLE strip (id int, p point);
	CREATE INDEX ON strip USING gist (p);
	INSERT INTO strip SELECT n, point(n, n % 7) FROM generate_series(1, 1000) n;
	INSERT INTO strip VALUES (0, point(1e290, 0));});
foreach (['crowd', 'point(n, n)', qr/getQuadrant/], ['pile', 'point(n, n)', qr/getQuadrant/], ['overlay', 'box(point(n, n), point(n, n))', qr/value out of range: overflow/],
	['strip', 'point(n, CASE WHEN n > 2000 THEN 1e50 ELSE n % 7 END)', qr/value out of range: overflow/])
{
	my ($table, $value, $error) = @$_;

	# so that entries are collected from the first row on
	my $at_once = $suspend ? 'SET aio.debug_rows_before_batch = 0;' : '';
	like(error_of("${at_once}INSERT INTO $table SELECT n, $value FROM generate_series(1001, 3000) n WHERE 1 / (2500 - n) < 10"), $error,
		"$table: an ordinary row has no place, before a later one that is none");
}

# So in an index whose entries are never collected: one of multiranges.
$node->safe_psql('postgres', q{
	CREATE TABLE spans (id int UNIQUE, p nummultirange);
	CREATE INDEX ON spans USING gist (p);});
$node->safe_psql('postgres', "COPY (SELECT CASE WHEN n IN (3501, 3502) THEN hashint4(1) ELSE hashint4(n) END,
	nummultirange(numrange(n, CASE n WHEN 3500 THEN 1e400 ELSE n + 1 END)) FROM generate_series(1, 6000) n) TO '$file'");
like(error_of("COPY spans FROM '$file'"), qr/out of range for type double precision.*CONTEXT:  COPY spans, line 3500/s, 'a multirange that has no place, before a duplicate');

# The error of rows that are inserted because one that is taken ahead opens their
# table or index is theirs: it comes before those of rows after them.
$node->safe_psql('postgres', q{
	CREATE TABLE inner_side (id int PRIMARY KEY, v text);
	INSERT INTO inner_side SELECT n, 'v' || n FROM generate_series(1, 1000) n;
	CREATE TABLE outer_side AS SELECT n AS id, 1 + n * 13 % 1000 AS k FROM generate_series(1, 9000) n;
	CREATE TABLE opened (id int, v text CHECK (v <> 'bad'));
	CREATE UNIQUE INDEX opened_id ON opened (id);
	VACUUM (FREEZE, ANALYZE) inner_side, outer_side;});
my $ahead = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off;
	SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET aio.lookup_ahead = 64;';
$ahead .= ' SET aio.debug_lookups = 64;' if $suspend;
foreach my $at (2900, 3000, 3001, 3005)
{
	foreach my $bad (0, $at - 2, $at - 1)
	{
		like(error_of(qq{$ahead INSERT INTO opened SELECT hashint4(CASE o.id WHEN 2800 THEN 1500 ELSE o.id END), CASE o.id WHEN $bad THEN 'bad' ELSE i.v END
			FROM (SELECT id, k + CASE id WHEN $at THEN 0 * pg_relation_is_updatable('opened_id'::regclass, false) ELSE 0 END AS k FROM outer_side OFFSET 0) o
			JOIN inner_side i ON i.id = o.k}),
			qr/Key \(id\)=\(\S+\) already exists/, "a duplicate, if row $at opens the index before row $bad fails");
	}
	like(error_of(qq{$ahead INSERT INTO opened SELECT o.id, CASE WHEN o.id >= $at - 3 THEN 'bad' ELSE i.v END
		FROM (SELECT id, k / CASE id WHEN $at + 2 THEN 0 ELSE 1 END + CASE id WHEN $at THEN 0 * pg_relation_is_updatable('opened'::regclass, false) ELSE 0 END AS k FROM outer_side OFFSET 0) o
		JOIN inner_side i ON i.id = o.k}),
		qr/violates check constraint.*Failing row contains \(@{[ $at - 3 ]}, bad\)/s, "a row that waits, if row $at opens the table");
}

# Values that are stored out of line, and must not be in the new table.
$node->safe_psql('postgres', q{
	CREATE TABLE far (id int, doc text);
	ALTER TABLE far ALTER doc SET STORAGE EXTERNAL;
	INSERT INTO far SELECT CASE i WHEN 2400 THEN 1 ELSE i END, CASE i WHEN 2500 THEN repeat('x', 20000) ELSE 'short' END
		FROM generate_series(1, 3000) i;
	CREATE TABLE near (id int PRIMARY KEY, doc text);
	ALTER TABLE near ALTER doc SET STORAGE PLAIN;});
like(error_of('INSERT INTO near SELECT * FROM far'), qr/Key \(id\)=\(1\) already exists/, 'a duplicate, before a row that is too large when it is inserted');
like(error_of('INSERT INTO near SELECT * FROM far WHERE id <> 1'), qr/row is too big/, 'which it is');

# Notices of expressions: those of rows after the duplicate are not sent.
$node->safe_psql('postgres', q{
	CREATE TABLE words (id int PRIMARY KEY, body text);
	CREATE INDEX ON words USING gin (to_tsvector('simple', body));
	CREATE TABLE some_words (id int PRIMARY KEY, body text);
	CREATE INDEX ON some_words (id) WHERE length(to_tsvector('simple', body)) > 0;
	CREATE TABLE virtual_words (id int PRIMARY KEY, body text,
		words text GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, body)::text) VIRTUAL CHECK (words <> 'x'));
	CREATE TABLE bodies AS SELECT CASE i WHEN 2500 THEN 61803 ELSE i * 61803 % 100003 END AS id,
		CASE i WHEN 5000 THEN repeat('a', 3000) ELSE 'short' END AS body FROM generate_series(1, 7000) i;});
$node->safe_psql('postgres', "COPY bodies TO '$file'");
foreach my $table (qw(words some_words virtual_words))
{
	foreach my $statement ("COPY $table (id, body) FROM '$file'", "INSERT INTO $table SELECT * FROM bodies")
	{
		my $errors = error_of($statement);
		like($errors, qr/Key \(id\)=\(61803\) already exists/, "$statement: the duplicate");
		unlike($errors, qr/NOTICE/, 'and no notice of a later row');
	}
}

# Nor are those of who parses the name of a type.
$node->safe_psql('postgres', 'CREATE TABLE names (id int PRIMARY KEY, r regtype, p regprocedure, t text); INSERT INTO names VALUES (hashint4(2000))');
foreach my $value (
	q{to_regtype(repeat('x', 70))}, q{('timestamp(' || 9 + i % 2 || ')')::regtype},
	q{NULL, to_regprocedure('f(' || repeat('x', 70) || ')')}, q{NULL, NULL, pg_input_is_valid('x', 'timestamp(9)')},
	q{NULL, NULL, to_regtypemod('timestamp(' || 9 + i % 2 || ')')},
	q{NULL, NULL, jsonb_path_query_first('"12:00:00"', ('$.time(' || 9 + i % 2 || ')')::jsonpath)})
{
	my ($before, $last) = $value =~ /^((?:NULL, )*)(.*)$/;
	my $errors = error_of("INSERT INTO names SELECT hashint4(i), ${before}CASE WHEN i = 6000 THEN $last END FROM generate_series(1, 10000) i");
	like($errors, qr/Key \(id\)=\(-?\d+\) already exists/, "$last: the duplicate");
	unlike($errors, qr/NOTICE|WARNING/, 'and nothing about a later row');
}

# Values that cannot be compared, or placed: rows after them do not advance a
# sequence, and a duplicate among these comes later.
$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION btree_gist;
	CREATE SEQUENCE s;
	CREATE TABLE documents (id bigint, d json[]);
	CREATE INDEX ON documents (d);
	CREATE TABLE points (id bigint PRIMARY KEY, p point[]);
	CREATE INDEX ON points (p);
	INSERT INTO points VALUES (hashint4(9000));
	CREATE TABLE dates (id bigint, d date);
	CREATE INDEX ON dates USING gist (d);
	INSERT INTO dates SELECT i, date '2000-01-01' + i FROM generate_series(1, 3000) i;
	CREATE TABLE other_dates (id bigint PRIMARY KEY, d date);
	CREATE INDEX ON other_dates USING gist (d);
	INSERT INTO other_dates SELECT id, d FROM dates;
	INSERT INTO other_dates VALUES (hashint4(9000), '2000-01-01');
	CREATE TABLE checked_dates (id bigint CHECK (id <> 9000), d date);
	CREATE INDEX ON checked_dates USING gist (d);
	INSERT INTO checked_dates SELECT id, d FROM dates;
	CREATE TABLE new_dates (id bigint CHECK (id <> 5000), d date);
	CREATE INDEX ON new_dates USING gist (d);
	CREATE TABLE ranges (id bigint, p point, r numrange);
	CREATE INDEX ON ranges USING gist (r);
	INSERT INTO ranges SELECT i, NULL, numrange(i, i + 10) FROM generate_series(1, 3000) i;
	CREATE TABLE multiranges (id bigint, p point, r nummultirange);
	CREATE INDEX ON multiranges USING gist (p, r);
	INSERT INTO multiranges SELECT id, point(id, id), r::nummultirange FROM ranges;});
my $json = 'CASE WHEN i > 3000 THEN ARRAY[to_json(i)] END FROM generate_series(1, 10000) i';
my $date = q{CASE i WHEN 4000 THEN 'infinity' ELSE date '2001-01-01' + i END FROM generate_series(1, 10000) i};
my $range = q{numrange(i, CASE i WHEN 4000 THEN 1e400 ELSE i + 5 END) AS r FROM generate_series(1, 10000) i};
like(error_of("INSERT INTO documents SELECT nextval('s'), $json"), qr/could not identify a comparison function for type json/, 'arrays of what cannot be compared');
is($node->safe_psql('postgres', q{SELECT last_value, setval('s', 1, false) FROM s}), '3002|1', 'a sequence is not advanced by rows after them');
like(error_of('INSERT INTO points SELECT hashint4(i), CASE WHEN i > 3000 THEN ARRAY[point(i, i)] END FROM generate_series(1, 10000) i'),
	qr/could not identify a comparison function for type point/, 'before a duplicate');
like(error_of("INSERT INTO dates SELECT nextval('s'), $date"), qr/cannot subtract infinite dates/, 'a date that has no place');
is($node->safe_psql('postgres', q{SELECT last_value FROM s}), '4000', 'a sequence is not advanced by rows after it');
like(error_of("INSERT INTO other_dates SELECT hashint4(i), $date"), qr/cannot subtract infinite dates/, 'before a duplicate');
like(error_of("INSERT INTO checked_dates SELECT i, $date"), qr/cannot subtract infinite dates/, 'before a row that violates a constraint');
$node->safe_psql('postgres', "COPY (SELECT i, CASE i WHEN 4000 THEN '-infinity' ELSE date '2001-01-01' + i END FROM generate_series(1, 6000) i) TO '$file'");
like(error_of("COPY new_dates FROM '$file'"), qr/cannot subtract infinite dates.*CONTEXT:  COPY new_dates, line 4000$/s, 'in a new index');
like(error_of(q{SELECT setval('s', 1, false); UPDATE dates SET d = CASE id WHEN 2000 THEN 'infinity' ELSE d + nextval('s')::int END}),
	qr/cannot subtract infinite dates/, 'where rows are updated');
is($node->safe_psql('postgres', q{SELECT last_value FROM s}), '1999', 'those after it are not');
foreach (['ranges', 'r'], ['multiranges', 'r::nummultirange'])
{
	my ($table, $value) = @$_;
	like(error_of("SELECT setval('s', 1, false); INSERT INTO $table SELECT nextval('s'), point(i, i), $value FROM (SELECT i, $range) r"),
		qr/is out of range for type double precision/, "$table: one whose length is not a number");
	is($node->safe_psql('postgres', q{SELECT last_value FROM s}), '4000', 'before later rows');
}

# Operator classes of users may raise errors for any value; those that do not wait.
$node->safe_psql('postgres', q{
	CREATE TYPE spot;
	CREATE FUNCTION spot_in(cstring) RETURNS spot LANGUAGE internal IMMUTABLE STRICT AS 'point_in';
	CREATE FUNCTION spot_out(spot) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'point_out';
	CREATE TYPE spot (INPUT = spot_in, OUTPUT = spot_out, LIKE = point);
	CREATE OPERATOR CLASS spots DEFAULT FOR TYPE spot USING gist AS STORAGE box,
		FUNCTION 1 gist_point_consistent(internal, point, smallint, oid, internal), FUNCTION 2 gist_box_union(internal, internal),
		FUNCTION 3 gist_point_compress(internal), FUNCTION 5 gist_box_penalty(internal, internal, internal),
		FUNCTION 6 gist_box_picksplit(internal, internal), FUNCTION 7 gist_box_same(box, box, internal),
		FUNCTION 11 gist_point_sortsupport(internal);
	CREATE OPERATOR CLASS quads DEFAULT FOR TYPE spot USING spgist AS
		FUNCTION 1 spg_quad_config(internal, internal), FUNCTION 2 spg_quad_choose(internal, internal),
		FUNCTION 3 spg_quad_picksplit(internal, internal), FUNCTION 4 spg_quad_inner_consistent(internal, internal),
		FUNCTION 5 spg_quad_leaf_consistent(internal, internal);
	CREATE TABLE spots (id bigint, p spot);
	CREATE INDEX ON spots USING gist (p);
	CREATE TABLE more_spots (id bigint, p spot);
	CREATE INDEX ON more_spots USING spgist (p);});
foreach (['spots', '(1e300,1e300)', qr/value out of range: overflow/], ['more_spots', '(NaN,0)', qr/getQuadrant/])
{
	my ($table, $value, $error) = @$_;
	my $insert = "INSERT INTO $table SELECT nextval('s'), CASE i WHEN 3000 THEN '$value' ELSE format('(%s,%s)', i, i) END::spot FROM generate_series(1, 4000) i";
	like(error_of("SELECT setval('s', 1, false); $insert"), $error, "$table: a value that has no place");
	is($node->safe_psql('postgres', q{SELECT last_value FROM s}), '3000', 'before later rows');
	is($node->safe_psql('postgres', $insert =~ s/3000/0/r . '; SELECT entries FROM aio_session_batches()'), '3000', 'others are collected');
}

# A row that an index may be unable to place, and so has inserted by a task, while
# the key of the next row begins to wait.
$node->safe_psql('postgres', q{
	CREATE TABLE next_to (id int UNIQUE, p point);
	CREATE INDEX ON next_to USING spgist (p);});
$node->safe_psql('postgres', q{COPY (SELECT hashint4(CASE i WHEN 3501 THEN 1 ELSE i END),
	CASE i WHEN 2500 THEN point(1e200, 0) WHEN 3500 THEN point('NaN', 0) ELSE point(hashint4(i) % 1000, i) END FROM generate_series(1, 6000) i) TO '} . "$file'");
like(error_of("COPY next_to FROM '$file'"), qr/getQuadrant.*CONTEXT:  COPY next_to, line 3500/s, 'it comes before the next row');

# If somebody writes an operator class by which they can, entries are not collected
# that its functions would compare in a drain.
$node->safe_psql('postgres', q{
	CREATE FUNCTION point_cmp(point, point) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN sign($1[0] - $2[0])::int; END $$;
	CREATE FUNCTION point_before(point, point) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1[0] < $2[0]; END $$;
	CREATE FUNCTION point_same(point, point) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1[0] = $2[0]; END $$;
	CREATE OPERATOR <<< (LEFTARG = point, RIGHTARG = point, FUNCTION = point_before);
	CREATE OPERATOR === (LEFTARG = point, RIGHTARG = point, FUNCTION = point_same);
	CREATE OPERATOR CLASS point_ops DEFAULT FOR TYPE point USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, FUNCTION 1 point_cmp(point, point);
	CREATE INDEX points_id ON points (id)});
my $collected = $node->safe_psql('postgres', "${suspend}EXPLAIN (ANALYZE, AIO, COSTS off, TIMING off, SUMMARY off) INSERT INTO points SELECT i + 5000000000, ARRAY[point(i * 7919 % 20000, 0)] FROM generate_series(1, 3000) i");
like($collected, qr/points_id.*entries=\d/, 'entries are collected');
unlike($collected, qr/points_p_idx/, 'but none that user code compares');

# The client gives up: the rows before are looked at first.  What it says by a
# message of its own is an error whose SQLSTATE is that of a query that is cancelled.
sub copy_fail
{
	my ($duplicate) = @_;
	my $socket = $node->raw_connect();
	my $send = sub { my ($kind, $data) = @_; print $socket $kind . pack('N', length($data) + 4) . $data };
	my $read = sub { my ($n) = @_; my $data = ''; while (length($data) < $n) { read($socket, $data, $n - length($data), length($data)) or die 'no more' } return $data };
	my $message = sub { my $kind = $read->(1); my $n = unpack('N', $read->(4)) - 4; return ($kind, $n > 0 ? $read->($n) : '') };
	my $until = sub { my ($wanted) = @_; my $text = ''; while (1) { my ($kind, $data) = $message->(); $text .= $data if $kind eq 'E'; return $text if $kind eq $wanted } };
	my $user = $ENV{PGUSER} || getpwuid($<);
	my $body = pack('N', 196608) . "user\0$user\0database\0postgres\0\0";
	print $socket pack('N', length($body) + 4) . $body;
	$socket->autoflush(1);
	$until->('Z');
	$send->('Q', "COPY given_up FROM STDIN\0");
	$until->('G');
	$send->('d', (($_ == $duplicate ? 1 : $_) * 61803 % 100003) . "\n") foreach 1 .. 5000;
	$send->('f', "the program has failed\0");
	my $text = $until->('Z');
	close($socket);
	return $text;
}
$node->safe_psql('postgres', 'CREATE TABLE given_up (id int PRIMARY KEY)');
SKIP:
{
	skip 'no raw connections', 2 unless $node->raw_connect_works();
	like(copy_fail(2000), qr/Key \(id\)=\(61803\) already exists/, 'a duplicate, before the end that the client makes');
	like(copy_fail(0), qr/the program has failed/, 'that end, if there is none');
}

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

# Ranges that are too far from what is there by then, and others that no entry is
# compared with, whatever the root has had before.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE far_s;
	CREATE TABLE far_late (id bigint CHECK (id <> 6000), r numrange);
	INSERT INTO far_late SELECT i, numrange(NULL, i) FROM generate_series(1, 2000) i;
	INSERT INTO far_late SELECT i + 10000, numrange(i, i + 10) FROM generate_series(1, 3000) i;
	CREATE INDEX ON far_late USING gist (r);
	CREATE TABLE far_early (id bigint, a int4range, b numrange);
	CREATE INDEX ON far_early USING gist (a, b);
	INSERT INTO far_early SELECT i, int4range(1, 10), numrange(150e306 + (i % 10) * 1e305, 160e306) FROM generate_series(1, 70) i;
	INSERT INTO far_early SELECT i, int4range(1000000, 1000010), numrange(0, 10) FROM generate_series(1, 2000) i});
like(error_of("INSERT INTO far_late SELECT nextval('far_s'), numrange(i, CASE i WHEN 4000 THEN 1e400 ELSE i + 5 END) FROM generate_series(1, 10000) i"),
	qr/out of range for type double precision/, 'a range that is too far from another one, before a later row');
is($node->safe_psql('postgres', 'SELECT last_value FROM far_s'), '4000', 'which is not reached');
is(error_of('INSERT INTO far_early SELECT i, CASE WHEN i < 3000 THEN int4range(1000000, 1000010) ELSE int4range(1, 10) END,
	CASE WHEN i < 3000 THEN numrange(0, 10) WHEN i = 3000 THEN numrange(10, 20) ELSE numrange(-100e306, 0) END FROM generate_series(1, 3001) i'),
	'', 'no error of a comparison that no insert makes');

# What folds the key of a partition calls its functions, also for rows after the
# duplicate.
$node->safe_psql('postgres', q{
	CREATE SEQUENCE folded;
	CREATE FUNCTION folds(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$BEGIN PERFORM nextval('folded'); RETURN i; END$$;
	CREATE TABLE keyed (k int) PARTITION BY RANGE ((k + folds(1)));
	CREATE TABLE keyed_1 PARTITION OF keyed FOR VALUES FROM (0) TO (10);
	CREATE TABLE described (id int UNIQUE, d text);
	ALTER SEQUENCE folded RESTART;});
like(error_of(q{INSERT INTO described SELECT CASE n WHEN 2500 THEN 61803 ELSE n * 61803 % 100003 END, CASE n WHEN 5000 THEN pg_get_partition_constraintdef('keyed_1'::regclass) END
	FROM generate_series(1, 7000) n}), qr/Key \(id\)=\(61803\) already exists/, 'a duplicate before a row that describes a partition');
is($node->safe_psql('postgres', 'SELECT is_called FROM folded'), 'f', 'whose key is not folded');

# What a statement calls may have been dropped when its rows are looked at.
$node->safe_psql('postgres', q{
	CREATE TABLE wide (id int PRIMARY KEY, v text) WITH (fillfactor = 10);
	INSERT INTO wide SELECT n, repeat('x', 700) FROM generate_series(1, 10000) n;
	CREATE TABLE narrow AS SELECT n AS id, 1 + n::bigint * 7919 % 9991 AS k FROM generate_series(1, 2000) n;
	CREATE FUNCTION plus(int) RETURNS int LANGUAGE internal IMMUTABLE AS 'int4up';
	CREATE TYPE mood AS ENUM ('sad', 'ok');
	CREATE FUNCTION drops(i int, what text) RETURNS int LANGUAGE plpgsql AS $$BEGIN IF i = 1 THEN EXECUTE 'DROP ' || what; END IF; RETURN i; END$$;
	ALTER TABLE narrow ALTER k TYPE int;
	VACUUM (FREEZE, ANALYZE) wide, narrow});
my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_memoize = off; SET enable_material = off;
	SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET random_page_cost = 1; SET join_collapse_limit = 1; SET client_min_messages = warning; SET aio.quick_io_time = 0;';
foreach ([ 'FUNCTION plus(int)', 'count(*), sum(n.id - w.id)', q{WHERE plus(n.id) > 0 AND drops(n.id, 'FUNCTION plus(int)') > 0}, '2000|-8015153' ],
	[ 'TYPE mood', q{count(drops(n.id, 'TYPE mood')), count(CASE WHEN n.id < 0 THEN (ARRAY['sad', 'ok']::mood[])[n.id]::text END)}, '', '2000|0' ])
{
	my ($what, $values, $where, $expected) = @$_;

	# with its pages not in memory
	$node->restart;
	is($node->safe_psql('postgres', "$loop SELECT $values FROM narrow n JOIN wide w ON w.id = n.k $where"), $expected, "what is dropped meanwhile: $what");
}

# A check that opens the table has rows that were kept back inserted; the next
# one is evaluated for the row that is checked.
$node->safe_psql('postgres', q{
	CREATE TABLE checked (id int PRIMARY KEY, x int, v text);
	ALTER TABLE checked ADD CONSTRAINT a CHECK (CASE WHEN id % 100 = 50 THEN pg_relation_is_updatable('checked'::regclass, false) ELSE 0 END >= 0);
	ALTER TABLE checked ADD CONSTRAINT b CHECK (x = id AND v IS NOT NULL);
	INSERT INTO checked SELECT n, n, 'v' FROM generate_series(1, 5000) n});
is($node->safe_psql('postgres', 'SELECT count(*), sum(x) FROM checked'), '5000|12502500', 'checks after one that opens the table');

is($node->safe_psql('postgres', 'CREATE EXTENSION amcheck; SELECT bt_index_check(indexrelid, true) FROM pg_index WHERE indrelid IN ($$c$$::regclass, $$r$$::regclass)') =~ /\S/, '', 'heap and indexes agree');
$node->stop;
done_testing();
