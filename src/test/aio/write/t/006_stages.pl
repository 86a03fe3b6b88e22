# Copyright (c) 2026, the pgawait authors

# The server dies while a backend's write of a dirty page is at one of its
# stages: copied but not submitted; written but not completed.  And the page is
# changed again at the latter, after which the server dies, too.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

if (($ENV{enable_injection_points} // '') ne 'yes')
{
	plan skip_all => 'server is built without injection points';
}
my %methods = io_methods();
plan skip_all => $methods{io_uring} if $methods{io_uring};

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	io_method = io_uring
	aio.wal_write_ahead = 0
	debug_io_direct = data
	shared_buffers = 2MB
	io_max_concurrency = 32
	bgwriter_lru_maxpages = 0
	autovacuum = off
	checkpoint_timeout = 1h
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION injection_points; CREATE TABLE elsewhere (filler text STORAGE PLAIN)');

# Have a backend stop at a point while it writes pages of a table, and crash.
sub crash_at
{
	my ($point, $table, $update) = @_;
	my ($control, $actor) = map { $node->background_psql('postgres') } 1 .. 2;

	# all that complete I/O must have loaded the point, too
	warm_for_injection_points($control, $actor);

	$actor->query_safe("CREATE TABLE $table (id int, n int, filler text STORAGE PLAIN) WITH (fillfactor = 45); CHECKPOINT");
	$actor->query_safe("INSERT INTO $table SELECT i, 0, repeat('x', 3000) FROM generate_series(1, 100) i");

	# what it will read is in memory: it is to be stopped in a write
	$actor->query_safe("INSERT INTO elsewhere SELECT repeat('x', 3000) FROM generate_series(1, 5) i");
	my $file = $actor->query_safe("SELECT pg_relation_filepath('$table')");
	$actor->query_safe("SELECT injection_points_set_local(), injection_points_attach('$point', 'wait'), injection_points_load('$point')");
	$control->query_safe("SELECT injection_points_load('$point')");
	$actor->query_until(qr/begun/, "\\echo begun\nINSERT INTO elsewhere SELECT repeat('x', 3000) FROM generate_series(1, 400) i;\n");
	wait_until($control, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = '$point'");
	my $states = $control->query_safe("SELECT string_agg(DISTINCT state, ',') FROM pg_aios WHERE operation = 'writev'");
	if ($update)
	{
		my $block = $control->query_safe("SELECT (regexp_match(target_desc, '^blocks? (\\d+)'))[1] FROM pg_aios WHERE operation = 'writev' AND target_desc LIKE '%\"$file\"' ORDER BY state <> 'COMPLETED_IO' LIMIT 1");
		$control->query_safe("UPDATE $table SET n = 1 WHERE ctid = '($block,1)'");
	}
	$_->{run}->pump_nb foreach ($control, $actor);
	$node->stop('immediate');
	$_->{run}->finish foreach ($control, $actor);
	$node->start;
	is( $node->safe_psql('postgres', "SELECT count(*), sum(n), count(*) FILTER (WHERE filler = repeat('x', 3000)) FROM $table"),
		"100|$update|100", "$table: nothing is lost in a crash at $point");
	return $states;
}

crash_at('aio-page-copied', 'copied', 0);
like(crash_at('aio-process-completion-before-shared', 'written', 0), qr/COMPLETED_IO/, 'a write had been carried out, and was not complete');
crash_at('aio-process-completion-before-shared', 'changed', 1);

$node->stop;
command_ok([ 'pg_checksums', '--check', '-D' => $node->data_dir ], 'checksums are right');
done_testing();
