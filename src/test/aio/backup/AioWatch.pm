# Copyright (c) 2026, the pgawait authors

# What tests of programs that write files share: which files there are, which of
# them have been synced, by the log of watch.c, and what is in the page cache.

package AioWatch;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use File::Find;
use IPC::Run;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(below unsynced cached);

# Files and directories below one: their names relative to it.
sub below
{
	my ($top) = @_;
	my @found;
	find({ no_chdir => 1, wanted => sub { push @found, substr($_, length $top) } }, $top);
	return @found;
}

# By the log of watch.c: what is below these directories and has not been synced
# since it was written or made; and how often each thread has done what.
sub unsynced
{
	my ($watched, @tops) = @_;
	my (%synced, %count);
	foreach (-e $watched ? split(/\n/, slurp_file($watched)) : ())
	{
		my ($operation, $thread, $inode) = split / /;
		$synced{$inode} = 0 if $operation eq 'write';
		$synced{$inode} = 1 if $operation eq 'fsync';
		$count{"$operation $thread"}++;
	}
	my @unsynced;
	foreach my $top (@tops)
	{
		foreach my $file (below($top))
		{
			next if -l "$top$file";
			my ($device, $inode) = stat "$top$file" or die;
			push @unsynced, $file unless $synced{"$device:$inode"};
		}
	}
	return (join(' ', @unsynced), \%count);
}

# How much of a file is in the page cache; undef if nobody knows.
sub cached
{
	my ($file) = @_;
	my $out = '';
	my $known = eval { IPC::Run::run([ 'fincore', '--bytes', '--noheadings', '--output' => 'RES', $file ], '>', \$out, '2>', \my $err) };
	my ($type) = run_command([ 'stat', '--file-system', '--format=%T', $file ]);
	return $known && $type =~ /^(ext|xfs)/ ? int $out : undef;
}

1;
