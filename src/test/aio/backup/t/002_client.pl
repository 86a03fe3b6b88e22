# Copyright (c) 2026, the pgawait authors

# What pg_basebackup writes: it is what the server has; each file and directory
# is on disk when it exits, and large files are not in the page cache any more;
# errors end it.
#
# A library that is preloaded tells which files were synced after they had been
# written.  What a loss of power leaves is tested where the account may mount
# file systems by FUSE, or on the disk that AIO_FAULT_DISK names, which
# tools/fault-disk has mounted with metadata=strict.
# See ../faults.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/..";

use AioWatch;
use Cwd qw(realpath);
use File::Basename qw(dirname);
use File::Compare;
use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'pg_basebackup writes as upstream does where there is no Linux' if $^O ne 'linux';

my $fault_disk = realpath(dirname(__FILE__)) . '/../../../../../tools/fault-disk';
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $watched = "$dir/watched";
my $tar = $ENV{TAR} || 'tar';

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf(
	'postgresql.conf', q{
	autovacuum = off
	checkpoint_timeout = 1h
	bgwriter_lru_maxpages = 0
	fsync = off
});
$node->start;
mkdir "$dir/space" or die;
$node->safe_psql('postgres', "CREATE TABLESPACE space LOCATION '$dir/space'");

# more than may be in flight, and not a multiple of anything that matters
$node->safe_psql(
	'postgres', q{
	CREATE TABLE large (filler text STORAGE PLAIN);
	INSERT INTO large SELECT repeat(md5(i::text), 250) FROM generate_series(1, 3001) i;
	CREATE TABLE elsewhere TABLESPACE space AS SELECT * FROM large LIMIT 1501;
	CREATE TABLE empty ();
	VACUUM FREEZE;
	CHECKPOINT;
});
my $large = $node->safe_psql('postgres', "SELECT pg_relation_filepath('large')");
my $elsewhere = $node->safe_psql('postgres', "SELECT pg_relation_filepath('elsewhere')");
my $odd = $node->data_dir . '/odd';

# sizes around that of a piece, which are those of no relation
foreach my $size (0, 1, 262143, 262144, 262145, 1048576, 12345678)
{
	append_to_file("$odd.$size", 'x' x $size);
}

# What the account of this test may do with a disk that fails.
sub control
{
	my ($disk, @command) = @_;
	my ($out, $err) = run_command([ $fault_disk, 'control', $disk, @command ]);
	BAIL_OUT("fault-disk control @command: $out $err") unless $out =~ /^OK/;
	return $out;
}

# Run pg_basebackup with what watch.c is told.
sub backup
{
	my ($target, $format, $watch, @options) = @_;

	local @ENV{ 'LD_PRELOAD', keys %$watch } = ($ENV{AIO_WATCH}, values %$watch)
	  if $watch;
	my @command = (
		'pg_basebackup', '--pgdata' => $target, '--format' => $format, '--checkpoint' => 'fast',
		'--dbname' => $node->connstr('postgres'), '--no-password', @options);
	push @command, '--tablespace-mapping' => "$dir/space=$target.space" if $format eq 'plain';
	my ($out, $err);
	IPC::Run::run(\@command, '>', \$out, '2>', \$err);
	return ($? >> 8, $err);
}

# Which files of the server are missing in a backup, or different.  It has not
# written since but to those that are not compared.
sub differences
{
	my ($copy, $space) = @_;
	my @different;
	foreach ([ $node->data_dir, $copy ], [ "$dir/space", $space ])
	{
		my ($from, $to) = @$_;
		foreach my $file (below($from))
		{
			next unless -f "$from$file";
			next if $file =~ m{^/(pg_wal|pg_stat|pg_stat_tmp|pg_replslot|pg_subtrans|pg_dynshmem|pg_notify|pg_snapshots|pg_serial)/}
			  or $file =~ m{^/(postmaster\.|global/pg_control|backup_label|current_logfiles)|pg_internal\.init};
			push @different, $file if compare("$from$file", "$to$file") != 0;
		}
	}
	return join ' ', @different;
}

