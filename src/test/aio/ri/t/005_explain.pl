
# Copyright (c) 2026, the pgawait authors

# EXPLAIN (ANALYZE, AIO) shows for each trigger how many rows were checked without
# a query, how many with one, and how many keys were looked up ahead; and the
# session counts the same.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = create_cold_node('explain', 'worker', conf => "session_preload_libraries = auto_explain\n");
$node->safe_psql('postgres', q{
	CREATE TABLE parent (id int, pad text);
	INSERT INTO parent SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	ALTER TABLE parent ADD PRIMARY KEY (id) WITH (fillfactor = 30);
	CREATE TABLE child (n int, p int CONSTRAINT of_child REFERENCES parent);
	CREATE INDEX ON child (p);
	CREATE TABLE parts (n int, p int CONSTRAINT of_parts REFERENCES parent) PARTITION BY HASH (n);
	CREATE TABLE part_a PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
	CREATE TABLE part_b PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
	CREATE TABLE owner (id int PRIMARY KEY);
	INSERT INTO owner SELECT generate_series(1, 100);
	CREATE TABLE owned (n int, o int CONSTRAINT cascading REFERENCES owner ON DELETE CASCADE ON UPDATE SET NULL);
	INSERT INTO owned SELECT i, i FROM generate_series(1, 100) i;
	CREATE TABLE later (id int, pad text);
	INSERT INTO later SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i ORDER BY hashint4(i);
	ALTER TABLE later ADD CONSTRAINT unique_later UNIQUE (id) WITH (fillfactor = 30) DEFERRABLE;

	-- executes a statement of its own, whose triggers are the same ones
	CREATE TABLE nesting (n int, p int CONSTRAINT of_nesting REFERENCES parent);
	CREATE FUNCTION nest() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO nesting SELECT 0, i FROM generate_series(1, 7) i;
			RETURN NULL;
		END $$;
	CREATE TRIGGER zz AFTER INSERT ON nesting FOR EACH ROW WHEN (NEW.n = 1) EXECUTE FUNCTION nest();
	VACUUM (FREEZE, ANALYZE)});

my $random = '1 + (hashint4(i) & 2147483647) % 20000';
my $direct = 'SET aio.direct_foreign_key_checks = on';
my $query = 'SET aio.direct_foreign_key_checks = off';

