# Copyright (c) 2026, the pgawait authors

# An incremental backup has what was written after a table was cut short,
# whatever order the directory of WAL summaries has, and on a new timeline; and
# it does not have what was cut off.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "summarize_wal = on\nautovacuum = off\nwal_keep_size = 1GB\n");
$primary->start;

# Of these tables each is cut short in the WAL of one summary, and grows in that
# of the next.  The last grows on the next timeline.
my $ntables = 8;

sub grow
{
	my ($node, $table) = @_;
	$node->safe_psql('postgres', "INSERT INTO $table SELECT i, repeat('x', 500) FROM generate_series(1, 1000) i");
}

foreach my $i (1 .. $ntables)
{
	$primary->safe_psql('postgres', "CREATE TABLE t$i (i int, filler text)");
	grow($primary, "t$i");
}
# And this one will have pages at its end that nobody has used.
$primary->safe_psql('postgres', 'CREATE TABLE unused (i int, filler text)');
grow($primary, 'unused');
my $full = $primary->backup_dir . '/full';
$primary->backup('full');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'full', has_streaming => 1);
$standby->start;

foreach my $i (1 .. $ntables)
{
	# another page stays, as all blocks of what becomes empty would be sent
	$primary->safe_psql('postgres', "DELETE FROM t$i WHERE ctid >= '(1,0)'");
	$primary->safe_psql('postgres', "VACUUM t$i");
	is($primary->safe_psql('postgres', "SELECT pg_relation_size('t$i')"), 8192, "t$i has been cut short");
	$primary->safe_psql('postgres', 'CHECKPOINT');
	grow($primary, "t$i") if $i < $ntables;
}
$primary->safe_psql('postgres', q{DELETE FROM unused WHERE ctid >= '(1,0)'});
$primary->safe_psql('postgres', 'VACUUM unused');
$primary->safe_psql('postgres', q{INSERT INTO unused SELECT -i, repeat('y', 500) FROM generate_series(1, 300) i});
my $file = $primary->data_dir . '/' . $primary->safe_psql('postgres', "SELECT pg_relation_filepath('unused')");
my $npages = $primary->safe_psql('postgres', "SELECT pg_relation_size('unused') / 8192");
$primary->stop;
# what a server leaves that crashes after it has extended a table
open my $handle, '>>:raw', $file or die "$file: $!";
print $handle "\0" x (20 * 8192);
close $handle;
$primary->start;
is($primary->safe_psql('postgres', "SELECT pg_relation_size('unused') / 8192"), $npages + 20,
	'there are pages that nobody has used');
$primary->safe_psql('postgres', 'CHECKPOINT');

# What an incremental backup of this server has, together with the full one.
sub check
{
	my ($node, $name) = @_;
	my $some = $node->backup_dir . "/$name";
	my $combined = $node->backup_dir . "/$name.combined";
	my $query = join ' UNION ALL ', map { "SELECT '$_', count(*), sum(i) FROM $_" } 'unused', map { "t$_" } 1 .. $ntables;
	my $restored = PostgreSQL::Test::Cluster->new("restored_$name");

	$node->command_ok(
		[ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--pgdata' => $some,
			'--incremental' => "$full/backup_manifest" ],
		"$name: an incremental backup can be taken");
	$node->command_ok([ 'pg_combinebackup', '--no-sync', '--output' => $combined, $full, $some ],
		"$name: it can be combined with the full one");
	my @files = glob("$some/base/*/INCREMENTAL.*");
	ok(@files > 0, "$name: some files are incremental");
	$restored->init_from_backup($node, "$name.combined");
	$restored->start;
	is($restored->safe_psql('postgres', $query), $node->safe_psql('postgres', $query), "$name: nothing is missing");
	$restored->stop;
}

check($primary, 'same');

$primary->wait_for_catchup($standby);
$standby->promote;
grow($standby, "t$ntables");
check($standby, 'promoted');

done_testing();
