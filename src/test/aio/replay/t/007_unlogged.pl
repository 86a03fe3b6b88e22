# Copyright (c) 2026, the pgawait authors

# Recovery ends with empty unlogged relations, also if it has found files of
# theirs without knowing whose they are: in a base backup that was taken while
# an index was built, and after a crash that has lost the end of a transaction.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "wal_writer_delay = 10s\nautovacuum = off\n");
$primary->start;

# The build of an index waits.  The index has a file, which does not tell yet
# that it is unlogged.
$primary->safe_psql(
	'postgres', q{
	CREATE FUNCTION waits(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	  'BEGIN PERFORM pg_advisory_lock_shared(1); RETURN i; END';
	CREATE UNLOGGED TABLE tab AS SELECT 1 AS i;
});
my $blocker = $primary->background_psql('postgres');
$blocker->query_safe('SELECT pg_advisory_lock(1)');
my $builder = $primary->background_psql('postgres');
$builder->query_until(qr/begun/, "\\echo begun\nBEGIN;\nCREATE INDEX tab_idx ON tab (waits(i));\n");
$primary->poll_query_until('postgres',
	"SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'");
$primary->backup('backup');
$blocker->query_safe('SELECT pg_advisory_unlock(1)');
$builder->query_safe('COMMIT');
$builder->quit;
$blocker->quit;

my $index = $primary->safe_psql('postgres', "SELECT pg_relation_filepath('tab_idx')");
my $backup = $primary->backup_dir . "/backup/$index";
ok(-e $backup && !-e "${backup}_init",
	'the backup has a file of the index, but not the one that says that it is unlogged');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
$standby->promote;
my $query = 'SET enable_seqscan = off; SELECT i FROM tab WHERE waits(i) > 0';
is($standby->safe_psql('postgres', $query), '', 'a server that is made of it recovers, with an empty table');
$standby->safe_psql('postgres', 'INSERT INTO tab VALUES (2)');
is($standby->safe_psql('postgres', $query), 2, 'which can be used, as can its index');
$standby->stop;

# A transaction has made an unlogged table, and aborts, which is not in the WAL
# when the server crashes.
my $session = $primary->background_psql('postgres');
$session->query_safe('BEGIN');
$session->query_safe('CREATE UNLOGGED TABLE gone (i int)');
my $file = $primary->data_dir . '/' . $session->query_safe("SELECT pg_relation_filepath('gone')");
$primary->safe_psql('postgres', 'CREATE TABLE is_flushed (i int)');
$session->query_safe('ROLLBACK');
$primary->stop('immediate');
$session->{run}->finish;
ok(-e $file && !-e "${file}_init", 'what is left is a file that does not say that it is unlogged');
ok($primary->start(fail_ok => 1), 'the server recovers');
is($primary->safe_psql('postgres', "SELECT to_regclass('gone') IS NULL"), 't', 'without the table');

done_testing();
