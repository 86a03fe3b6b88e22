# Copyright (c) 2026, the pgawait authors

# Random tables with random indexes, and random statements, some of whose rows
# fail: row for row and error for error what it is when nothing is awaited or
# collected.  A seed makes a run repeatable:
#
#   AIO_RANDOM_SEED=17 AIO_RANDOM_TABLES=1 meson test ... 002_random

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{AIO_RANDOM_SEED} // int(rand(1_000_000));
my $tables = $ENV{AIO_RANDOM_TABLES} // 12;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "io_method = worker\nshared_buffers = 8MB\nmax_connections = 10\nautovacuum = off");
$node->start;
$node->safe_psql(
	'postgres', q{
	CREATE EXTENSION amcheck;
	CREATE EXTENSION btree_gist;
	CREATE FUNCTION complaints(t regclass) RETURNS SETOF text LANGUAGE plpgsql AS $$
	DECLARE
		i regclass;
		u boolean;
	BEGIN
		FOR i, u IN SELECT indexrelid, indisunique AND indimmediate FROM pg_index JOIN pg_class c ON c.oid = indexrelid
			JOIN pg_am am ON am.oid = relam WHERE amname = 'btree' AND relkind = 'i'
			AND indrelid IN (SELECT relid FROM pg_partition_tree(t) WHERE isleaf)
		LOOP
			PERFORM bt_index_parent_check(i, true, true, u);
		END LOOP;
		FOR i IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
			JOIN pg_am am ON am.oid = relam WHERE amname = 'gin' AND relkind = 'i'
			AND indrelid IN (SELECT relid FROM pg_partition_tree(t) WHERE isleaf)
		LOOP
			PERFORM gin_index_check(i);
		END LOOP;
		RETURN QUERY SELECT msg FROM pg_partition_tree(t), verify_heapam(relid) WHERE isleaf;
	END$$;
});

# only servers with assertions collect few rows
my $can_collect = $node->safe_psql('postgres',
	q{SELECT count(*) FROM pg_settings WHERE name = 'aio.debug_rows_before_batch'});

# One of these.
sub any
{
	return $_[ int(rand(@_)) ];
}

