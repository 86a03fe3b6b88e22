# Copyright (c) 2026, the pgawait authors

# What pg_combinebackup and pg_rewind write: with the files synced while others
# are written, it is what they write without; each file and directory is on disk
# when they exit; errors end them.
#
# The library that is preloaded is that of 002_client.pl.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/..";

use AioWatch;
use File::Compare;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'programs write as upstream does where there is no Linux' if $^O ne 'linux';

# beside the backups: files are linked
my $dir = PostgreSQL::Test::Utils::tempdir();
my $watched = "$dir/watched";

# Run a program with what watch.c is told.
sub watch
{
	my ($watch, @command) = @_;

	unlink $watched;
	local @ENV{ 'LD_PRELOAD', 'WATCH_LOG', keys %$watch } = ($ENV{AIO_WATCH}, $watched, values %$watch);
	my ($out, $err);
	IPC::Run::run(\@command, '>', \$out, '2>', \$err);
	return ($? >> 8, $err);
}

# Which files are in one directory only, or differ, but for those whose content
# has times.
sub differences
{
	my @tops = @_;
	my %files = map { $_ => 1 } map { below($_) } @tops;
	my ($one, $two) = @tops;
	return join ' ', grep {
		!m{^/(backup_manifest|backup_label|global/pg_control)$}
		  && (-d "$one$_" ? !-d "$two$_" : compare("$one$_", "$two$_") != 0)
	} sort keys %files;
}

# A program ends with an error, which it reports as without us.
sub fails
{
	my ($name, $fault, $path, $error, @command) = @_;
	my ($status, $err) = watch({ WATCH_FAIL => $fault, WATCH_PATH => $path }, @command);
	is($status, 1, "$name: it fails");
	like($err, qr/^$command[0]: error: could not $error$/m, "$name: and says why");
	return;
}

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
	autovacuum = off
	checkpoint_timeout = 1h
	fsync = off
	summarize_wal = on
	wal_log_hints = on
	wal_keep_size = 320MB
});
$node->start;

# more than may be in flight, and not a multiple of anything that matters
$node->safe_psql(
	'postgres', q{
	CREATE TABLE large (i int, filler text STORAGE PLAIN);
	INSERT INTO large SELECT i, repeat(md5(i::text), 250) FROM generate_series(1, 3001) i;
	CREATE TABLE unchanged (LIKE large INCLUDING STORAGE);
	INSERT INTO unchanged SELECT * FROM large LIMIT 1501;
	VACUUM FREEZE;
	CHECKPOINT;
});
my $large = $node->safe_psql('postgres', "SELECT pg_relation_filepath('large')");
my $odd = $node->data_dir . '/odd';

# sizes around those that are written and synced at once; no relations
foreach my $size (0, 1, 262143, 262144, 262145, 1048576, 12345678)
{
	append_to_file("$odd.$size", 'x' x $size);
}

# pg_combinebackup

my ($full, $changed) = map { $node->backup_dir . "/$_" } qw(full changed);
$node->command_ok([ 'pg_basebackup', '--pgdata' => $full, '--no-sync', '--checkpoint' => 'fast' ], 'a full backup');
$node->safe_psql('postgres', 'UPDATE large SET filler = filler WHERE i % 5 = 0');
$node->command_ok(
	[
		'pg_basebackup', '--pgdata' => $changed, '--no-sync', '--checkpoint' => 'fast',
		'--incremental' => "$full/backup_manifest"
	],
	'an incremental one');

my @combine = ('pg_combinebackup', $full, $changed, '--output');
is((watch({}, @combine, "$dir/reference", '--no-sync'))[0], 0, 'pg_combinebackup --no-sync');
is_deeply((unsynced($watched, "$dir/reference"))[1]->{'sync_file_range main'}, undef, 'it leaves writing to the kernel');
command_ok([ 'pg_verifybackup', '--no-parse-wal', "$dir/reference" ], 'pg_verifybackup is content');

