
# Copyright (c) 2026, the pgawait authors

# What SECURITY.md says: who sees what, what a role without privileges can set,
# and what it can use up.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "max_connections = 10\nio_max_concurrency = 16\nshared_buffers = 8MB\ndebug_io_direct = '@{[ direct_io_works() ? 'data' : '' ]}'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION aio;
	CREATE EXTENSION postgres_fdw;
	CREATE ROLE tenant LOGIN;
	CREATE TABLE secrets (key text PRIMARY KEY, other text, id int);
	CREATE INDEX ON secrets (other);
	CREATE INDEX ON secrets (id);
	GRANT INSERT ON secrets TO tenant;
	CREATE SCHEMA own AUTHORIZATION tenant});

sub as_tenant
{
	my ($sql) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $sql, extra_params => [ '-U', 'tenant' ], on_error_stop => 0);

	return ($out, $err);
}

# Nothing of what is inserted, or of the statement, is in a view.
$node->safe_psql('postgres', q{
	SET application_name = 'secret-name';
	INSERT INTO secrets SELECT 'secret-' || i, 'secret-' || md5(i::text), i FROM generate_series(1, 20000) i;
	SELECT pg_stat_force_next_flush()});
my @views = qw(pg_stat_aio pg_stat_aio_latency pg_stat_aio_depth pg_stat_aio_relation pg_aio_tasks);
my ($out, $err) = as_tenant(join ' UNION ALL ', map { "(SELECT '$_' || count(*) || coalesce(string_agg(v::text, ' '), '') FROM $_ v)" } @views);
is($err, '', 'everybody may look at the views');
like($out, qr/secrets_other_idx/, 'which tell of what happened');
unlike($out, qr/secret-/, 'but not of keys, names, or statements');

# The rights of a function are those of its caller.
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = 'aio' AND (p.prosecdef OR p.proleakproof)}), 0, 'no function of the extension has rights of its own');
foreach my $function ('aio_stat_reset()', "aio_stat_reset_index('secrets_pkey'::regclass)")
{
	($out, $err) = as_tenant("SELECT $function");
	like($err, qr/ERROR:  permission denied for function/, "$function is not for everybody");
}
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION aio_stat_reset() TO tenant');
($out, $err) = as_tenant('SELECT aio_stat_reset(); SELECT aio_session_stats_reset()');
is($err, '', 'unless it has been granted; and a session is its own');

# Who may set what: a parameter that is new needs a decision.
my %user = map { ("aio.$_" => 1) } qw(await_foreign_inserts await_index_inserts batch_unique_keys bulk_flush_after direct_foreign_key_checks explain
  foreign_read_ahead index_batch_memory lookup_ahead max_tasks parallel_insert pipelined_commits quick_io_time
  debug_delay_completions debug_lookups debug_rows_before_batch debug_seed debug_spill debug_suspend);
my %server = map { ("aio.$_" => 1) } qw(backup_buffers debug_queue effective_io_method preallocation_size wal_syncs wal_write_ahead write_behind write_buffers);
foreach my $row (split /\n/, $node->safe_psql('postgres', q{SELECT name, context FROM pg_settings WHERE name LIKE 'aio.%'}))
{
	my ($name, $context) = split /\|/, $row;

	ok($user{$name} ? $context eq 'user' : $server{$name} && $context =~ /sighup|postmaster|internal/, "$name: $context");
	next if $user{$name};
	($out, $err) = as_tenant("SET $name = DEFAULT");
	like($err, qr/ERROR:  parameter "$name" cannot be changed/, "$name cannot be set by a session");
}
($out, $err) = as_tenant('SET aio.mine = 1');
like($err, qr/ERROR:  invalid configuration parameter name "aio.mine"/, 'nobody can add to them');

# Who may insert, but not read, does not read keys from error messages.
foreach my $settings ('', 'SET aio.batch_unique_keys = on;', 'SET aio.batch_unique_keys = on; SET aio.index_batch_memory = 64;', 'SET aio.await_index_inserts = off;')
{
	($out, $err) = as_tenant("$settings INSERT INTO secrets SELECT 'guess-' || i, i::text, i FROM generate_series(1, 3000) i UNION ALL SELECT 'secret-17', '', 0");
	like($err, qr/ERROR:  duplicate key value violates unique constraint "secrets_pkey"/, "a duplicate key ($settings)");
	unlike($err, qr/DETAIL|17|Key/, 'no more than that is told');
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM secrets}), 20000, 'and nothing is inserted');

# Servers are reached with a password of the role's own, as always.
my ($host, $port) = ($node->host, $node->port);
$node->safe_psql('postgres', qq{
	GRANT USAGE ON FOREIGN DATA WRAPPER postgres_fdw TO tenant;
	SET ROLE tenant;
	CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname 'postgres', batch_size '100', async_capable 'true');
	CREATE USER MAPPING FOR tenant SERVER loopback OPTIONS (user 'postgres');
	CREATE FOREIGN TABLE own.secrets (key text, other text, id int) SERVER loopback OPTIONS (schema_name 'public')});
