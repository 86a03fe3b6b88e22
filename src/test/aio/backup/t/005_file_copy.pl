# Copyright (c) 2026, the pgawait authors

# CREATE DATABASE ... STRATEGY FILE_COPY: the copy is what the template is, and
# on disk; of large files only the end stays in the page cache; an error of the
# disk that was met before the files are synced is an error.
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

plan skip_all => 'files are copied as by upstream where there is no Linux' if $^O ne 'linux';

my $node = PostgreSQL::Test::Cluster->new('main');
my $watched = $node->basedir . '/watched';
$node->init;
$node->append_conf(
	'postgresql.conf', q{
	autovacuum = off
	fsync = on
	data_sync_retry = on
	log_min_messages = log
});

# Restart the server with what watch.c is told.
sub start
{
	my (%watch) = @_;

	$node->stop if $node->{_pid};
	local @ENV{ 'LD_PRELOAD', keys %watch } = ($ENV{AIO_WATCH}, values %watch);
	$node->start;
	return;
}

# What differs between the files of two databases.
sub differences
{
	my @dirs = map { $node->data_dir . "/base/$_" } @_;
	return join ' ', grep { compare("$dirs[0]/$_", "$dirs[1]/$_") != 0 }
	  grep { !/^(\.|pg_internal\.init$)/ } slurp_dir($dirs[0]);
}

start(WATCH_LOG => $watched);
$node->safe_psql('postgres', 'CREATE DATABASE template OID = 100000');

# a file of 50 MB, and a small one
$node->safe_psql(
	'template', q{
	CREATE TABLE large (i int, filler text STORAGE PLAIN);
	INSERT INTO large SELECT i, repeat(md5(i::text), 250) FROM generate_series(1, 6401) i;
	CREATE TABLE small AS SELECT i FROM generate_series(1, 100000) i;
});
my %file = map { $_ => $node->safe_psql('template', "SELECT pg_relation_filenode('$_')") } qw(large small);

unlink $watched;
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template STRATEGY FILE_COPY OID = 100001');
# before anybody reads the copy
SKIP:
{
	my $copy = $node->data_dir . '/base/100001';
	my ($large, $small) = map { cached("$copy/$file{$_}") } qw(large small);
	skip 'not known what is cached', 3 unless defined $large;
	cmp_ok($large, '<=', 33 * 1024 * 1024, 'the beginning of a large file is not cached');
	cmp_ok($large, '>=', 16 * 1024 * 1024, 'but its end');
	is($small, -s "$copy/$file{small}", 'and so is a small file');
}

is(differences(100000, 100001), '', 'all files are those of the template');

my (%synced, $nwaits);
foreach (split /\n/, slurp_file($watched))
{
	my ($operation, undef, undef, $path) = split / /;
	next unless m{/base/100001/} || $path =~ m{/base/100001$};
	$synced{$path} = 0 if $operation eq 'write';
	$synced{$path} = 1 if $operation eq 'fsync';
	$nwaits++ if $operation eq 'sync_file_range' && $path =~ m{/$file{large}$};
}
is(join(' ', grep { !$synced{$_} } keys %synced), '', 'all are synced after they were written');
cmp_ok(scalar(keys %synced), '>=', 100, 'and are files of the copy');
cmp_ok($nwaits, '>=', 60, 'the beginning of a large one is waited for before');

is( $node->safe_psql('copy', 'SELECT count(*), sum(i), count(DISTINCT filler) FROM large'),
	$node->safe_psql('template', 'SELECT count(*), sum(i), count(DISTINCT filler) FROM large'),
	'rows are there');

start(WATCH_FAIL => 'sync_file_range', WATCH_PATH => "/base/100002/$file{large}");
my ($status, $out, $err) =
  $node->psql('postgres', 'CREATE DATABASE failed TEMPLATE template STRATEGY FILE_COPY OID = 100002');
isnt($status, 0, 'what cannot be written to disk is an error');
like($err, qr/could not flush dirty data: Link has been severed/, 'with its reason');
ok(!-e $node->data_dir . '/base/100002', 'nothing is left');

start(WATCH_WITHOUT => 1);
$node->safe_psql('postgres', 'CREATE DATABASE plain TEMPLATE template STRATEGY FILE_COPY OID = 100003');
is(differences(100000, 100003), '', 'a kernel that cannot be told to write copies all the same');

$node->stop;
done_testing();
