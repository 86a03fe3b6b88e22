
# Copyright (c) 2026, the pgawait authors

# INVARIANT-101: what the owner of a table has written is called when its
# rows are checked, as whoever has changed them, and not when checks are looked up
# ahead, by whoever commits.  Constants of an index's expressions and predicate are
# folded whenever the session has forgotten the index.

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

my $node = PostgreSQL::Test::Cluster->new('roles');
$node->init;
$node->append_conf('postgresql.conf', "io_method = $method\nautovacuum = off");
$node->start;
my $can_force = $node->safe_psql('postgres', "SELECT count(*) FROM pg_settings WHERE name = 'debug_assertions' AND setting = 'on'");
plan skip_all => 'lookups can be forced only in a build with assertions' unless $can_force;

$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE ROLE mallory;
	CREATE SCHEMA mallory AUTHORIZATION mallory;
	SET ROLE mallory;
	CREATE TABLE mallory.called (by text);
	CREATE FUNCTION mallory.note() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO mallory.called VALUES (current_user); END $$;
	CREATE FUNCTION mallory.zero() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF current_user <> 'mallory' THEN PERFORM mallory.note(); END IF; RETURN 0; END $$;
	CREATE TABLE mallory.plain (x int UNIQUE DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE mallory.built_in (x int, EXCLUDE USING btree ((x + 0) WITH =) DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE mallory.expressions (x int, EXCLUDE USING btree ((x + mallory.zero()) WITH =) DEFERRABLE INITIALLY DEFERRED);
	CREATE TABLE mallory.predicate (x int, EXCLUDE USING btree (x WITH =) WHERE (x > mallory.zero()) DEFERRABLE INITIALLY DEFERRED);
	CREATE FUNCTION mallory.change() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$
	DECLARE name text;
	BEGIN
		FOREACH name IN ARRAY ARRAY['plain', 'built_in', 'expressions', 'predicate'] LOOP
			EXECUTE format('INSERT INTO mallory.%I SELECT (i + 1) / 2 FROM generate_series(1, 100) i', name);
			EXECUTE format('DELETE FROM mallory.%I WHERE ctid IN (SELECT max(ctid) FROM mallory.%I GROUP BY x)', name, name);
		END LOOP;
		RETURN 1;
	END $$;
	RESET ROLE;
	CREATE TABLE own (x int, EXCLUDE USING btree ((x + mallory.zero()) WITH =) DEFERRABLE INITIALLY DEFERRED);
	TRUNCATE mallory.called});

sub lookups
{
	return $node->safe_psql('postgres', q{
		SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'});
}

# Commit what these commands do, with lookups ahead, after the session has
# forgotten some indexes.  Returns who has called functions meanwhile.
sub committed
{
	my ($commands, @indexes) = @_;
	my $session = $node->background_psql('postgres');

	$node->safe_psql('postgres', 'TRUNCATE mallory.plain, mallory.built_in, mallory.expressions, mallory.predicate, own');
	$session->query_safe("SET aio.debug_lookups = 64; BEGIN; $commands");
	$node->safe_psql('postgres', "ALTER INDEX $_ SET (fillfactor = 80)") foreach @indexes;
	$session->query_safe('TRUNCATE mallory.called; COMMIT');
	$session->quit;
	return $node->safe_psql('postgres', q{SELECT count(*), string_agg(DISTINCT "by", ' ') FROM mallory.called});
}

my @indexes = qw(mallory.expressions_expr_excl mallory.predicate_x_excl);
my $before = lookups();
is(committed('SELECT mallory.change()', @indexes), '0|', 'functions of a table are not called by whoever commits');
my $of_others = lookups() - $before;
is(committed('SET ROLE mallory; SELECT mallory.change(); RESET ROLE', @indexes), '0|', 'nor if he has been its owner before');
is(committed('INSERT INTO own SELECT (i + 1) / 2 FROM generate_series(1, 100) i; DELETE FROM own WHERE ctid IN (SELECT max(ctid) FROM own GROUP BY x)', 'own_expr_excl'), '0|', 'nor by himself, for rows that are gone');
$before = lookups();
is(committed('SET ROLE mallory; SELECT mallory.change()', @indexes), '0|', 'whose owner commits');
cmp_ok(lookups() - $before, '>', $of_others, 'looks up ahead what is checked');

$node->stop;
unlike(slurp_file($node->logfile), qr/leak|TRAP|still referenced|PANIC/, 'nothing has leaked');
done_testing();