foreach my $statement (q{INSERT INTO own.secrets SELECT i, i, i FROM generate_series(1, 1000) i}, 'SELECT count(*) FROM own.secrets', 'SELECT key FROM (SELECT key FROM own.secrets UNION ALL SELECT key FROM own.secrets) s ORDER BY 1')
{
	($out, $err) = as_tenant("SET aio.await_foreign_inserts = on; $statement");
	like($err, qr/ERROR:  password or GSSAPI delegated credentials required/, "not without: $statement");
}

# The most that a role can ask for leaves others what they need: however many
# tasks it wants, those under way are bounded by half of its AIO handles.
my $rows = "$PostgreSQL::Test::Utils::tmp_check/rows";
append_to_file($rows, join '', map { sprintf "%08d-%s\n", ($_ * 7919) % 100003, 'x' x 30 } 1 .. 30000);
$node->safe_psql('postgres', q{CREATE TABLE own.t (a text, b text, c text); ALTER TABLE own.t OWNER TO tenant});
$node->safe_psql('postgres', "CREATE INDEX ON own.t ($_)") foreach qw(a b c reverse(a) md5(b));
my $hostile = q{
	SET aio.max_tasks = 1024;
	SET aio.index_batch_memory = '2147483647kB';
	SET aio.bulk_flush_after = 0;
	SET aio.batch_unique_keys = on;
	SET effective_io_concurrency = 1000};
my @sessions = map { $node->background_psql('postgres', extra_params => [ '-U', 'tenant' ]) } 1 .. 5;
$_->query_safe($hostile) foreach @sessions;
$_->query_until(qr/begun/, "\\echo begun\nINSERT INTO own.t SELECT md5((i * random())::text), md5(random()::text), md5(random()::text) FROM generate_series(1, 30000) i;\n") foreach @sessions;
my $active = q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'tenant' AND state = 'active'};
is($node->safe_psql('postgres', qq{INSERT INTO secrets VALUES ('mine', 'mine', 1); SELECT count(*) FROM secrets; DELETE FROM secrets WHERE key = 'mine'; SELECT ($active) > 0}), "20001\nt", 'others go on, while they work');
$_->query_safe('SELECT 1') foreach @sessions;
$node->safe_psql('postgres', 'GRANT pg_read_all_stats TO tenant');
my $memory = $sessions[0]->query_safe(q{SELECT sum(total_bytes) < 64 * 1024 * 1024 FROM pg_backend_memory_contexts});
is($memory, 't', 'memory is taken as it is needed, and given back');
$_->quit foreach @sessions;
is($node->safe_psql('postgres', 'SELECT count(*) FROM own.t'), 150000, 'all of it is there');

# How many tasks there were at once, with a task for each entry.
($out, $err) = as_tenant("$hostile; SET aio.debug_rows_before_batch = 1000000; EXPLAIN (ANALYZE, AIO, FORMAT JSON) INSERT INTO own.t SELECT md5((i * random())::text), md5(random()::text), md5(random()::text) FROM generate_series(1, 2000) i");
my ($tasks) = grep { $_->{Kind} eq 'task' } @{ decode_json($out)->[0]{Plan}{AIO} };
cmp_ok($tasks->{Started}, '>', 2000, 'there were many tasks');
cmp_ok($tasks->{'Max In Flight'}, '>', 1, 'several at once');
cmp_ok($tasks->{'Max In Flight'}, '<=', 8, 'but no more than half of the AIO handles');

# How much memory a session had at most, in which all index entries together take
# twice as much as a session has otherwise.
SKIP:
{
	skip 'no /proc', 2 unless -e "/proc/$$/status" && slurp_file("/proc/$$/status") =~ /VmHWM/;
	skip 'a sanitizer keeps memory', 2 if $ENV{ASAN_OPTIONS};
	my $session = $node->background_psql('postgres', extra_params => [ '-U', 'tenant' ]);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my %peak;

	foreach my $limit (qw(1MB 1GB))
	{
		$session->query_safe("SET aio.index_batch_memory = '$limit'; SET aio.debug_rows_before_batch = 0; INSERT INTO own.t SELECT md5(i::text), md5(i::text), md5(i::text) FROM generate_series(1, 150000) i");
		($peak{$limit}) = slurp_file("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	}
	$session->quit;
	cmp_ok($peak{'1MB'}, '<', 40 * 1024, 'entries take no more memory than they may');
	cmp_ok($peak{'1GB'}, '>', $peak{'1MB'} + 16 * 1024, 'though they would');
}

# The file of statistics is for the server's account.
$node->stop;
my ($file) = glob($node->data_dir . '/pg_stat/pgawait-*.stat');
ok(defined $file, 'statistics have been written');
is((stat $file)[2] & 077, 0, 'others cannot read them');

# What is not one does no harm.
foreach my $garbage ('', 'x', "\xff" x 100000, substr(slurp_file($file), 0, 100), slurp_file($file) . 'more', scalar reverse slurp_file($file))
{
	unlink $file;
	append_to_file($file, $garbage);
	ok($node->start(fail_ok => 1), 'the server starts with garbage of ' . length($garbage) . ' bytes in it');
	is($node->safe_psql('postgres', q{SELECT count(*) >= 0 FROM pg_stat_aio}), 't', 'and has statistics');
	$node->stop;
	($file) = glob($node->data_dir . '/pg_stat/pgawait-*.stat');
}
unlike(slurp_file($node->logfile), qr/TRAP|PANIC|signal/, 'nothing unusual in the log');
done_testing();
