
# Copyright (c) 2026, the pgawait authors

# Writes of WAL that were in flight when the server crashed are missing, and
# later ones are not.  New WAL is inserted in the hole, with records of the same
# lengths, and when the server crashes again, what is behind must not be taken
# for what follows.
#
# There are no checksums, since with them a hint bit may insert a record, too.
# A crash with a hole is made by zeroing pages after a crash without one.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant {
	PAGE => 8192,
	SEGMENT => 1024 * 1024,
};

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(extra => [ '--wal-segsize' => 1, '--no-data-checksums' ]);
$node->append_conf(
	'postgresql.conf', q{
	wal_level = minimal
	max_wal_senders = 0
	wal_buffers = 4MB
	max_wal_size = 1GB
	checkpoint_timeout = 1h
	wal_writer_delay = 10s
	bgwriter_lru_maxpages = 0
	autovacuum = off
	log_checkpoints = off
});
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE TABLE t (v text);
	CREATE FUNCTION emit(what text, total int) RETURNS void LANGUAGE sql AS
		$$ SELECT pg_logical_emit_message(false, 'p', rpad(what, total - 55, '.')) $$;
	CREATE FUNCTION flush() RETURNS void LANGUAGE sql AS
		$$ SELECT pg_logical_emit_message(false, 'p', repeat('.', 8168 - 55), true) $$;
	-- the next record will begin a page that does not begin a segment
	CREATE FUNCTION align() RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		at bigint;
		room int;
	BEGIN
		LOOP
			at := pg_current_wal_insert_lsn() - '0/0';
			EXIT WHEN at % 8192 = 24;
			room := 8192 - at % 8192;
			IF room < 300 THEN
				room := room + CASE WHEN (at + room) % 1048576 = 0 THEN 8152 ELSE 8168 END;
			END IF;
			PERFORM emit('align', room);
		END LOOP;
	END $$;
	-- a record in each page, up to this position
	CREATE FUNCTION fill(what text, upto pg_lsn) RETURNS void LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM align();
		WHILE pg_current_wal_insert_lsn() < upto LOOP
			PERFORM emit(what, 8168);
			PERFORM align();
		END LOOP;
	END $$;
});

sub bytes
{
	my ($lsn) = @_;
	my ($high, $low) = split m{/}, $lsn;
	return hex($high) * 2**32 + hex($low);
}

sub segment
{
	my ($at) = @_;
	my $number = int($at / SEGMENT);
	return $node->data_dir . sprintf '/pg_wal/%08X%08X%08X', 1, $number / 4096, $number % 4096;
}

sub zero
{
	my ($from, $npages) = @_;

	foreach my $at (map { $from + $_ * PAGE } 0 .. $npages - 1)
	{
		open my $file, '+<:raw', segment($at) or die "$at: $!";
		seek $file, $at % SEGMENT, 0;
		print $file "\0" x PAGE;
		close $file;
	}
}

# Pages behind the end that say that they are where they are.
sub pages_behind
{
	my ($end) = @_;
	my $found = 0;
	my $first = $end - $end % PAGE + ($end % PAGE ? PAGE : 0);

	for (my $at = $first; -e segment($at); $at += PAGE)
	{
		open my $file, '<:raw', segment($at) or die $!;
		seek $file, $at % SEGMENT, 0;
		read $file, my $header, 16;
		close $file;
		my ($magic, $info, $timeline, $address) = unpack 'S S L Q', $header;
		$found++ if $address == $at;
	}
	return $found;
}

sub insert_position { return $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()'); }

# Pages before the lost transaction, those of the holes, and pages behind it.
sub crash_twice
{
	my ($what, $npages, $holes, $nbehind) = @_;

	$node->safe_psql('postgres', 'TRUNCATE t; SELECT pg_switch_wal(); CHECKPOINT; SELECT align(); SELECT flush()');
	my ($hole, $lost, $end) = split /\n/, $node->safe_psql(
		'postgres', qq{
		SELECT pg_current_wal_insert_lsn();
		DO \$\$ BEGIN PERFORM fill('old', pg_current_wal_insert_lsn() + $npages * 8192); END \$\$;
		SELECT pg_current_wal_insert_lsn();
		INSERT INTO t VALUES ('lost in the first crash');
		DO \$\$ BEGIN PERFORM fill('old', pg_current_wal_insert_lsn() + $nbehind * 8192); PERFORM flush(); END \$\$;
		SELECT pg_current_wal_insert_lsn()});
	$node->stop('immediate');
	zero(bytes($hole) - 24 + $_->[0] * PAGE, $_->[1]) foreach @$holes;
	cmp_ok(pages_behind(bytes($hole)), '>=', $nbehind, "$what: WAL is left behind the hole");

	my $offset = -s $node->logfile;
	$node->start;
	ok($node->log_contains('erased \d+ pages of WAL', $offset), "$what: the log says that it is erased");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 0, "$what: what is behind the hole is lost");
	$node->stop('immediate');
	is(pages_behind(bytes($hole)), 0, "$what: nothing is left behind the end");

	$offset = -s $node->logfile;
	$node->start;
	ok(!$node->log_contains('erased \d+ pages of WAL', $offset), "$what: nothing more is found");
	$node->safe_psql('postgres', qq{DO \$\$ BEGIN PERFORM fill('new', '$lost'::pg_lsn - 8192); PERFORM flush(); END \$\$});
	is(insert_position(), $lost, "$what: new WAL ends where the transaction was");
	$node->stop('immediate');

	$offset = -s $node->logfile;
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), 0, "$what: it is not there after the second crash");
	return;
}

crash_twice('one page', 40, [ [ 0, 1 ] ], 20);
crash_twice('more than a segment', 300, [ [ 0, 290 ] ], 20);
crash_twice('several holes', 150, [ [ 0, 1 ], [ 10, 40 ], [ 60, 80 ], [ 152, 3 ] ], 300);

$node->stop;
done_testing();
