
# Copyright (c) 2026, the pgawait authors

# EXPLAIN (ANALYZE, AIO): what each node has started and waited for, in every
# format, and in the log by auto_explain.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();

# The usage of a node, by kind of future.
sub usage
{
	my ($node) = @_;
	return { map { $_->{Kind} => $_ } @{ $node->{AIO} // [] } };
}

foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	my $node = PostgreSQL::Test::Cluster->new("main_$method");
	$node->init;
	$node->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		debug_io_direct = '@{[ direct_io_works() ? 'data' : '' ]}'
		shared_buffers = 4MB
		max_connections = 10
		io_max_concurrency = 32
		bgwriter_lru_maxpages = 0
		autovacuum = off
		max_parallel_workers_per_gather = 0
		checkpoint_timeout = 1h
		session_preload_libraries = auto_explain
		log_statement = none
	});
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION aio;
		CREATE TABLE t (a uuid, b uuid);
		CREATE INDEX t_a ON t (a);
		CREATE INDEX t_b ON t (b);
		INSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 60000);
		CHECKPOINT});
	my $insert = 'INSERT INTO t SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, 500)';
	my $explained = sub {
		my ($statement, $format, $options) = @_;
		return $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, FORMAT $format" . ($options // ', AIO') . ") $statement");
	};

	# the numbers are those that the statistics have
	my $plan = decode_json($explained->('SELECT count(*) FROM t', 'json'))->[0]{Plan};
	my $scan = $plan->{Plans}[0];
	my $reads = usage($scan)->{read};
	is($scan->{'Node Type'}, 'Seq Scan', "$method: a scan");
	is($reads->{Bytes}, 8192 * $scan->{'Shared Read Blocks'}, "$method: its reads are those of BUFFERS");
	cmp_ok($reads->{Started}, '<=', $scan->{'Shared Read Blocks'}, "$method: in fewer I/Os");
	cmp_ok($reads->{'Max In Flight'}, '>=', $reads->{'Average In Flight'}, "$method: some were in flight together");
	is_deeply(usage($plan)->{read}, $reads, "$method: a node includes those below it");

	my $modify = decode_json($explained->($insert, 'json'))->[0]{Plan};
	my $usage = usage($modify);
	is($usage->{task}{Started}, 1000, "$method: a task for each row and index");
	is($usage->{task}{Started}, $usage->{task}{Suspended} + $usage->{task}{'Completed Inline'}, "$method: suspended or not");
	cmp_ok($usage->{read}{Suspended}, '>', 0, "$method: by reads");
	cmp_ok($usage->{read}{Waited}, '>', 0, "$method: for which the session waited");
	cmp_ok($usage->{read}{'Wait Time'}, '>', 0, "$method: for some time");
	is($modify->{Plans}[0]{AIO}, undef, "$method: the node that makes the rows reads nothing");

	# an error in the middle, caught by the statement
	my $caught = $node->safe_psql('postgres', q{
		CREATE FUNCTION fails(i int) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM count(*) / 0 FROM t WHERE a::text > i::text;
			RETURN 0;
		EXCEPTION WHEN division_by_zero THEN
			RETURN 1;
		END $$;
		BEGIN;
		SET LOCAL auto_explain.log_min_duration = 0;
		SET LOCAL auto_explain.log_analyze = on;
		SET LOCAL auto_explain.log_nested_statements = on;
		SET LOCAL aio.explain = on;
		SELECT sum(fails(i)) FROM generate_series(1, 5) i;
		EXPLAIN (ANALYZE, COSTS OFF, FORMAT json) SELECT fails(1), count(*) FROM t;
		COMMIT});
	my ($json) = $caught =~ /^5\n(\[.*\])$/s;
	$scan = decode_json($json)->[0]{Plan}{Plans}[0];
	is(usage($scan)->{read}{Bytes}, 8192 * $scan->{'Shared Read Blocks'},
		"$method: nodes that an error has left are not counted");

	# nor do they pile up
	is($node->safe_psql('postgres', q{
		BEGIN;
		SET LOCAL auto_explain.log_min_duration = '1d';
		SET LOCAL auto_explain.log_analyze = on;
		SET LOCAL auto_explain.log_nested_statements = on;
		SET LOCAL aio.explain = on;
		DO $$
		BEGIN
			FOR i IN 1 .. 20000 LOOP
				BEGIN
					PERFORM 1 / x FROM generate_series(0, 0) x;
				EXCEPTION WHEN division_by_zero THEN NULL;
				END;
			END LOOP;
		END $$;
		SELECT total_bytes < 4000000 FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
		COMMIT}), 't', "$method: they do not pile up");

	# workers
	my $parallel = decode_json($node->safe_psql('postgres', q{
		SET max_parallel_workers_per_gather = 2;
		SET parallel_setup_cost = 0;
		SET min_parallel_table_scan_size = 0;
		EXPLAIN (ANALYZE, AIO, BUFFERS, COSTS OFF, FORMAT json) SELECT count(*) FROM t}))->[0]{Plan};
	my ($gather, @nodes) = grep { $_->{'Node Type'} eq 'Gather' } $parallel, @{ $parallel->{Plans} };
	for (my $below = $parallel; $below; $below = $below->{Plans}[0])
	{
		is(usage($below)->{read}{Bytes}, 8192 * $below->{'Shared Read Blocks'}, "$method: reads of workers, too, in $below->{'Node Type'}");
	}
	cmp_ok($gather->{'Workers Launched'}, '>', 0, "$method: there were workers");

	# the session's counters can be reset meanwhile
	my $reset = decode_json($explained->('SELECT aio_session_stats_reset() FROM t LIMIT 1', 'json'))->[0]{Plan};
	is(usage($reset)->{task}, undef, "$method: a reset is no use");

	# triggers, after all nodes
	$node->safe_psql('postgres', q{
		CREATE TABLE parent (id uuid PRIMARY KEY, filler text);
		INSERT INTO parent SELECT md5(i::text)::uuid, repeat('x', 200) FROM generate_series(1, 30000) i;
		CREATE TABLE child (id uuid REFERENCES parent)});
	my $refer = 'INSERT INTO child SELECT md5(i::text)::uuid FROM generate_series(1, 2000) i';
	my $triggers = { AIO => decode_json($explained->($refer, 'json'))->[0]{'AFTER Triggers'}{AIO} };
	cmp_ok(usage($triggers)->{read}{Started}, ">", 0, "$method: triggers read");
	cmp_ok(usage($triggers)->{lookup}{Started} // 0, $method eq 'sync' ? '==' : '>', 0, "$method: and look up ahead");
	like($explained->($refer, 'text'), qr/^AFTER Triggers:\n  AIO /m, "$method: triggers, in text");
	unlike($explained->($insert, 'text'), qr/AFTER Triggers/, "$method: if there are any");

	# other formats
	like($explained->($insert, 'text'), qr/^Insert on t .*\n(?:  .*\n)*  AIO task: started=1000 (?:inline=\d+ )?suspended=\d+ max in flight=\d+\n  AIO read: started=\d+ (?:inline=\d+ )?suspended=\d+ waited=\d+ time=[\d.]+ max in flight=\d+ avg=[\d.]+\n/, "$method: text");
	like($explained->($insert, 'yaml'), qr/\n    AIO: \n      - Kind: "task"\n        Started: 1000\n/, "$method: YAML");
	like($explained->($insert, 'xml'), qr|<AIO>\s*<Kind>\s*<Kind>task</Kind>\s*<Started>1000</Started>|, "$method: XML");

	# when it is shown
	unlike($explained->($insert, 'text', ''), qr/AIO/, "$method: only if it is asked for");
	unlike($explained->($insert, 'text', ', AIO OFF'), qr/AIO/, "$method: not if it is not wanted");
	$node->append_conf('postgresql.conf', 'aio.explain = on');
	$node->reload;
	like($explained->($insert, 'text', ''), qr/AIO read/, "$method: always, if aio.explain is on");
	unlike($explained->($insert, 'text', ', AIO OFF'), qr/AIO read/, "$method: but where it is not wanted");
	unlike($node->safe_psql('postgres', 'EXPLAIN SELECT count(*) FROM t'), qr/AIO/, "$method: nor where nothing is executed");
	my ($ret, $out, $err) = $node->psql('postgres', 'EXPLAIN (AIO) SELECT 1');
	like($err, qr/ERROR:  EXPLAIN option AIO requires ANALYZE/, "$method: which is an error if it is asked for");

	# auto_explain
	my $log = -s $node->logfile;
	$node->safe_psql('postgres', "SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_format = json; $insert");
	my ($logged) = slurp_file($node->logfile, $log) =~ /plan:\n(\t\{\n.*?\n\t\})\n/s;
	is(usage(decode_json($logged)->{Plan})->{task}{Started}, 1000, "$method: auto_explain shows it");
	$node->stop;
}
done_testing();
