# Copyright (c) 2026, the pgawait authors

# A standby writes its pages without waiting, too: restartpoints, a crash, and
# promotion.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..";

use AioLoad;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my %methods = io_methods();
foreach my $method (grep { !$methods{$_} } sort keys %methods)
{
	my $primary = PostgreSQL::Test::Cluster->new("${method}_primary");
	$primary->init(allows_streaming => 1);
	$primary->append_conf(
		'postgresql.conf', qq{
		io_method = $method
		debug_io_direct = data
		shared_buffers = 1MB
		io_max_concurrency = 32
		autovacuum = off
		checkpoint_timeout = 1h
	});
	$primary->start;
	$primary->backup('backup');
	my $standby = PostgreSQL::Test::Cluster->new("${method}_standby");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->start;

	$primary->safe_psql(
		'postgres', q{
		CREATE EXTENSION amcheck;
		CREATE TABLE t (id int, a uuid DEFAULT gen_random_uuid());
		CREATE INDEX t_id ON t (id);
		CREATE INDEX t_a ON t (a);
	});
	my $load = sub { $primary->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 20000)') };
	$load->();
	$primary->safe_psql('postgres', 'CHECKPOINT');
	$load->();
	$primary->wait_for_replay_catchup($standby);
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$load->();
	$primary->wait_for_replay_catchup($standby);
	$standby->stop('immediate');
	$standby->start;
	$load->();
	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', 'SELECT count(*) FROM t'), 80000, "$method: the standby has all rows after a restartpoint and a crash");
	$primary->stop;
	$standby->promote;
	$standby->safe_psql('postgres', 'INSERT INTO t SELECT generate_series(1, 20000)');
	$standby->safe_psql('postgres', 'CHECKPOINT');
	$standby->stop('immediate');
	$standby->start;
	is( $standby->safe_psql(
			'postgres', q{SELECT count(*) FROM t;
				SELECT count(bt_index_parent_check(c, true, true)) FROM unnest('{t_id,t_a}'::regclass[]) c;
				SELECT count(*) FROM verify_heapam('t')}),
		"100000\n2\n0", "$method: and after its promotion, heap and indexes agree");
	$standby->stop;
	command_ok([ 'pg_checksums', '--check', '-D' => $standby->data_dir ], "$method: checksums of the standby");
}
done_testing();