foreach my $case (
	[ 'synced', {} ],
	[ 'without support of the file system', { WATCH_WITHOUT => 1 } ],
	[ 'linked', {}, '--link' ],
	[ 'copied by the kernel', {}, '--copy-file-range' ],
	[ 'syncfs', {}, '--sync-method' => 'syncfs' ])
{
	my ($what, $watch, @options) = @$case;
	my $name = "pg_combinebackup, $what";
	my $target = "$dir/combined";

	my ($status, $err) = watch($watch, @combine, $target, @options);
	is($status, 0, "$name: succeeds") or diag $err;
	my ($unsynced, $count) = unsynced($watched, $target);
	my $by_thread = $count->{'fsync thread'} // 0;
	my @files = grep { -f "$target$_" } below($target);
	if ($what eq 'syncfs' || $what eq 'copied by the kernel')
	{
		is($by_thread, 0, "$name: no thread syncs");
		is($count->{'fallocate main'}, undef, "$name: nothing is preallocated");
	}
	else
	{
		# small files for which it has no time are left for the end, as are links
		cmp_ok($by_thread, '>=', $what eq 'linked' ? 1 : 100, "$name: a thread syncs");
		cmp_ok($count->{'fsync main'} + $by_thread, '<=', @files + 60, "$name: nothing is synced twice");
	}
	is($unsynced, '', "$name: all is synced after it was written") unless $what eq 'syncfs';
	if ($what eq 'synced')
	{
		cmp_ok($count->{'fallocate main'}, '>=', 1, "$name: what is put together is preallocated");
		foreach my $file ($large, 'odd.12345678')
		{
			my $cached = cached("$target/$file");

		  SKIP:
			{
				skip "not known what of $file is cached", 1 unless defined $cached;
				is($cached, 0, "$name: $file is not cached");
			}
			is((stat "$target/$file")[12] * 512 <= (-s _) + 65536, 1, "$name: $file has no more space than it needs");
		}
	}
	is(differences("$dir/reference", $target), '', "$name: all files are as without a thread");
	command_ok([ 'pg_verifybackup', '--no-parse-wal', $target ], "$name: pg_verifybackup is content");
	system_or_bail('rm', '-rf', $target);
}

# The thread leaves enough descriptors for whatever else is opened, even if there
# are few.
foreach my $limit (24, 32, 48, 64)
{
	my @with_few = ('sh', '-c', "ulimit -n $limit && exec \"\$\@\"", 'sh');
	my $name = "with $limit descriptors";
	my $target = "$dir/few";

	command_ok([ @with_few, @combine, $target ], "$name: pg_combinebackup succeeds");
	is(differences("$dir/reference", $target), '', "$name: and all files are as with more");
	system_or_bail('rm', '-rf', $target);
	foreach my $jobs (1, 3)
	{
		$node->command_ok([ @with_few, 'pg_basebackup', '--checkpoint' => 'fast', '--jobs' => $jobs, '--pgdata' => $target ],
			"$name: pg_basebackup --jobs=$jobs succeeds");
		command_ok([ 'pg_verifybackup', '--no-parse-wal', $target ], "$name: pg_verifybackup is content");
		system_or_bail('rm', '-rf', $target);
	}
}

foreach my $case (
	[ 'write', $large, 'write( to)?', 'No space left on device' ],
	[ 'write', 'odd.12345678', 'write to', 'No space left on device' ],
	[ 'write', 'pg_ident.conf', 'write to', 'No space left on device' ],
	[ 'sync_file_range', $large, 'write', 'Link has been severed' ],
	[ 'sync_file_range', 'odd.12345678', 'write to', 'Link has been severed' ],
	[ 'close', $large, 'close', 'Input/output error' ],
	[ 'close', 'odd.12345678', 'close', 'Input/output error' ],
	[ 'fsync', $large, 'fsync', 'Input/output error' ],
	[ 'fsync', 'odd.12345678', 'fsync', 'Input/output error' ],
	[ 'fsync', 'pg_ident.conf', 'fsync', 'Input/output error' ],
	[ 'fsync', 'odd.0', 'fsync', 'Input/output error' ])
{
	my ($fault, $file, $failed, $why) = @$case;
	my $name = "pg_combinebackup, $fault of " . ($file eq $large ? 'a relation' : $file) . ' fails';
	fails($name, $fault, "/combined/$file", "$failed file \".*/combined/\Q$file\E(_fsm|_vm)?\": $why", @combine, "$dir/combined");
	ok(!-e "$dir/combined", "$name: nothing is left");
}

# pg_rewind: a standby that was promoted has a new table, has changed an old one,
# and has files of its own.

my $standby = PostgreSQL::Test::Cluster->new('standby');
$node->backup('standby');
$standby->init_from_backup($node, 'standby', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby, 'replay');
$standby->promote;
$node->safe_psql('postgres', "UPDATE large SET filler = '' WHERE i % 7 = 0; CHECKPOINT;");
$node->stop;
$standby->safe_psql(
	'postgres', q{
	UPDATE large SET filler = upper(filler) WHERE i % 3 = 0;
	CREATE TABLE more (LIKE large INCLUDING STORAGE);
	INSERT INTO more SELECT * FROM large;
	CHECKPOINT;
});
foreach my $size (0, 1, 262143, 262144, 262145, 1048576, 12345678)
{
	append_to_file($standby->data_dir . "/even.$size", 'y' x $size);
}
my $more = $standby->safe_psql('postgres', "SELECT pg_relation_filepath('more')");
my $target = "$dir/target";

