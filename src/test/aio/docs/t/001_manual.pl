
# Copyright (c) 2026, the pgawait authors

# The SQL in the manual's examples is executed, in the order in which it stands
# there, in one session: each <programlisting> is one.

use strict;
use warnings FATAL => 'all';

use FindBin;
use Cwd qw(realpath);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# this file is reached by a link from upstream's tree
my ($root) = realpath("$FindBin::RealBin/../..") =~ m{^(.*)/src/test/aio$};
my $manual = slurp_file("$root/doc/aio.sgml");
my @examples = map { s/&gt;/>/gr =~ s/&lt;/</gr =~ s/&amp;/&/gr } $manual =~ m{<programlisting>\n(.*?)</programlisting>}sg;
cmp_ok(scalar @examples, '>', 8, 'the manual has examples');

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->start;

# what the examples take for granted
my $csv = "$PostgreSQL::Test::Utils::tmp_check/measurements.csv";
append_to_file($csv, join '', map { "$_,sensor $_,0.$_\n" } 1 .. 2000);
$node->safe_psql('postgres', q{
	CREATE TABLE measurements (id int, sensor text, value float8);
	CREATE INDEX ON measurements (id);
	CREATE INDEX ON measurements (sensor);
	CREATE TABLE orders (id int, ordered date);
	INSERT INTO orders SELECT i, date '2025-01-01' + i % 700 FROM generate_series(1, 10000) i;
	CREATE TABLE items (id int, u1 uuid, u2 uuid);
	CREATE INDEX items_u1 ON items (u1);
	CREATE INDEX items_u2 ON items (u2);
	CREATE TABLE arrivals AS SELECT i AS id, gen_random_uuid() AS u1, gen_random_uuid() AS u2 FROM generate_series(1, 5000) i;
	CREATE TABLE parts (id int PRIMARY KEY);
	CREATE TABLE suppliers (id int PRIMARY KEY);
	CREATE TABLE lines (part int REFERENCES parts, supplier int REFERENCES suppliers);
	INSERT INTO parts SELECT generate_series(1, 1000);
	INSERT INTO suppliers SELECT generate_series(1, 1000);
	CREATE TABLE deliveries AS SELECT i AS part, i AS supplier FROM generate_series(1, 1000) i;
});

my $session = $node->background_psql('postgres', on_error_stop => 0);
foreach my $example (@examples)
{
	my ($name) = $example =~ /(\S.*)/;
	$session->{stderr} = '';
	my $out = $session->query($example =~ s{/tmp/measurements\.csv}{$csv}gr);
	unlike($session->{stderr}, qr/ERROR|FATAL|WARNING/, "no error: $name");
	isnt($out, '', "a result: $name") if $example =~ /^(?:SELECT|EXPLAIN)/ && $example !~ /pg_aio|_blocked|_relation/;
}

# what the text says of their results
$session->query_safe('SELECT pg_stat_force_next_flush()');
like($session->query('SELECT string_agg(kind, $$ $$ ORDER BY kind) FROM (SELECT DISTINCT kind FROM pg_stat_aio)'), qr/task.*wal_flush/, 'and it is counted');
is($session->query_safe(q{SELECT count(*) FROM pg_wait_events WHERE name IN ('AioIoUringExecution', 'AioIoCompletion', 'DataFileWrite', 'WalWrite', 'WalSync', 'AioWalGroupCommit')}),
	6, 'wait events have these names');
$session->quit;
$node->stop;
done_testing();
