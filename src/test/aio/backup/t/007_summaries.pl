# Copyright (c) 2026, the pgawait authors

# An incremental backup has what was written after a table was cut short,
# whatever order the directory of WAL summaries has, and on a new timeline; and
# neither it nor a chain of such backups has what was cut off.

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
# So will these, of which a chain of backups is taken: pages of the first are cut
# off and are there again before the first incremental backup, of the second they
# are cut off before it, and there again before the next.
foreach my $table ('chain1', 'chain2')
{
	$primary->safe_psql('postgres', "CREATE TABLE $table (i int, filler text)");
	grow($primary, $table);
	# then most of its pages stay as they are
	$primary->safe_psql('postgres', "VACUUM $table");
}
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

# Have these tables pages at their ends as a server leaves them that crashes
# after it has extended a table.
sub add_unused
{
	my ($node, @tables) = @_;
	my %size = map { $_ => $node->safe_psql('postgres', "SELECT pg_relation_size('$_')") } @tables;
	my %file = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } @tables;

	$node->stop;
	foreach my $table (@tables)
	{
		open my $handle, '>>:raw', $file{$table} or die "$file{$table}: $!";
		print $handle "\0" x (20 * 8192);
		close $handle;
	}
	$node->start;
	foreach my $table (@tables)
	{
		is($node->safe_psql('postgres', "SELECT pg_relation_size('$table')"),
			$size{$table} + 20 * 8192,
			"$table has pages that nobody has used");
	}
	$node->safe_psql('postgres', 'CHECKPOINT');
}

foreach my $table ('chain1', 'chain2')
{
	$primary->safe_psql('postgres', "DELETE FROM $table WHERE ctid >= '(40,0)'");
	$primary->safe_psql('postgres', "VACUUM $table");
	is($primary->safe_psql('postgres', "SELECT pg_relation_size('$table') / 8192"), 40, "$table has been cut short");
}
add_unused($primary, 'unused', 'chain1');

# Take an incremental backup of this server, after that one.
sub back_up
{
	my ($node, $name, $previous) = @_;
	my $directory = $node->backup_dir . "/$name";

	$node->command_ok(
		[ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--pgdata' => $directory,
			'--incremental' => "$previous/backup_manifest" ],
		"$name: an incremental backup can be taken");
	return $directory;
}

# What these backups make together is what this server has, to the length of its
# files, and as its own manifest says.
sub check_combined
{
	my ($node, $name, $tables, @backups) = @_;
	my $combined = $node->backup_dir . "/$name";
	my $query = join ' UNION ALL ',
	  map { "SELECT '$_', count(*), sum(i), pg_relation_size('$_') FROM $_" } @$tables;
	my $restored = PostgreSQL::Test::Cluster->new("restored_$name");

	$node->command_ok([ 'pg_combinebackup', '--no-sync', '--output' => $combined, @backups ],
		"$name: backups can be combined");
	$node->command_ok([ 'pg_verifybackup', '--no-parse-wal', $combined ], "$name: they have a manifest");
	$restored->init_from_backup($node, $name);
	$restored->start;
	is($restored->safe_psql('postgres', $query), $node->safe_psql('postgres', $query),
		"$name: nothing is missing, and nothing is back");
	$restored->stop;
	return $combined;
}

# What an incremental backup of this server has, together with the full one.
sub check
{
	my ($node, $name) = @_;
	my $some = back_up($node, $name, $full);

	ok(glob("$some/base/*/INCREMENTAL.*"), "$name: some files are incremental");
	check_combined($node, "${name}_combined", [ 'unused', map { "t$_" } 1 .. $ntables ], $full, $some);
}

check($primary, 'same');

# A chain, combined at once and step by step.
my @chain = ('chain1', 'chain2');
my $first = back_up($primary, 'first', $full);
add_unused($primary, 'chain2');
my $second = back_up($primary, 'second', $first);
my $one = check_combined($primary, 'one', ['chain1'], $full, $first);
check_combined($primary, 'one_step', \@chain, $one, $second);
my $steps = check_combined($primary, 'two', \@chain, $full, $first, $second);
$primary->safe_psql('postgres', q{UPDATE chain1 SET i = -i WHERE ctid = '(0,1)'});
$primary->safe_psql('postgres', 'CHECKPOINT');
my $third = back_up($primary, 'third', $second);
check_combined($primary, 'three', \@chain, $full, $first, $second, $third);
check_combined($primary, 'step', \@chain, $steps, $third);
foreach my $table (@chain)
{
	my $path = $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$table')") =~ s/(\d+)$/INCREMENTAL.$1/r;
	ok(-e "$_/$path", "$table is sent in part") foreach ($first, $second, $third);
}

$primary->wait_for_catchup($standby);
$standby->promote;
grow($standby, "t$ntables");
check($standby, 'promoted');

done_testing();