sub unpack_tar
{
	my ($from, $to) = @_;
	mkdir $_ or die foreach $to, "$to.space";
	foreach my $archive (glob "$from/*.tar")
	{
		my $place = $archive =~ m{/base\.tar$} ? $to : $archive =~ m{/pg_wal\.tar$} ? "$to/pg_wal" : "$to.space";
		system_or_bail($tar, 'xf', $archive, '-C', $place);
	}
}

# Is what is in a backup that of the server?
sub check_content
{
	my ($target, $format, $name) = @_;
	my ($copy, $space) = ($target, "$target.space");
	command_ok([ 'pg_verifybackup', '--no-parse-wal', $target ], "$name: pg_verifybackup is content");
	if ($format eq 'tar')
	{
		($copy, $space) = ("$dir/unpacked", "$dir/unpacked.space");
		unpack_tar($target, $copy);
	}
	is(differences($copy, $space), '', "$name: all files are those of the server");
	system_or_bail('rm', '-rf', "$dir/unpacked", "$dir/unpacked.space");
	return;
}

foreach my $format ('plain', 'tar')
{
	foreach my $case ([ 'synced', {} ], [ 'with -R', {}, '--write-recovery-conf' ], [ 'with WAL', {}, '--wal-method' => 'fetch' ],
		[ 'without support of the file system', { WATCH_WITHOUT => 1 } ],
		[ 'syncfs', {}, '--sync-method' => 'syncfs' ], [ 'not synced', {}, '--no-sync' ])
	{
		my ($what, $watch, @options) = @$case;
		my $name = "$format, $what";
		my $target = "$dir/copy";
		my @tops = $format eq 'plain' ? ($target, "$target.space") : ($target);

		unlink $watched;
		my ($status, $err) = backup($target, $format, { WATCH_LOG => $watched, %$watch }, @options);
		is($status, 0, "$name: pg_basebackup succeeds") or diag $err;
		my ($unsynced, $count) = unsynced($watched, @tops);
		if ($what eq 'not synced' || $what eq 'syncfs')
		{
			is($count->{'fsync thread'}, undef, "$name: a thread syncs nothing");
			is($count->{'fsync main'}, undef, "$name: nor does anybody") if $what eq 'not synced';
		}
		else
		{
			is($unsynced, '', "$name: all is synced after it was written");
			my $by_thread = $count->{'fsync thread'} // 0;

			# small files for which it has no time are left for the end
			cmp_ok($by_thread, '>=', $format eq 'plain' ? 100 : 2, "$name: by a thread");

			# directories, WAL, and the manifest, which is renamed
			my $nfiles = 0;
			find(sub { $nfiles++ if -f }, @tops);
			cmp_ok($count->{'fsync main'} + $by_thread, '<=', $nfiles + ($format eq 'plain' ? 60 : 8), "$name: and not again");
		}
		if ($what eq 'without support of the file system')
		{
			ok(!$count->{'sync_file_range main'}, "$name: nothing is written back");
		}
		else
		{
			cmp_ok($count->{'sync_file_range main'}, '>=', 20, "$name: large files are written back meanwhile");
			cmp_ok($count->{'fallocate main'}, '>=', 5, "$name: and preallocated") if $format eq 'plain';
		}

		foreach my $file ($format eq 'plain' ? ($large, $elsewhere, 'odd.12345678') : ('base.tar'))
		{
			my $cached = cached("$target/$file");

		  SKIP:
			{
				skip "not known what of $file is cached", 1 unless defined $cached;

				# a program that has exited may not have dropped the end
				cmp_ok($cached, '<=', $what =~ /^synced|^with / ? 0 : 17 * 1024 * 1024, "$name: $file is not cached");
			}
			is((stat "$target/$file")[12] * 512 <= (-s _) + 65536, 1, "$name: $file has no more space than it needs");
		}
		check_content($target, $format, $name) unless $what eq 'with -R';
		system_or_bail('rm', '-rf', $target, "$target.space");
	}

	# Errors, of the main thread and the other one.  What is written when a small
	# file is closed fails then.
	foreach my $case (
		[ 'write', 'large', 'write to', 'No space left on device' ],
		[ 'write', 'small', 'close', 'No space left on device' ],
		[ 'sync_file_range', 'large', 'write to', 'Link has been severed' ],
		[ 'close', 'large', 'close', 'Input/output error' ],
		[ 'close', 'small', 'close', 'Input/output error' ],
		[ 'fsync', 'large', 'fsync', 'Input/output error' ],
		[ 'fsync', 'small', 'fsync', 'Input/output error' ])
	{
		my ($fault, $size, $failed, $why) = @$case;
		next if $format eq 'tar' && $size eq 'small';
		my $file = $format eq 'tar' ? 'base.tar' : $size eq 'large' ? 'odd.12345678' : 'pg_ident.conf';
		my $name = "$format, $fault of $file fails";
		my ($status, $err) = backup("$dir/copy", $format, { WATCH_FAIL => $fault, WATCH_PATH => "/copy/$file" });
		is($status, 1, "$name: pg_basebackup does");
		like($err, qr/^pg_basebackup: error: could not $failed file ".*\/copy\/\Q$file\E": $why$/m, "$name: and says why");
		like($err, qr/^pg_basebackup: removing data directory/m, "$name: and clears up");
		ok(!-e "$dir/copy", "$name: nothing is left");
		system_or_bail('rm', '-rf', "$dir/copy", "$dir/copy.space");
	}
}

