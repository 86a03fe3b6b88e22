
# Copyright (c) 2026, the pgawait authors

# INVARIANT-96: a value that depends on when it is evaluated is not taken ahead,
# unless nothing happens meanwhile that could change it.  Each statement here
# changes something from row to row, by a function, a trigger, or its client,
# and looks at that in what would be taken ahead.  With aio.debug_lookups
# everything is looked up ahead that may be.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
my $method = $methods{io_uring} ? 'io_uring' : 'worker';

my $node = PostgreSQL::Test::Cluster->new('lookup_when');
$node->init;
$node->append_conf('postgresql.conf', qq{
	io_method = $method
	autovacuum = off
	enable_hashjoin = off
	enable_mergejoin = off
	enable_memoize = off
	enable_material = off
	enable_bitmapscan = off
	random_page_cost = 1
	max_parallel_workers_per_gather = 0
	join_collapse_limit = 1
	jit = off
	timezone = 'UTC'
	datestyle = 'ISO, YMD'
	# what this writes tells nothing about rows
	aio.await_index_inserts = off
});
$node->start;

my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
plan skip_all => 'lookups can be forced only in a build with assertions' unless $can_force;

$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE TABLE b (id int PRIMARY KEY, t text);
	INSERT INTO b SELECT i, 'text ' || i FROM generate_series(1, 1000) i;
	CREATE TABLE a (id int PRIMARY KEY, fk int, zero int DEFAULT 0, day date DEFAULT '2026-01-15', at timestamptz DEFAULT '2026-01-15 00:00Z',
		x float8 DEFAULT 0.1, y bytea DEFAULT '\xff', who text, k int);
	INSERT INTO a (id, fk, who, k) SELECT i, 1 + i * 13 % 1000, CASE WHEN i % 2 = 0 THEN 'boss' ELSE 'alice' END, 1000 + i * 7 FROM generate_series(1, 300) i;
	CREATE FUNCTION set(name text, value text, id int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config(name, value, false); RETURN id; END $$;
	CREATE SEQUENCE s;
	CREATE FUNCTION lock_next(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM FROM a WHERE id = i + 1 FOR UPDATE; RETURN i; END';
	CREATE FUNCTION begin_at(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN IF i = 5 THEN PERFORM pg_current_xact_id(); END IF; RETURN i; END';
	CREATE FUNCTION later(i int) RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RETURN clock_timestamp(); END';
	CREATE FUNCTION lies(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.n', i::text, false); RETURN i; END $$;
	CREATE TABLE t (id int PRIMARY KEY, n text, x text);
	INSERT INTO t SELECT i, '', '' FROM generate_series(1001, 2000) i;
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.n', NEW.id::text, false); RETURN NEW; END $$;
	CREATE TRIGGER note BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note();
	CREATE DOMAIN noting AS int CHECK (lies(VALUE) > 0);
	CREATE FUNCTION pick(state int, i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.n', i::text, false); RETURN i; END $$;
	CREATE AGGREGATE last_noted(int) (sfunc = pick, stype = int);
	CREATE ROLE boss;
	CREATE ROLE alice;
	GRANT SELECT ON a, b TO boss, alice;
	GRANT CREATE ON SCHEMA public TO boss;
	CREATE SCHEMA other;
	GRANT USAGE ON SCHEMA other TO PUBLIC;
	CREATE TABLE tenants (id int PRIMARY KEY, tenant text, fk int);
	INSERT INTO tenants SELECT i, 'tenant ' || i % 2, 1 + i * 13 % 1000 FROM generate_series(1, 300) i;
	ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
	CREATE POLICY tenants ON tenants USING (tenant = current_setting('my.tenant'));
	GRANT SELECT ON tenants TO alice;
	VACUUM (FREEZE, ANALYZE);
	SET ROLE boss;
	CREATE FUNCTION page() RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER AS $$
		DECLARE c refcursor := 'c';
		BEGIN
			OPEN c FOR SELECT a.id, a.who, length(b.t) FROM a JOIN b ON b.id = a.fk WHERE a.who = CURRENT_USER;
			MOVE FORWARD 40 IN c;
			RETURN c;
		END $$});

$node->safe_psql('postgres', q{
	CREATE FUNCTION my_eq(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'eq % %', $1, $2; RETURN $1 = $2; END $$;
	CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = my_eq, COMMUTATOR = ===);
	CREATE OPERATOR CLASS my_ops FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 ===, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
	CREATE TABLE mine (id int, x text);
	INSERT INTO mine SELECT i * 2, 'old' FROM generate_series(1, 500) i;
	CREATE UNIQUE INDEX ON mine (id my_ops);
	CREATE TABLE excluded (id int, x text);
	INSERT INTO excluded SELECT i * 2, 'old' FROM generate_series(1, 500) i;
	CREATE INDEX ON excluded (id);
	ALTER TABLE excluded ADD EXCLUDE USING btree (id my_ops WITH ===) DEFERRABLE INITIALLY DEFERRED;
	CREATE TABLE words (id int, body text);
	INSERT INTO words SELECT i, 'word' || i FROM generate_series(1, 500) i;
	CREATE UNIQUE INDEX ON words (md5(to_tsvector('simple', body)::text))});

$node->safe_psql('postgres', q{
	CREATE TYPE noting_eq AS (n int);
	CREATE FUNCTION noting_eq_cmp(noting_eq, noting_eq) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', $1.n::text, false); RETURN $1.n - $2.n; END $$;
	CREATE FUNCTION noting_eq_eq(noting_eq, noting_eq) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN noting_eq_cmp($1, $2) = 0; END $$;
	CREATE FUNCTION noting_eq_lt(noting_eq, noting_eq) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN noting_eq_cmp($1, $2) < 0; END $$;
	CREATE OPERATOR === (LEFTARG = noting_eq, RIGHTARG = noting_eq, FUNCTION = noting_eq_eq);
	CREATE OPERATOR <<< (LEFTARG = noting_eq, RIGHTARG = noting_eq, FUNCTION = noting_eq_lt);
	CREATE OPERATOR >>> (LEFTARG = noting_eq, RIGHTARG = noting_eq, FUNCTION = noting_eq_lt);
	CREATE OPERATOR CLASS noting_eq_ops DEFAULT FOR TYPE noting_eq USING btree AS
		OPERATOR 1 <<<, OPERATOR 3 ===, OPERATOR 5 >>>, FUNCTION 1 noting_eq_cmp(noting_eq, noting_eq);
	CREATE TYPE noting_pair AS (n int, x noting_eq);
	CREATE TYPE level AS ENUM ('low', 'high');
	CREATE FUNCTION note_statement() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.n', '1', false); RETURN NULL; END $$;
	CREATE FUNCTION note_condition() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.n', '1', false); RETURN false; END $$;
	CREATE TABLE written (x int);
	CREATE TRIGGER note BEFORE INSERT ON written FOR EACH STATEMENT EXECUTE FUNCTION note_statement();
	CREATE TABLE written_after AS SELECT 1 AS x;
	CREATE TRIGGER note AFTER UPDATE ON written_after FOR EACH STATEMENT WHEN (note_condition()) EXECUTE FUNCTION note_statement();
	CREATE TABLE parted (x int) PARTITION BY RANGE (x);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000);
	INSERT INTO parted SELECT generate_series(1, 300);
	ANALYZE parted});

# PostgreSQL's functions that are declared IMMUTABLE have been looked through for
# those whose code reads a setting: depends_on_setting() in volatility.c.  If this
# fails, there are others: look through them, too.
is($node->safe_psql('postgres', q{SELECT count(*), md5(string_agg(oid::text, ',' ORDER BY oid)) FROM pg_proc WHERE provolatile = 'i' AND prolang = 12 AND oid < 16384}),
	'2341|c9919f0e51631b0b9562d155cb401fac', 'functions of which it is known whether they depend on settings');

# Likewise those that are STABLE, and those for user code that they call, of the types
# that they make or by a query: builtin_may_change().
is($node->safe_psql('postgres', q{SELECT count(*), md5(string_agg(oid::text, ',' ORDER BY oid)) FROM pg_proc WHERE provolatile = 's' AND prolang = 12 AND oid < 16384}),
	'647|cb2f006cdd4965fed3eec15e7aaa38ce', 'functions of which it is known whether they call those of users');
is($node->safe_psql('postgres', q{
		SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE provolatile <> 'v' AND oid < 16384 AND proargtypes::oid[] && '{json, jsonb}'::regtype[]::oid[] AND
			('anyelement'::regtype = ANY (proargtypes) OR (prorettype = 'record'::regtype AND proallargtypes IS NULL))}),
	'json_populate_record json_populate_recordset json_to_record json_to_recordset jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset jsonb_to_record jsonb_to_recordset',
	'functions that make records of JSON');
is($node->safe_psql('postgres', q{
		SELECT DISTINCT p.proname FROM pg_type t, pg_proc p WHERE p.oid IN (t.typinput, t.typreceive) AND t.typtype IN ('c', 'd', 'r', 'm') AND
			NOT (proargtypes::oid[] && '{cstring, internal}'::regtype[]::oid[] AND 'oid'::regtype = ANY (proargtypes))}),
	'', 'input functions that call others are known by their arguments');

# What a client sees of these commands, and how much is looked up ahead.
sub seen
{
	my ($commands, $ahead) = @_;
	my ($rows, $messages);

	$node->safe_psql('postgres', 'VACUUM (FREEZE, INDEX_CLEANUP on) a, mine, excluded, words; ALTER SEQUENCE s RESTART; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC');
	$node->psql('postgres', "SET aio.debug_lookups = $ahead; SET my.n = '0'; SET my.tenant = 'tenant 1'; $commands",
		stdout => \$rows, stderr => \$messages, on_error_stop => 0);
	$messages =~ s/^psql:<stdin>:\d+: //mg;
	return "$rows\n$messages";
}

sub lookups
{
	return $node->safe_psql('postgres', q{
		SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'});
}

# 'ahead' is whether anything is looked up.
sub same
{
	my ($ahead, $what, $commands) = @_;
	my $without = seen($commands, 0);
	my $before = lookups();
	my @with = map { seen($commands, $_) } (1, 64);
	my $made = lookups() - $before;

	cmp_ok(length($without), '>', 20, "$what: something is seen");
	unlike($without, qr/is ambiguous|operator does not exist|syntax error/, "$what: it is understood");
	is($with[$_], $without, "$what: the same with lookups ahead ($_)") foreach (0, 1);
	$ahead ? cmp_ok($made, '>', 100, "$what: lookups are made") : is($made, 0, "$what: no lookups are made");
}

# Settings, and who runs the statement, which the output changes.
my $join2 = 'JOIN b ON b.id = a.fk';
my $join = "FROM a $join2";
same(0, 'a setting', "SELECT a.id, b.t, set_config('my.n', a.id::text, false) $join WHERE current_setting('my.n')::int + a.zero < 50");
same(0, 'the time zone', "SELECT a.id, b.t, set_config('timezone', CASE WHEN a.id < 50 THEN 'UTC' ELSE 'America/Los_Angeles' END, false) $join WHERE a.day::timestamptz = a.at");
same(0, 'the date style', "SELECT a.id, b.t, set_config('datestyle', CASE WHEN a.id < 50 THEN 'ISO' ELSE 'German' END, false) $join WHERE a.day::text = '2026-01-15'");
same(0, 'the date', "SELECT s.id, b.t, set_config('timezone', CASE WHEN s.id < 50 THEN 'Etc/GMT+12' ELSE 'Etc/GMT-14' END, false) IS NULL, s.d = lag(s.d) OVER () FROM (SELECT *, CURRENT_DATE AS d FROM a OFFSET 0) s JOIN b ON b.id = s.fk");
same(0, 'digits of numbers', "SELECT a.id, b.t, set_config('extra_float_digits', CASE WHEN a.id < 50 THEN '1' ELSE '-15' END, false) $join WHERE (a.x + 1e-14)::text <> '0.1'");
same(0, 'output of bytea', "SELECT a.id, b.t, set_config('bytea_output', CASE WHEN a.id < 50 THEN 'hex' ELSE 'escape' END, false) $join WHERE a.y::text LIKE '%ff'");
same(0, 'quotes', "SELECT a.id, b.t, set_config('quote_all_identifiers', (a.id >= 50)::text, false) $join WHERE length(quote_ident(a.who)) + a.zero < 6");
same(0, 'abbreviations of time zones', "SELECT a.id, b.t, set_config('timezone_abbreviations', CASE WHEN a.id < 50 THEN 'Default' ELSE 'Australia' END, false) $join WHERE timezone('EST', a.at) = '2026-01-14 19:00'");
same(0, 'the same of sums', "SELECT a.id, b.t, set_config('timezone_abbreviations', CASE WHEN a.id < 50 THEN 'Default' ELSE 'Australia' END, false) $join WHERE date_trunc('day', a.at, 'EST') = '2026-01-14 05:00Z'");
same(0, 'ages', "SELECT a.id, b.t, set_config('timezone', CASE WHEN a.id < 50 THEN 'UTC' ELSE 'America/Los_Angeles' END, false) $join WHERE age(a.at, '2025-03-15 00:00Z') = '10 mons'");
same(0, 'output functions', "SELECT a.id, b.t, set_config('bytea_output', CASE WHEN a.id < 50 THEN 'hex' ELSE 'escape' END, false) $join WHERE length(textin(byteaout(a.y))) = 4 AND a.id <> 51");
same(0, 'the schema', "SELECT a.id, b.t, set_config('search_path', CASE WHEN a.id < 50 THEN 'public' ELSE 'other' END, false) $join WHERE a.id = 1 OR CURRENT_SCHEMA = 'public'");
same(0, 'the user', "SELECT a.id, b.t, set_config('role', CASE WHEN a.id < 50 THEN 'alice' ELSE 'boss' END, false) $join WHERE a.id = 1 OR CURRENT_USER = 'alice'");
same(0, 'a function of the user', "SELECT a.id, b.t, set_config('role', CASE WHEN a.id < 50 THEN 'alice' ELSE 'boss' END, false) $join WHERE a.id = 1 OR has_table_privilege('tenants', 'SELECT')");
same(0, 'a policy', "SET ROLE alice; SELECT tenants.id, b.t, set_config('my.tenant', 'tenant ' || CASE WHEN tenants.id < 50 THEN 1 ELSE 0 END, false) FROM tenants JOIN b ON b.id = tenants.fk");

# Others that change it: functions of users anywhere in the statement.
my $setting = "current_setting('my.n')::int + a.zero < 50";
same(0, 'a function', "SELECT set('my.n', a.id::text, a.id), b.t $join WHERE $setting");
same(0, 'a function that is declared IMMUTABLE', "SELECT lies(a.id), b.t $join WHERE $setting");
same(0, 'a function of the inner side', "SELECT a.id, b.t FROM a JOIN b ON b.id = a.fk AND lies(a.id) > 0 WHERE $setting");
same(0, 'a domain', "SELECT a.id::noting, b.t $join WHERE $setting");
same(0, 'an aggregate above', "SELECT 'the one that comes last', last_noted(a.id), count(b.t) $join WHERE $setting");
same(0, 'a subquery', "SELECT a.id, b.t, (SELECT lies(a.id) FROM b WHERE id = 1) $join WHERE $setting");
same(0, 'a sort', "SELECT a.id, b.t $join WHERE $setting ORDER BY lies(a.id)");
same(0, 'a lateral subquery', "SELECT a.id, x.n, x.t FROM a, LATERAL (SELECT lies(a.id) + 0 AS n, t FROM b WHERE b.id = a.fk OFFSET 0) x WHERE $setting");

# PostgreSQL's own functions for arrays and records call such functions.
same(0, 'a comparison of arrays', "SELECT ARRAY[ROW(a.id)::noting_eq] = ARRAY[ROW(a.id)::noting_eq], a.id, b.t $join WHERE $setting");
same(0, 'a comparison of records', "SELECT ROW(a.id, ROW(a.id)::noting_eq)::noting_pair = ROW(a.id, ROW(a.id)::noting_eq)::noting_pair, a.id, b.t $join WHERE $setting");
same(0, 'an aggregate of arrays', "SELECT 'the one that comes last', max(ARRAY[ROW(a.id)::noting_eq])::text, count(b.t) $join WHERE $setting");
same(0, 'the greatest of arrays', "SELECT GREATEST(ARRAY[ROW(a.id)::noting_eq], ARRAY[ROW(0)::noting_eq])::text, b.t $join WHERE $setting");
same(0, 'groups of arrays', "SET enable_hashagg = off; SELECT ARRAY[ROW(a.id)::noting_eq]::text, count(b.t) $join WHERE $setting GROUP BY ARRAY[ROW(a.id)::noting_eq]");
same(1, 'arrays of enums', "SELECT ARRAY['low', 'high']::level[] > ARRAY[CASE a.id WHEN 1 THEN 'low' ELSE 'high' END]::level[], ARRAY[a.id] < ARRAY[7], b.t $join WHERE $setting");

# So do input functions, those that make JSON, and those that sort, hash or make a
# range; and who has made the operator or the aggregate tells nothing of them.
$node->safe_psql('postgres', q{
	CREATE TYPE noting_row AS (n noting);
	SET ROLE boss;
	CREATE TYPE number_range AS RANGE (subtype = int4);
	CREATE FUNCTION number_json(number_range) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', lower($1)::text, false); RETURN '1'; END $$;
	CREATE CAST (number_range AS json) WITH FUNCTION number_json(number_range);
	CREATE TYPE noting_range AS RANGE (subtype = noting);
	CREATE AGGREGATE largest(anyarray) (sfunc = array_larger, stype = anyarray);
	CREATE AGGREGATE configure(text, bool) (sfunc = set_config, stype = text, initcond = 'my.n');
	CREATE AGGREGATE as_json(anyelement) (sfunc = any_value_transfn, stype = anyelement, finalfunc = to_json);
	CREATE AGGREGATE sorted(point) (sfunc = array_append, stype = point[], finalfunc = array_sort);
	RESET ROLE;
	CREATE OPERATOR <<<<< (LEFTARG = anyarray, RIGHTARG = anyarray, FUNCTION = array_lt);
	CREATE FUNCTION number_cmp(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', greatest($1, $2)::text, false); RETURN $1 - $2; END $$;
	CREATE FUNCTION number_hash(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', $1::text, false); RETURN $1; END $$;
	CREATE OPERATOR ==== (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq, COMMUTATOR = ====, HASHES);
	CREATE OPERATOR <<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt);
	CREATE OPERATOR CLASS number_ops FOR TYPE int USING btree AS OPERATOR 1 <<<<, OPERATOR 3 ====, FUNCTION 1 number_cmp(int, int);
	CREATE OPERATOR CLASS number_hash_ops FOR TYPE int USING hash AS OPERATOR 1 ====, FUNCTION 1 number_hash(int);
	CREATE TYPE compared_range AS RANGE (subtype = int4, subtype_opclass = number_ops);
	CREATE FUNCTION point_cmp(point, point) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', greatest($1[0], $2[0])::int::text, false); RETURN sign($1[0] - $2[0])::int; END $$;
	CREATE FUNCTION point_eq(point, point) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN point_cmp($1, $2) = 0; END $$;
	CREATE FUNCTION point_lt(point, point) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN point_cmp($1, $2) < 0; END $$;
	CREATE OPERATOR === (LEFTARG = point, RIGHTARG = point, FUNCTION = point_eq);
	CREATE OPERATOR <<< (LEFTARG = point, RIGHTARG = point, FUNCTION = point_lt);
	CREATE OPERATOR >>> (LEFTARG = point, RIGHTARG = point, FUNCTION = point_lt);
	CREATE OPERATOR CLASS point_ops DEFAULT FOR TYPE point USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, OPERATOR 5 >>>, FUNCTION 1 point_cmp(point, point)});
same(0, 'input of a record', "SELECT a.id, b.t, record_in(textout('(' || a.id || ')'), 'noting_row'::regtype, -1) $join WHERE $setting");
same(0, 'input of a domain', "SELECT a.id, b.t, pg_typeof(domain_in(textout(a.id::text), 'noting'::regtype, -1)) $join WHERE $setting");
same(0, 'input of an array', "SELECT a.id, b.t, ('{' || a.id || '}')::noting[] $join WHERE $setting");
same(0, 'input of a range', "SELECT a.id, b.t, ('[' || a.id || ',' || a.id + 1 || ']')::noting_range::text $join WHERE $setting");
same(0, 'input of a range that is compared', "SELECT a.id, b.t, ('[' || a.id || ',' || a.id + 1 || ']')::compared_range $join WHERE $setting");
same(0, "JSON that is made and returned as $_->[0]", "SELECT a.id, b.t, $_->[1] $join WHERE $setting")
  foreach ([ 'JSON', 'JSON_ARRAY(number_range(a.id, a.id + 1))' ], [ 'text', 'JSON_ARRAY(number_range(a.id, a.id + 1) RETURNING text)' ],
	[ 'varchar', q{JSON_OBJECT('x': number_range(a.id, a.id + 1) RETURNING varchar(100))} ],
	[ 'JSON by an aggregate', '(SELECT as_json(number_range(a.id, a.id + x)) FROM (VALUES (1)) v(x))' ]);
same(0, 'an aggregate that somebody has made', "SELECT 'the one that comes last', max(a.id), largest(ARRAY[ROW(a.id)::noting_eq]), count(b.t) $join WHERE $setting");
same(0, 'one of a volatile function', "SELECT a.id, b.t, (SELECT configure((a.id + x)::text, false) FROM (VALUES (0)) v(x)) $join WHERE $setting");
same(0, 'one that sorts an array', "SELECT a.id, b.t, (SELECT sorted(point(a.id + x, 0)) FROM (VALUES (0), (0)) v(x)) $join WHERE $setting");
same(0, 'the same over a window', "SELECT a.id, b.t, (SELECT max(y::text) FROM (SELECT sorted(point(a.id + x, 0)) OVER () AS y FROM (VALUES (0), (0)) v(x)) w) $join WHERE $setting");
same(0, 'an operator that somebody has made', "SELECT ARRAY[ROW(a.id)::noting_eq] <<<<< ARRAY[ROW(a.id)::noting_eq], a.id, b.t $join WHERE $setting");
same(0, 'a sort by such an operator', "SELECT a.id, b.t, (SELECT max(x) FROM (SELECT x FROM (VALUES (a.id), (0)) v(x) ORDER BY x USING <<<< OFFSET 0) s) $join WHERE $setting");
same(0, 'hashing by one', "SELECT a.id, b.t, a.id ==== ANY ('{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}'::int[]) $join WHERE $setting");
same(0, 'an array of a type that has an operator class', "SELECT ARRAY[point(a.id, 0)] = ARRAY[point(0, 0)], a.id, b.t $join WHERE $setting");
same(0, 'the greatest of its values', "SELECT GREATEST(point(a.id, 0), point(0, 0)), a.id, b.t $join WHERE $setting");
same(0, 'a range that is compared', "SELECT compared_range(a.id, a.id + 1), a.id, b.t $join WHERE $setting");

# So do comparisons of rows, pruning, rows that are ties, members of arrays, rows
# of catalogs, and columns that are computed for a check.
$node->safe_psql('postgres', q{
	CREATE FUNCTION box_cmp(box, box) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', greatest(area($1), area($2))::int::text, false); RETURN sign(area($1) - area($2))::int; END $$;
	CREATE OPERATOR CLASS box_ops DEFAULT FOR TYPE box USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 box_cmp(box, box);
	CREATE FUNCTION number_eq(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN number_cmp($1, $2) = 0; END $$;
	CREATE OPERATOR ===== (LEFTARG = int, RIGHTARG = int, FUNCTION = number_eq);
	CREATE OPERATOR <<<<<< (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt);
	CREATE OPERATOR CLASS number_eq_ops FOR TYPE int USING btree AS OPERATOR 1 <<<<<<, OPERATOR 3 =====, FUNCTION 1 btint4cmp(int, int);
	CREATE TABLE pruned (k int, v text) PARTITION BY RANGE (k number_ops);
	CREATE TABLE pruned_1 PARTITION OF pruned FOR VALUES FROM (MINVALUE) TO (10);
	CREATE TABLE pruned_2 PARTITION OF pruned FOR VALUES FROM (10) TO (40);
	INSERT INTO pruned SELECT i, 'number ' || i FROM generate_series(1, 39) i;
	CREATE FUNCTION acl_cmp(aclitem, aclitem) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', (current_setting('my.n')::int + 1)::text, false); RETURN -1; END $$;
	CREATE OPERATOR CLASS acl_ops DEFAULT FOR TYPE aclitem USING btree AS OPERATOR 3 =, FUNCTION 1 acl_cmp(aclitem, aclitem);
	CREATE TABLE computed (x box, g box GENERATED ALWAYS AS (GREATEST(x, box '((0,0),(10,10))')) VIRTUAL, CHECK (area(g) > 0));
	GRANT SELECT (t) ON b TO boss;
	ANALYZE pruned});
same(0, 'a comparison of rows', "SELECT (box(point(0, 0), point(a.id, 1)), a.id) < (box '((0,0),(5,1))', 5), a.id, b.t $join WHERE $setting");
same(0, "pruning for $_", "SELECT (SELECT max(v) FROM pruned WHERE k $_ a.id), a.id, b.t $join WHERE $setting") foreach ('====', '<<<<');
same(0, 'ties', "SELECT (SELECT count(*) FROM (SELECT x FROM (VALUES (a.id), (a.id), (a.id + 1)) v(x) ORDER BY x USING <<<<<< FETCH FIRST 1 ROW WITH TIES) s), a.id, b.t $join WHERE $setting");
same(0, 'ranges in an array', q{SELECT a.id <@ ANY ('{"[1,5)","[20,40)"}'::compared_range[]), a.id, b.t }."$join WHERE $setting");
same(0, 'rows of a catalog', "SELECT (SELECT c < c FROM pg_attribute c WHERE attrelid = 'b'::regclass AND attname = 't' AND attlen < a.id), a.id, b.t $join WHERE $setting");
same(0, 'a column of a check', "BEGIN; INSERT INTO computed SELECT box(point(0, 0), point(a.id, length(b.t))) $join WHERE $setting; SELECT 'rows that have been checked', count(*) FROM computed; ROLLBACK");
same(1, 'ordinary rows', "SELECT (a.day, a.id) < ('2026-01-15', 5), (SELECT count(*) FROM (SELECT x FROM (VALUES (a.id), (a.id), (a.id + 1)) v(x) ORDER BY x FETCH FIRST 1 ROW WITH TIES) s), a.id <@ ANY ('{\"[1,5)\"}'::int4range[]),
	a.fk = ANY ('{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}'::bigint[]), (SELECT max(x) FROM parted WHERE x = a.id), a.id, b.t $join WHERE $setting");

# A search for values of another type calls a function that neither its key names
# nor the operator class of the index has.
$node->safe_psql('postgres', q{
	CREATE FUNCTION mixed_eq(int, oid) RETURNS bool LANGUAGE internal IMMUTABLE AS 'oideq';
	CREATE FUNCTION mixed_cmp(int, oid) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('my.n', (current_setting('my.n')::int + 1)::text, false); RETURN sign($1 - $2::int8); END $$;
	CREATE OPERATOR ==== (LEFTARG = int, RIGHTARG = oid, FUNCTION = mixed_eq);
	ALTER OPERATOR FAMILY integer_ops USING btree ADD OPERATOR 3 ==== (int, oid), FUNCTION 1 mixed_cmp(int, oid)});
same(0, 'a search for another type', "SET enable_seqscan = off; SELECT 'rows that are found', count(*) FROM (SELECT a.id, b.t FROM a JOIN b ON b.id ==== a.fk::oid OFFSET 0) s; SELECT 'calls', current_setting('my.n')");
$node->safe_psql('postgres', 'ALTER OPERATOR FAMILY integer_ops USING btree DROP OPERATOR 3 (int, oid), FUNCTION 1 (int, oid)');
same(1, 'ordinary types', "SELECT a.id, b.t, ('{' || a.id || '}')::int[], '[2026-01-01,]'::daterange \@> a.day, int4range(a.id, a.id + 5), number_range(a.id, a.id + 5) \@> 7, (CASE a.id WHEN 1 THEN 'low' ELSE 'high' END)::level, ARRAY[a.day] = ARRAY[a.day], GREATEST(a.at, now()) > a.at, GREATEST(a.who, 'b'),
	(SELECT array_agg(x ORDER BY x) FROM (VALUES (a.id), (0)) v(x)), JSON_ARRAY(a.id, a.who RETURNING text), to_jsonb(a.day), sum(a.id) OVER (), a.id = ANY ('{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}'::int[]), largest(ARRAY[a.id]) OVER () $join WHERE $setting");
SKIP:
{
	skip 'no XML', 1 if $node->psql('postgres', q{SELECT xml '<a/>'}) != 0;
	$node->safe_psql('postgres', q{CREATE TABLE documents AS SELECT id, fk, zero, ('<r><n>' || id || '</n><v>{' || id || '}</v></r>')::xml AS x FROM a; ANALYZE documents});
	same(0, 'columns of XMLTABLE', "SELECT x.n, b.t FROM (documents a $join2) CROSS JOIN LATERAL XMLTABLE('/r' PASSING a.x COLUMNS n noting PATH 'n') x WHERE $setting");
	same(1, 'columns of XMLTABLE that are of ordinary types', "SELECT x.n, b.t FROM (documents a $join2) CROSS JOIN LATERAL XMLTABLE('/r' PASSING a.x COLUMNS n int[] PATH 'v') x WHERE $setting");
}

# A trigger before a statement fires in the middle of another one, which it is a
# part of.
$setting = "current_setting('my.n')::int + a.zero = 0";
same(0, 'a trigger before a statement in WITH', "BEGIN; WITH w AS (INSERT INTO written SELECT i FROM generate_series(1, 10) i RETURNING x) SELECT a.id, b.t, CASE WHEN a.id >= 100 THEN (SELECT count(*) FROM w WHERE w.x = a.id) END $join WHERE $setting; ROLLBACK");
same(0, 'the condition of one after it', "BEGIN; WITH w AS (UPDATE written_after SET x = x RETURNING x) SELECT a.id, b.t, CASE WHEN a.id >= 100 THEN (SELECT count(*) FROM w) END $join WHERE $setting; ROLLBACK");
same(1, 'a trigger before the statement', "BEGIN; INSERT INTO written SELECT a.id $join WHERE current_setting('my.n')::int + a.zero = 1 AND length(b.t) > 0; SELECT 'rows that are new', count(*), max(x) FROM written; ROLLBACK");

# INVARIANT-102: to find that out, nothing is locked that the statement
# does not lock.
same(1, 'a delete from a partition', "BEGIN; DELETE FROM parted_1 USING a, b WHERE b.id = a.fk AND parted_1.x = a.id AND current_setting('my.n')::int + a.zero = 0 AND length(b.t) < 100;
	SELECT 'rows that are left', count(*) FROM parted_1; SELECT relation::regclass, mode FROM pg_locks WHERE relation = 'parted'::regclass; ROLLBACK");
same(0, 'an update of a partition', "BEGIN; UPDATE parted_1 SET x = parted_1.x FROM a, b WHERE b.id = a.fk AND parted_1.x = a.id AND current_setting('my.n')::int + a.zero = 0 AND length(b.t) < 100; SELECT 'rows that are there', count(*) FROM parted_1; ROLLBACK");
$setting = "current_setting('my.n')::int + a.zero < 50";

# Conditions of a scan whose target list is evaluated later; subqueries in it
# are executed in between, too.
same(0, 'early conditions', "SELECT a.id, set_config('my.n', a.id::text, false), (SELECT t FROM b WHERE b.id = a.fk) FROM a WHERE $setting");
same(0, 'early conditions before others', "SELECT a.id FROM a WHERE $setting AND (SELECT length(t) FROM b WHERE b.id = a.fk) + lies(a.id) > 0");

# Time passes, whatever is done.
same(0, 'time', "SELECT count(*) FROM (SELECT s.t < lag(later(s.id)) OVER () AS early FROM (SELECT *, clock_timestamp() AS t FROM a OFFSET 0) s JOIN b ON b.id = s.fk) x WHERE early;
	CREATE TEMP TABLE r AS SELECT s.id, s.t AS before, clock_timestamp() AS after FROM (SELECT *, clock_timestamp() AS t FROM a OFFSET 0) s JOIN b ON b.id = s.fk;
	SELECT 'times that run backwards', count(*) FROM (SELECT before < lag(after) OVER (ORDER BY id) AS bad FROM r) x WHERE bad;
	CREATE TEMP TABLE u AS SELECT s.id, s.u AS before, uuidv7() AS after FROM (SELECT *, uuidv7() AS u FROM a OFFSET 0) s JOIN b ON b.id = s.fk;
	SELECT 'UUIDs that run backwards', count(*) FROM (SELECT before < lag(after) OVER (ORDER BY id) AS bad FROM u) x WHERE bad");

# What is changed in place.
same(0, 'a sequence', "CREATE TEMP TABLE r AS SELECT nextval('s') AS n, q.last, b.t FROM (a CROSS JOIN LATERAL (SELECT last_value + a.id * 0 AS last FROM s OFFSET 0) q) JOIN b ON b.id = a.fk;
	SELECT 'rows that are wrong', count(*) FROM r WHERE n > 2 AND last <> n - 1");
same(0, 'xmax', "CREATE TEMP TABLE r AS SELECT a.id, a.xmax AS x, lock_next(a.id), b.t $join;
	SELECT 'rows that are not locked', count(*) FROM r WHERE x = '0'");
same(0, 'xmax of what is evaluated later', "CREATE TEMP TABLE r AS SELECT a.id, a.xmax AS x, lock_next(a.id), (SELECT t FROM b WHERE b.id = a.fk) FROM a;
	SELECT 'rows that are not locked', count(*) FROM r WHERE x = '0'");
same(0, 'whether there is a transaction', "SELECT pg_current_xact_id_if_assigned() IS NULL; SELECT s.none, begin_at(s.id) FROM (SELECT *, pg_current_xact_id_if_assigned() IS NULL AS none FROM a OFFSET 0) s JOIN b ON b.id = s.fk;
	SELECT s.none, begin_at(s.id) FROM (SELECT *, txid_current_if_assigned() IS NULL AS none FROM a OFFSET 0) s JOIN b ON b.id = s.fk");

# A trigger, of INSERT ... ON CONFLICT: the column is computed when it is its
# turn, and keys are looked up all the same.
same(1, 'a trigger', "BEGIN; INSERT INTO t SELECT a.k, current_setting('my.n'), 'new' FROM a ON CONFLICT DO NOTHING;
	SELECT 'rows that are wrong', count(*) FROM (SELECT id::text <> lead(n) OVER (ORDER BY ctid) AS wrong FROM t WHERE x = 'new') x WHERE wrong; ROLLBACK");
same(0, 'a trigger, and its plan', "BEGIN; INSERT INTO t SELECT 1000 + a.id * 7, current_setting('my.n'), 'new' FROM a WHERE current_setting('my.n')::int + a.zero < 1500 ON CONFLICT DO NOTHING;
	SELECT 'rows that are new', count(*), max(id) FROM t WHERE x = 'new'; ROLLBACK");

# A client, between two FETCHes.
sub between
{
	my ($condition, $change, $first) = @_;
	return "SET my.n = '0'; $first BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.t $join WHERE $condition; FETCH 41 FROM c; $change; FETCH 100 FROM c; COMMIT; RESET ALL; RESET ROLE; ";
}
same(0, 'a client', between('a.day::timestamptz = a.at', "SET timezone = 'America/Los_Angeles'", '')
	. between("current_setting('my.n')::int + a.zero < 5", "SET my.n = '5'", '')
	. between('a.who = CURRENT_USER', 'SET ROLE boss', 'SET ROLE alice;'));
same(0, 'a procedure', q{DO $$
	DECLARE r record; n int := 0;
	BEGIN
		FOR r IN SELECT a.id, b.t FROM a JOIN b ON b.id = a.fk WHERE current_setting('my.n')::int + a.zero < 60 LOOP
			PERFORM set_config('my.n', r.id::text, false);
			n := n + 1;
		END LOOP;
		RAISE NOTICE 'there are % rows', n;
	END $$});
same(0, 'a caller, of a function that runs as somebody else', 'SET ROLE alice; BEGIN; SELECT page(); FETCH 100 FROM c; COMMIT');
same(1, 'a client that gets all rows, and goes back', "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT a.id, b.t $join WHERE a.who = CURRENT_USER OR CURRENT_USER <> 'alice';
	FETCH 50 FROM c; MOVE ALL IN c; MOVE BACKWARD ALL IN c; FETCH 50 FROM c; SET ROLE alice; FETCH 50 FROM c; COMMIT");

# Where nothing changes anything, values may be had ahead.
same(1, 'fixed values', "SELECT set('my.n', a.id::text, a.id), b.t $join WHERE a.at < now() AND a.at < CURRENT_TIMESTAMP AND CURRENT_CATALOG = 'postgres' AND a.fk::text <> '7'");
same(1, 'fixed columns', "SELECT set('my.n', a.id::text, a.id), a.ctid, a.tableoid, b.t $join");
same(1, 'stable functions', "SELECT a.id, b.t, random() < 2 $join WHERE a.at < now() - interval '1 day' AND a.day::timestamptz = a.at AND current_setting('my.n') = '0' AND CURRENT_USER <> 'alice'");
same(1, 'stable functions, and a subquery', "SELECT a.id, (SELECT t FROM b WHERE b.id = a.fk) FROM a WHERE current_setting('my.n')::int + a.zero < 50");
same(1, 'a policy that looks at a setting', 'SET ROLE alice; SELECT tenants.id, b.t FROM tenants JOIN b ON b.id = tenants.fk');
same(1, 'an insert', "BEGIN; CREATE TABLE new (id int PRIMARY KEY, t text, at date); INSERT INTO new SELECT a.id, b.t, CURRENT_DATE $join WHERE a.day::timestamptz = a.at AND current_setting('my.n') = '0' ON CONFLICT DO NOTHING; SELECT 'rows that are new', count(*) FROM new WHERE at IS NOT NULL; ROLLBACK");
same(1, 'an update', "BEGIN; UPDATE b SET t = a.id FROM a WHERE b.id = a.fk AND a.day::timestamptz = a.at AND current_setting('my.n') = '0'; SELECT 'rows that have changed', count(*) FROM b WHERE t NOT LIKE 'text%'; ROLLBACK");
same(1, 'an aggregate of rows that a cursor gets', "BEGIN; DECLARE c CURSOR FOR SELECT a.id, b.t $join WHERE a.id > 3; FETCH 150 FROM c; SET my.n = '5'; FETCH 100 FROM c; COMMIT");

# INVARIANT-85: who may call a function is asked when the statement begins, and
# of who began it.  Nothing is looked ahead by an expression that whoever the user
# is by then may not evaluate.
$node->safe_psql('postgres', q{
	CREATE FUNCTION g(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN i; END';
	CREATE FUNCTION forbid(i int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN REVOKE EXECUTE ON FUNCTION g FROM PUBLIC; RETURN i; END';
	CREATE FUNCTION become(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('role', 'alice', false); RETURN i; END $$;
	ALTER TABLE a OWNER TO boss});

# one entry for each key is left: scans do not look ahead either
$node->safe_psql('postgres', 'VACUUM (FREEZE, INDEX_CLEANUP on) b');
same(0, 'privileges that are revoked', 'SET ROLE alice; SELECT forbid(0), NULL UNION ALL SELECT g(a.id), (SELECT t FROM b WHERE b.id = a.fk) FROM a');
same(0, 'conditions, and privileges that are revoked', 'SET ROLE alice; SELECT forbid(0) UNION ALL SELECT a.id FROM a WHERE (SELECT length(t) FROM b WHERE b.id = a.fk) + g(a.id) > 0');
same(0, 'another user', 'REVOKE EXECUTE ON FUNCTION g FROM PUBLIC; SELECT become(0), NULL UNION ALL SELECT g(a.id), (SELECT t FROM b WHERE b.id = a.fk) FROM a; SELECT CURRENT_USER');
same(1, 'another user who may do the same', 'SELECT become(0), NULL UNION ALL SELECT g(a.id), (SELECT t FROM b WHERE b.id = a.fk) FROM a; SELECT CURRENT_USER');

# Nor are constraints of a domain loaded then, to which its owner has added others
# meanwhile: that calls functions.
$node->safe_psql('postgres', q{
	GRANT CREATE ON SCHEMA public TO alice;
	SET ROLE alice;
	CREATE FUNCTION tell(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'called by %', current_user; RETURN i; END $$;
	CREATE DOMAIN checked AS int CONSTRAINT positive CHECK (VALUE > 0);
	CREATE FUNCTION check_more(i int) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN
			ALTER DOMAIN checked ADD CONSTRAINT more CHECK (VALUE > tell(100) OR pg_read_file('PG_VERSION') IS NULL) NOT VALID;
			RETURN i;
		END $$});
my $more = "SET ROLE alice; SELECT check_more(0), NULL UNION ALL SELECT %s, %s FROM a WHERE %s; ALTER DOMAIN checked DROP CONSTRAINT more";
my $subquery = '(SELECT t FROM b WHERE b.id = a.fk)';
same(0, 'a domain that has other constraints', sprintf($more, 'a.id::checked', $subquery, 'true'));
same(0, 'the same in a condition', sprintf($more, 'a.id', 'a.who', "$subquery IS NOT NULL AND a.id::checked < 1000"));
same(0, 'the same before a subquery', sprintf($more, 'a.id', $subquery, 'a.id::checked < 1000'));
same(0, 'the same of values', sprintf($more, 'a.id::checked', 'upper(a.who)', 'true'));
same(0, 'the same in a subquery', sprintf($more, 'a.id', '(SELECT t FROM b WHERE b.id = a.fk::checked)', 'true'));
same(0, 'the same of JSON', sprintf($more, q{JSON_VALUE(to_jsonb(a.id), '$' RETURNING checked)}, $subquery, 'true'));
is($node->safe_psql('postgres', "SET aio.debug_lookups = 64; SET ROLE alice; SELECT count(x) FROM (SELECT a.id, (SELECT t FROM b WHERE b.id = a.fk) x FROM a) y; SELECT CURRENT_USER"),
	"300\nalice", 'whoever runs the statement is the same afterwards');

# INVARIANT-97: functions of users are not called for keys that are looked up
# ahead, nor are notices sent for these.
same(0, 'an operator of a unique index', 'BEGIN; INSERT INTO mine SELECT i * 7, 1 FROM generate_series(1, 150) i ON CONFLICT (id my_ops) DO NOTHING; ROLLBACK');
same(0, 'an operator of an exclusion constraint', 'BEGIN; INSERT INTO excluded SELECT i * 7 + 3000, 1 FROM generate_series(1, 150) i; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK');
same(0, 'an expression of a unique index', q{BEGIN; INSERT INTO words SELECT i, 'new' || i || CASE WHEN i % 10 = 0 THEN ' ' || repeat('a', 3000) ELSE '' END FROM generate_series(1, 150) i ON CONFLICT DO NOTHING; ROLLBACK});

# Nor is a hash function called that arrays or records have called, nor one by which
# partitions are pruned.
$node->safe_psql('postgres', q{
	CREATE TYPE c AS (n int);
	CREATE FUNCTION c_cmp(c, c) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'compare %', $1.n; RETURN $1.n - $2.n; END $$;
	CREATE FUNCTION c_eq(c, c) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1.n = $2.n; END $$;
	CREATE FUNCTION c_lt(c, c) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN $1.n < $2.n; END $$;
	CREATE FUNCTION c_hash(c) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'hash %', $1.n; RETURN $1.n; END $$;
	CREATE FUNCTION c_hash(c, bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'hash %', $1.n; RETURN $1.n; END $$;
	CREATE OPERATOR === (LEFTARG = c, RIGHTARG = c, FUNCTION = c_eq, HASHES, MERGES, COMMUTATOR = ===);
	CREATE OPERATOR <<< (LEFTARG = c, RIGHTARG = c, FUNCTION = c_lt);
	CREATE OPERATOR >>> (LEFTARG = c, RIGHTARG = c, FUNCTION = c_lt);
	CREATE OPERATOR CLASS c_ops DEFAULT FOR TYPE c USING btree AS OPERATOR 1 <<<, OPERATOR 3 ===, OPERATOR 5 >>>, FUNCTION 1 c_cmp(c, c);
	CREATE OPERATOR CLASS c_hash_ops DEFAULT FOR TYPE c USING hash AS OPERATOR 1 ===, FUNCTION 1 c_hash(c), FUNCTION 2 c_hash(c, bigint);
	CREATE TABLE inner_side (id int PRIMARY KEY, c c[], t text);
	INSERT INTO inner_side SELECT i, ARRAY[ROW(i % 10)::c], 'text ' || i FROM generate_series(1, 1000) i;
	CREATE TABLE outer_side (id int PRIMARY KEY, fk int, c c[], d int[]);
	INSERT INTO outer_side SELECT i, 1 + i * 13 % 50, ARRAY[ROW(i)::c], ARRAY[i] FROM generate_series(1, 300) i;
	CREATE TABLE by_array (id int, c c[], t text) PARTITION BY HASH (c);
	CREATE TABLE by_array_0 PARTITION OF by_array FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE by_array_1 PARTITION OF by_array FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE INDEX ON by_array (id);
	INSERT INTO by_array SELECT i, ARRAY[ROW(i)::c], 'text ' || i FROM generate_series(1, 1000) i;
	CREATE FUNCTION tell_row(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', i; RETURN i; END $$;
	VACUUM (FREEZE, ANALYZE) inner_side, outer_side, by_array;
	UPDATE pg_statistic SET stadistinct = 10 WHERE starelid = 'outer_side'::regclass});
my $noted = 'SET enable_seqscan = off; SELECT tell_row(o.id), i.t FROM outer_side o';
same(1, 'hashing arrays for a cache', "SET enable_memoize = on; $noted LEFT JOIN inner_side i ON i.id = o.fk AND i.c = o.c WHERE o.id > 0");
same(1, 'partitions that arrays tell', "$noted JOIN by_array i ON i.id = o.fk AND i.c = o.c WHERE o.id > 0");

# INVARIANT-98: what is tried for a row that is ahead, and fails, leaves nothing
# open, be it a relation or a query, so that what is done for an earlier row can
# make it succeed when it is its turn.
$node->safe_psql('postgres', q{
	CREATE TABLE wide (id int, x int, y int, z int GENERATED ALWAYS AS (y + 1) STORED);
	CREATE TABLE narrow (id int);
	CREATE VIEW seen AS SELECT id FROM wide;
	CREATE TABLE source AS SELECT i * 3 AS id, adbin AS tree FROM generate_series(1, 300) i, pg_attrdef WHERE adrelid = 'wide'::regclass;
	CREATE TABLE target (id int PRIMARY KEY, x text);
	INSERT INTO target SELECT i * 2, 'old' FROM generate_series(1, 500) i;
	GRANT SELECT ON source, seen TO alice;
	GRANT SELECT, INSERT ON target TO alice;
	ALTER TABLE narrow OWNER TO alice;
	CREATE FUNCTION widen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id = 3 THEN ALTER TABLE narrow ADD x int, ADD yes int; END IF; RETURN NEW; END $$;
	CREATE FUNCTION allow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN IF NEW.id = 3 THEN GRANT SELECT ON pg_rewrite TO alice; END IF; RETURN NEW; END $$});
foreach my $case ([ 'a relation', 'widen', q{CASE WHEN s.id = 3 THEN 'none' ELSE pg_get_expr(s.tree, 'narrow'::regclass) END} ],
	[ 'a query', 'allow', q{CASE WHEN s.id = 3 THEN 'none' ELSE pg_get_viewdef('seen'::regclass) END} ])
{
	my ($what, $trigger, $value) = @$case;
	same(1, "$what that an attempt leaves", "BEGIN; REVOKE SELECT ON pg_rewrite FROM PUBLIC; CREATE TRIGGER tries BEFORE INSERT ON target FOR EACH ROW EXECUTE FUNCTION $trigger(); SET ROLE alice;
		MERGE INTO target t USING source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, $value);
		RESET ROLE; SELECT count(*), min(x), max(x) FROM target WHERE x <> 'old'; SELECT count(*) FROM pg_locks WHERE relation IN ('narrow'::regclass, 'seen'::regclass) AND mode = 'AccessShareLock'; ROLLBACK");
}

$node->stop;
unlike(slurp_file($node->logfile), qr/leak|TRAP|still referenced|PANIC/, 'nothing has leaked');
done_testing();
