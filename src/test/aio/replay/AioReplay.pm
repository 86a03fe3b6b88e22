# Copyright (c) 2026, the pgawait authors

=head1 NAME

AioReplay - WAL that touches many pages in every way, and servers that replay it

=cut

package AioReplay;

use strict;
use warnings FATAL => 'all';

use AioLoad;
use Digest::MD5;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(change_everything contents damage files_of fill replay_conf replay_ways put_back set_aside);

# Few buffers, of which recovery may use some for what it reads ahead.
sub replay_conf
{
	return q{
	autovacuum = off
	bgwriter_lru_maxpages = 0
	checkpoint_timeout = 1h
	max_wal_size = 4GB
	shared_buffers = 4MB
	max_connections = 10
	maintenance_io_concurrency = 64
	aio.preallocation_size = 0
};
}

# How pages can be read: [io_method, debug_io_direct].
sub replay_ways
{
	my %methods = io_methods();
	my @ways;

	foreach my $method (sort keys %methods)
	{
		if (defined $methods{$method})
		{
			note "without $method: $methods{$method}";
			next;
		}
		push @ways, [ $method, '' ];
		push @ways, [ $method, 'data' ] if direct_io_works();
	}
	return @ways;
}

# A table with indexes of all kinds, and others that will be cut, emptied or dropped.
sub fill
{
	my ($node) = @_;

	$node->safe_psql(
		'postgres', q{
		CREATE FUNCTION some_uuid(i int, salt text) RETURNS uuid IMMUTABLE LANGUAGE sql AS 'SELECT md5(salt || i)::uuid';
		CREATE TABLE load (id int PRIMARY KEY, a uuid, b uuid, t text, p point, w text[]) WITH (fillfactor = 80);
		INSERT INTO load SELECT i, some_uuid(i, 'a'), some_uuid(i, 'b'), md5(i::text), point(i % 100, i / 100), ARRAY[md5((i % 50)::text)]
			FROM generate_series(1, 8000) i;
		CREATE INDEX ON load (a);
		CREATE INDEX ON load (b);
		CREATE INDEX ON load USING hash (t);
		CREATE INDEX ON load USING gist (p);
		CREATE INDEX ON load USING spgist (t);
		CREATE INDEX ON load USING gin (w);
		CREATE INDEX ON load USING brin (id);
		CREATE TABLE cut AS SELECT i, repeat('x', 500) AS filler FROM generate_series(1, 5000) i;
		CREATE TABLE emptied AS SELECT i, repeat('x', 500) AS filler FROM generate_series(1, 2000) i;
		CREATE TABLE dropped AS SELECT i, repeat('x', 500) AS filler FROM generate_series(1, 2000) i;
		CREATE EXTENSION amcheck;
		CREATE EXTENSION aio;
		VACUUM (FREEZE, ANALYZE);
		CHECKPOINT});
}

# Change pages all over; 'round' makes the rows new ones.
sub change_everything
{
	my ($node, $round) = @_;

	$node->safe_psql(
		'postgres', qq{
		INSERT INTO load SELECT i, some_uuid(i, 'a'), some_uuid(i, 'b'), md5(i::text), point(i % 100, i / 100), ARRAY[md5((i % 50)::text)]
			FROM generate_series($round * 20000, $round * 20000 + 2000) i;
		UPDATE load SET a = some_uuid(id, 'new $round') WHERE id % 7 = $round % 7;
		UPDATE load SET t = 'x' || t WHERE id % 31 = $round;
		DELETE FROM load WHERE id % 11 = $round;
		UPDATE cut SET filler = repeat('y', 500) WHERE i % 3 = 0;
		DELETE FROM cut WHERE i > 4000 - $round * 500;
		VACUUM cut, load;
		INSERT INTO cut SELECT i, 'again $round' FROM generate_series(4001 - $round * 500, 5000) i;
		UPDATE emptied SET filler = 'y' WHERE i % 2 = 0;
		TRUNCATE emptied;
		INSERT INTO emptied SELECT i, repeat('z', 500) FROM generate_series(1, 2000) i;
		UPDATE dropped SET filler = 'y' WHERE i % 2 = 0;
		DROP TABLE dropped;
		CREATE TABLE dropped AS SELECT i, repeat('$round', 500) AS filler FROM generate_series(1, 2000) i;
		DELETE FROM dropped WHERE i % 3 = 0;
		BEGIN; UPDATE load SET b = some_uuid(id, 'aborted $round') WHERE id % 13 = 0; ROLLBACK});
}

# A digest of all rows, and whether indexes fit them.
sub contents
{
	my ($node) = @_;

	return $node->safe_psql(
		'postgres', q{
		SELECT md5(string_agg(t::text, '' ORDER BY id)), count(*) FROM load t;
		SELECT md5(string_agg(t::text, '' ORDER BY i)), count(*) FROM cut t;
		SELECT md5(string_agg(t::text, '' ORDER BY i)), count(*) FROM emptied t;
		SELECT md5(string_agg(t::text, '' ORDER BY i)), count(*) FROM dropped t;
		SELECT count(bt_index_check(indexrelid, true)) FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			WHERE indrelid = 'load'::regclass AND amname = 'btree';
		SELECT count(gin_index_check(indexrelid)) FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			WHERE indrelid = 'load'::regclass AND amname = 'gin';
		SET enable_seqscan = off;
		SELECT count(*) FROM load WHERE p <@ box '(0,0),(50,50)';
		SELECT count(*) FROM load WHERE t = ANY (ARRAY(SELECT md5(i::text) FROM generate_series(1, 500) i))});
}

# The paths of the files of our tables and their indexes, without those of maps.
sub files_of
{
	my ($node) = @_;

	return split /\n/, $node->safe_psql(
		'postgres', q{
		SELECT pg_relation_filepath(oid) FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i') ORDER BY 1});
}

# Keep the data of a stopped server, to put them back as often as need be.
sub set_aside
{
	my ($node) = @_;
	my $aside = $node->basedir . '/aside';

	PostgreSQL::Test::RecursiveCopy::copypath($node->data_dir, $aside);
	return $aside;
}

sub put_back
{
	my ($node, $aside) = @_;

	File::Path::rmtree($node->data_dir);
	PostgreSQL::Test::RecursiveCopy::copypath($aside, $node->data_dir);
	chmod 0700, $node->data_dir;
}

# Write into the middle of a page of a stopped server.
sub damage
{
	my ($node, $file, $block) = @_;

	open my $handle, '+<:raw', $node->data_dir . "/$file" or die "$file: $!";
	seek $handle, 8192 * $block + 6000, 0;
	print $handle 'damage' x 10;
	close $handle;
}

1;