# A disk that is full, fails, and loses power.
my $disk = $ENV{AIO_FAULT_DISK};
my $mounted = 0;
if (!$disk && -r '/dev/fuse' && -w '/dev/fuse')
{
	$disk = "$dir/disk";
	$mounted = system($fault_disk, 'mount', $disk, '-o', 'metadata=strict') == 0;
	$disk = undef unless $mounted;
}

SKIP:
{
	skip 'no FUSE', 1 unless $disk;

	# what another test has left on it may be there
	my @targets = map { "$disk/$_" } qw(unsynced unsynced.space plain plain.space tar failing failing.space);
	system_or_bail('rm', '-rf', @targets);
	mkdir $_ or die "$_: $!" foreach @targets;
	control($disk, 'sync');

	foreach my $format ('plain', 'tar')
	{
		my $file = $format eq 'plain' ? "failing/$large" : 'failing/base.tar';
		foreach my $case (
			# the one who receives WAL meets it as well, and may be the first
			[ 'quota 25000000', qr/.*: No space left on device/ ],
			[ "error EIO fsync file=$file count=1", qr/fsync file ".*": Input\/output error/ ],
			[ "error EIO fsync data=lost file=$file count=1", qr/fsync file ".*": Input\/output error/ ],
			[ "error EIO write after=7 file=$file count=1", qr/write to file ".*": Input\/output error/ ])
		{
			my ($fault, $error) = @$case;
			control($disk, $fault);
			my ($status, $err) = backup("$disk/failing", $format);
			control($disk, $_) foreach 'quota none', 'remove all';
			is($status, 1, "$format, $fault: pg_basebackup fails");
			like($err, qr/^pg_basebackup: error: could not $error/m, "$format, $fault: and says why");
			is(join(' ', grep { $_ } below("$disk/failing")), '', "$format, $fault: nothing is left");

			# as it says, pg_basebackup leaves this to the user
			system_or_bail('sh', '-c', "rm -rf $disk/failing.space/*");
		}
	}

	is((backup("$disk/unsynced", 'plain', undef, '--no-sync'))[0], 0, 'pg_basebackup --no-sync on a disk that loses power');
	is((backup("$disk/plain", 'plain'))[0], 0, 'pg_basebackup in plain format on a disk that loses power');
	is((backup("$disk/tar", 'tar'))[0], 0, 'pg_basebackup in tar format on a disk that loses power');
	like(control($disk, 'power-loss', 'torn=4096', 'keep=0'), qr/^OK/, 'power is lost');
	$disk .= '.files';

	# the links lead to what has no power
	foreach my $link (glob "$disk/{plain,unsynced}/pg_tblspc/*")
	{
		my $to = readlink($link) =~ s{^.*/}{$disk/}r;
		unlink $link or die;
		symlink $to, $link or die;
	}
	check_content("$disk/plain", 'plain', 'plain, after a loss of power');
	check_content("$disk/tar", 'tar', 'tar, after a loss of power');
	isnt(differences("$disk/unsynced", "$disk/unsynced.space"), '', 'what was not synced is lost');
	system($fault_disk, 'umount', "$dir/disk") if $mounted;
}

$node->stop;
done_testing();