# What pg_rewind does to a copy of what was the primary.
sub rewind
{
	my ($watch, @options) = @_;
	push @options, '--source-pgdata' => $standby->data_dir unless grep { $_ eq '--source-server' } @options;
	system_or_bail('rm', '-rf', $target);
	system_or_bail('cp', '-a', $node->data_dir, $target);
	return watch($watch, 'pg_rewind', '--target-pgdata' => $target, @options);
}

# by a connection, while the source runs
foreach my $case ([ 'synced', {} ], [ 'without support of the file system', { WATCH_WITHOUT => 1 } ])
{
	my ($what, $watch) = @$case;
	my $name = "pg_rewind by a connection, $what";
	my ($status, $err) = rewind($watch, '--source-server' => $standby->connstr('postgres'));
	is($status, 0, "$name: succeeds") or diag $err;
	my ($unsynced, $count) = unsynced($watched, $target);
	is($unsynced, '', "$name: all is synced after it was written");
	cmp_ok($count->{'fsync thread'}, '>=', 5, "$name: by a thread");
	is(compare($_, $target . substr($_, length $standby->data_dir)), 0, "$name: " . s{.*/}{}r)
	  foreach glob($standby->data_dir . '/even.*'), $standby->data_dir . "/$more";
}

$standby->stop;
is((rewind({}, '--no-sync'))[0], 0, 'pg_rewind --no-sync');
is_deeply((unsynced($watched, $target))[1]->{'sync_file_range main'}, undef, 'it leaves writing to the kernel');
rename $target, "$dir/rewound" or die;

foreach my $case (
	[ 'synced', {} ],
	[ 'without support of the file system', { WATCH_WITHOUT => 1 } ],
	[ 'syncfs', {}, '--sync-method' => 'syncfs' ],
	[ 'dry', {}, '--dry-run' ])
{
	my ($what, $watch, @options) = @$case;
	my $name = "pg_rewind, $what";
	my ($status, $err) = rewind($watch, @options);
	is($status, 0, "$name: succeeds") or diag $err;
	my ($unsynced, $count) = unsynced($watched, $target);
	my $by_thread = $count->{'fsync thread'} // 0;
	if ($what eq 'syncfs' || $what eq 'dry')
	{
		is($by_thread, 0, "$name: no thread syncs");
	}
	else
	{
		is($unsynced, '', "$name: all is synced after it was written");
		cmp_ok($by_thread, '>=', 10, "$name: by a thread");
		my $n = grep { -f "$target$_" } below($target);
		cmp_ok($count->{'fsync main'} + $by_thread, '<=', $n + 60, "$name: and not again");
	}
	if ($what eq 'dry')
	{
		is(differences($node->data_dir, $target), '', "$name: nothing is changed");
		next;
	}
	is(differences("$dir/rewound", $target), '', "$name: all files are as without a thread");
}

# the server is going to read what has been copied
my $cached = cached("$target/even.12345678");

SKIP:
{
	skip 'not known what is cached', 1 unless defined $cached;
	rewind({});
	is(cached("$target/even.12345678") >= 12345678, 1, 'pg_rewind drops nothing from the page cache');
}

foreach my $case (
	[ 'write', $more, 'write', 'No space left on device' ],
	[ 'sync_file_range', $more, 'write', 'Link has been severed' ],
	[ 'close', $more, 'close target', 'Input/output error' ],
	[ 'close', 'even.262143', 'close target', 'Input/output error' ],
	[ 'fsync', $more, 'fsync', 'Input/output error' ],
	[ 'fsync', $large, 'fsync', 'Input/output error' ],
	[ 'fsync', 'even.262143', 'fsync', 'Input/output error' ],
	[ 'fsync', 'even.0', 'fsync', 'Input/output error' ])
{
	my ($fault, $file, $failed, $why) = @$case;
	my $which = $file eq $more ? 'a new relation' : $file eq $large ? 'an old one' : $file;
	system_or_bail('rm', '-rf', $target);
	system_or_bail('cp', '-a', $node->data_dir, $target);
	fails("pg_rewind, $fault of $which fails",
		$fault, "/target/$file", "$failed file \".*/target/\Q$file\E(_fsm|_vm)?\": $why",
		'pg_rewind', '--target-pgdata' => $target, '--source-pgdata' => $standby->data_dir);
}

done_testing();