# A random index of a table.
sub index_of
{
	my ($table) = @_;
	my @columns = ('k', 's', 't', 't COLLATE "C"', 'u', 'd', 'n', '(s % 7)', 'lower(t)', '(k + s)');
	my @keys = map { any(@columns) . any('', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST') } (1 .. any(1, 1, 1, 2, 3));
	my $where = any('', '', '', ' WHERE s % 3 = 0', ' WHERE t IS NOT NULL');
	my $btree = join(', ', @keys) . ')' . any('', '', ' INCLUDE (n)');

	return any(
		("CREATE INDEX ON $table ($btree$where") x 5,
		("CREATE INDEX ON $table USING hash (" . any('k', 't', 'u') . ")$where") x 2,
		("CREATE UNIQUE INDEX ON $table (" . any('id', 'k', 'k, t', 'u', 't', 'md5(k::text)') . ')'
			  . any('', ' INCLUDE (s)') . any('', '', ' NULLS NOT DISTINCT') . $where) x 4,
		"CREATE INDEX ON $table USING gin (string_to_array(t, 'a'))",
		("CREATE INDEX ON $table USING gin (string_to_array(t, 'a'), string_to_array(u::text, '-')) WITH (fastupdate = off)$where") x 2,
		"CREATE INDEX ON $table USING gist (point(k, s))" . any('', ' INCLUDE (t)') . $where,
		"CREATE INDEX ON $table USING spgist (" . any('point(k, s)', 'int4range(s, s + 5)') . ')' . any('', ' INCLUDE (t)') . $where,
		"CREATE INDEX ON $table USING gist (s)",
		"CREATE INDEX ON $table USING brin (id)",
		"CREATE INDEX ON $table USING spgist (t)",
		"ALTER TABLE $table ADD CHECK (s > -900)",
		$table =~ /part/ ? () : ("ALTER TABLE $table ADD UNIQUE (k) DEFERRABLE INITIALLY " . any('IMMEDIATE', 'DEFERRED'),
			"ALTER TABLE $table ADD EXCLUDE USING gist (k WITH =)"));
}

# A query for random rows, the same ones each time.
sub rows
{
	my ($first, $count, $wide, $flaws) = @_;
	my $hash = sub { "hashint8extended(n, $_[0] + $first)" };
	my $failing = join(' ', map { "WHEN n = " . ($first + int(rand($count))) . ' THEN '
			  . any('-1000', '1 / (n - n)', 'NULL') } (1 .. $flaws));

	return 'SELECT n AS id, '
	  . "(abs(@{[ $hash->(1) ]}) % $wide)::int AS k, "
	  . 'CASE ' . ($failing || 'WHEN false THEN 0') . " ELSE (@{[ $hash->(2) ]} % 800)::int END AS s, "
	  . "CASE WHEN n % 11 = 0 THEN NULL ELSE left(repeat(md5(@{[ $hash->(3) ]}::text), 8), abs(@{[ $hash->(4) ]} % 250)::int) END AS t, "
	  . "md5(@{[ $hash->(5) ]}::text)::uuid AS u, "
	  . "date '2026-01-01' + (@{[ $hash->(6) ]} % 1000)::int AS d, "
	  . "(@{[ $hash->(7) ]} % 100000) / 7.0 AS n "
	  . "FROM generate_series($first, @{[ $first + $count - 1 ]}) n";
}

# Run a script on one of the two tables; returns what a client is told.
sub outcome
{
	my ($table, $settings, $script) = @_;
	my ($code, $stdout, $stderr) =
	  $node->psql('postgres', "$settings\n" . $script =~ s/TABLE/$table/gr, on_error_stop => 0);
	$stderr =~ s/$table/TABLE/g;
	return "$stdout\n$stderr";
}

my $columns = '(id int, k int, s int, t text, u uuid, d date, n numeric)';
my $file = $node->basedir . '/rows';
my $failed_statements = 0;
my $first = 1;

for my $number (0 .. $tables - 1)
{
	srand($seed + $number);
	my $partitions = any(0, 0, 0, 7);
	my $kind = $partitions ? 'part' : 'plain';
	my @definition;

	foreach my $side ("stock_$kind", "ours_$kind")
	{
		push @definition, "DROP TABLE IF EXISTS $side", "CREATE TABLE $side $columns" . ($partitions ? ' PARTITION BY HASH (id)' : '');
		push @definition, map { "CREATE TABLE ${side}_$_ PARTITION OF $side FOR VALUES WITH (MODULUS $partitions, REMAINDER $_)" } (0 .. $partitions - 1);
	}
	my @indexes;
	for (1 .. 2 + int(rand(5)))
	{
		my $index = index_of("stock_$kind");
		# partitioned tables: unique keys contain the partition key
		$index =~ s/UNIQUE INDEX ON (\S+) \(/UNIQUE INDEX ON $1 (id, / if $partitions && $index !~ /\(id[,)]/;
		push @indexes, $index;
	}
	push @definition, @indexes, map { s/stock_$kind/ours_$kind/r } @indexes;
	$node->safe_psql('postgres', join(";\n", @definition));

	my $what = 'seed ' . ($seed + $number);
	my $same = 1;
	for my $statement (1 .. 6)
	{
		my $count = any(10, 500, 1500, 4000);
		my $query = rows($first, $count, any(50, 1_000_000_000, 1_000_000_000), any(0, 0, 0, 1, 2));
		my $settings = 'SET aio.batch_unique_keys = ' . any('on', 'auto', 'auto', 'off') . '; SET aio.index_batch_memory = ' . any("'1kB'", "'20kB'", "'200kB'", "'64MB'") . ';'
		  . ($can_collect ? ' SET aio.debug_rows_before_batch = ' . any(0, 0, 3, 100) . '; SET aio.debug_suspend = ' . any('on', 'off') . ';' : '');
		my $script = any(
			"INSERT INTO TABLE $query",
			"INSERT INTO TABLE $query RETURNING id, s",
			"INSERT INTO TABLE SELECT id, k, s, t, u, d, random() * 0 FROM ($query) q RETURNING id",
			"BEGIN; SAVEPOINT a; INSERT INTO TABLE $query; ROLLBACK TO a; INSERT INTO TABLE $query; COMMIT",
			("COPY TABLE FROM '$file'") x 3,
			"COPY TABLE FROM '$file' WITH (FORMAT csv)",
			"INSERT INTO TABLE $query ON CONFLICT DO NOTHING",
			"MERGE INTO TABLE USING ($query) q ON TABLE.id = q.id WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.k, q.s, q.t, q.u, q.d, q.n) WHEN MATCHED THEN DELETE",
			"DELETE FROM TABLE WHERE s % 5 = 0; VACUUM TABLE",
			"UPDATE TABLE SET s = s + 1, id = id + 1000000 WHERE s % 9 = 0");

		if ($script =~ /^COPY/)
		{
			# flaws of a file: what cannot be parsed
			(my $plain = $query) =~ s/1 \/ \(n - n\)/NULL/g;
			my $csv = $script =~ /csv/ ? ' WITH (FORMAT csv)' : '';
			$node->safe_psql('postgres', "COPY ($plain) TO '$file'$csv");
			if (any(0, 1))
			{
				my @lines = split(/\n/, slurp_file($file));
				$lines[ int(rand(@lines)) ] =~ s/^\d+/x/;
				unlink($file);
				append_to_file($file, join("\n", @lines) . "\n");
			}
		}

		# where an access method can be entered row by row only, memory matters little
		my $stock = outcome("stock_$kind", 'SET aio.await_index_inserts = off;', $script);
		my $ours = outcome("ours_$kind", $settings, $script);

		$failed_statements++ if $stock =~ /ERROR/;
		$same &&= is($ours, $stock, "$what: outcome of statement $statement") if $ours ne $stock;
		last unless $same;
		$first += $count if any(0, 1, 1);
	}
	is($node->safe_psql('postgres', "(TABLE stock_$kind EXCEPT ALL TABLE ours_$kind) UNION ALL (TABLE ours_$kind EXCEPT ALL TABLE stock_$kind) LIMIT 3"),
		'', "$what: same rows") or diag(join(";\n", @indexes));
	is($node->safe_psql('postgres', "SELECT * FROM complaints('ours_$kind')"), '', "$what: heap and indexes agree")
	  or diag(join(";\n", @indexes));
	# amcheck does not know of GiST: look rows up
	foreach (grep { /USING gist \(/ && !/EXCLUDE/ } @indexes)
	{
		my ($where) = /( WHERE .*)/;
		my $found = /point/ ? 'point(b.k, b.s) <@ box(point(a.k, a.s), point(a.k, a.s))' : 'b.s = a.s';
		my $rows = "(SELECT * FROM ours_$kind" . ($where // '') . ')';
		is( $node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
			SET enable_material = off; SET enable_memoize = off;
			SELECT count(*) FROM $rows a WHERE id % 5 = 0 AND s IS NOT NULL AND NOT EXISTS (SELECT FROM $rows b WHERE $found AND b.id = a.id)"),
			0, "$what: rows are found by GiST") or diag($_);
	}
}

note("$failed_statements statements failed, as they should");
$node->stop;
done_testing();