# What EXPLAIN shows of triggers, by constraint and table, for a statement that is rolled back.
sub triggers
{
	my ($statement, $settings) = @_;
	my ($output, $errors) = run_cold($node, "EXPLAIN (ANALYZE, AIO, FORMAT json) $statement", before => $settings);
	is($errors, '', "$statement: no error");
	my ($json) = $output =~ /^(\[.*\])$/ms;
	return { map { (join ' ', $_->{'Constraint Name'} // $_->{'Trigger Name'}, $_->{Relation}) => $_ } @{ decode_json($json)->[0]{Triggers} } };
}

# How a trigger has checked its rows.
sub checks
{
	my ($trigger) = @_;
	return join ' ', map { $trigger->{$_} // 'none' } 'Calls', 'Direct Checks', 'Queries';
}

my $insert = "INSERT INTO child SELECT i, $random FROM generate_series(1, 2000) i";
my $of_child = triggers($insert, $direct)->{'of_child child'};
is(checks($of_child), '2000 2000 0', 'no row needs a query');
cmp_ok($of_child->{'Keys Ahead'}, '>', 1000, 'most keys were looked up ahead, many together');
my ($reads) = grep { $_->{Kind} eq 'read' } @{ $of_child->{AIO} };
cmp_ok($reads->{Started}, '>', 0, 'and their pages were read');

$of_child = triggers($insert, $query)->{'of_child child'};
is(checks($of_child), '2000 0 2000', 'each row needs a query');
cmp_ok($of_child->{'Keys Ahead'}, '>', 100, 'keys were looked up ahead, one by one');

$of_child = triggers($insert, "$query; SET aio.lookup_ahead = 0")->{'of_child child'};
is($of_child->{'Keys Ahead'}, 0, 'nothing was looked up ahead');

$of_child = triggers("INSERT INTO child SELECT i, CASE WHEN i > 100 THEN i END FROM generate_series(1, 500) i", $direct)->{'of_child child'};
is(checks($of_child), '500 400 0', 'null needs no check');

my $both = triggers("INSERT INTO parts SELECT i, i FROM generate_series(1, 500) i", $direct);
is_deeply([ sort keys %$both ], [ 'of_parts part_a', 'of_parts part_b' ], 'triggers of both partitions');
is($both->{'of_parts part_a'}{'Direct Checks'} + $both->{'of_parts part_b'}{'Direct Checks'}, 500, 'have checked each row');

my $deleted = triggers('DELETE FROM parent WHERE id < 100', $direct);
is(checks($deleted->{'of_child parent'}), '99 99 0', 'a row that is deleted');
is(checks($deleted->{'of_parts parent'}), '99 0 99', 'whose key may be in a partitioned table');
is(checks(triggers('DELETE FROM owner', $direct)->{'cascading owner'}), '100 0 100', 'CASCADE is a query');
is(checks(triggers('UPDATE owner SET id = id + 1000', $direct)->{'cascading owner'}), '100 0 100', 'and so is SET NULL');

my $later = triggers('UPDATE later SET id = id + 1', '')->{'unique_later later'};
cmp_ok($later->{'Keys Ahead'}, '>', 100, 'keys that are checked later were looked up ahead');
is(checks($later), "$later->{Calls} 0 0", 'and need no query');

my $nesting = triggers('INSERT INTO nesting SELECT i, i FROM generate_series(1, 50) i', $direct);
is(checks($nesting->{'of_nesting nesting'}), '50 50 0', 'those of a statement in a trigger are its own');
is(checks($nesting->{'zz nesting'}), '1 none none', 'a trigger of a user checks nothing');

# other formats, and when it is shown
sub explained
{
	my ($options, $settings) = @_;
	my ($output) = run_cold($node, "EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF, TIMING OFF, SUMMARY OFF $options) $insert", before => $settings);
	return $output;
}
like(explained(', AIO', $direct), qr/^Trigger for constraint of_child: calls=2000\n  Checks: direct=2000 ahead=\d+\n  AIO read: started=\d+ .*\n/m, 'text');
like(explained(', AIO', "$query; SET aio.lookup_ahead = 0"), qr/: calls=2000\n  Checks: queries=2000\n/, 'text, with queries');
like(explained(', AIO, FORMAT yaml', $direct), qr/\n +Calls: 2000(?:\.0)? *\n +Direct Checks: 2000 *\n +Queries: 0 *\n +Keys Ahead: \d+ *\n +AIO: *\n +- Kind: /, 'YAML');
like(explained(', AIO, FORMAT xml', $direct), qr|<Direct-Checks>2000</Direct-Checks>\s*<Queries>0</Queries>\s*<Keys-Ahead>\d+</Keys-Ahead>\s*<AIO>|, 'XML');
unlike(explained('', $direct), qr/Checks:|AIO/, 'only if it is asked for');

# auto_explain: of both statements, that in the trigger, which ends first, and the one that has fired it
my $log = -s $node->logfile;
run_cold($node, 'INSERT INTO nesting SELECT i, i FROM generate_series(1, 50) i', before => q{
	SET auto_explain.log_min_duration = 0;
	SET auto_explain.log_analyze = on;
	SET auto_explain.log_triggers = on;
	SET auto_explain.log_nested_statements = on;
	SET aio.explain = on}, after => 'RESET auto_explain.log_min_duration');
my @logged = slurp_file($node->logfile, $log) =~ /constraint of_nesting: time=[\d.]+ calls=(\d+)\n\s+Checks: direct=(\d+)/g;
is("@logged", '7 7 50 50', 'auto_explain shows each its own');

# the session's own counters
my ($counted) = run_cold($node, "SELECT aio_session_stats_reset(); $insert; SELECT direct, queries, ahead > 1000 FROM aio_session_checks(); "
	  . "SELECT aio_session_stats_reset(); DELETE FROM owner; SELECT direct, queries, ahead FROM aio_session_checks()", before => $direct);
like($counted, qr/^\n?2000\|0\|t\n\n0\|100\|0$/m, 'the session counts');

# Where each check finds a row that refers to the one that is gone, and so is made by a query in any case, few are tried
# without: each of these scans the index of the rows that refer.
my $scans = "SELECT pg_stat_get_xact_numscans('moving_p_idx'::regclass)";
my $moved = $node->safe_psql('postgres', qq{
	CREATE TABLE place (id int PRIMARY KEY);
	CREATE TABLE moving (p int REFERENCES place DEFERRABLE INITIALLY DEFERRED);
	INSERT INTO place SELECT generate_series(1, 1000);
	INSERT INTO moving SELECT generate_series(1, 1000);
	CREATE INDEX ON moving (p);
	BEGIN;
	DELETE FROM place;
	INSERT INTO place SELECT generate_series(1, 1000);
	SET CONSTRAINTS ALL IMMEDIATE;
	$scans;
	COMMIT;
	BEGIN;
	DELETE FROM moving;
	SELECT FROM aio_session_stats_reset();
	DELETE FROM place;
	SET CONSTRAINTS ALL IMMEDIATE;
	SELECT direct FROM aio_session_checks();
	COMMIT});
my ($refused, $direct_again) = grep { /\d/ } split /\n/, $moved;
cmp_ok($refused, '<', 50, 'checks that are always in vain are not made for long');
cmp_ok($refused, '>=', 8, 'but some are');
cmp_ok($direct_again, '>', 100, 'and they are made again where they are not');

$node->stop;

done_testing();
