# Copyright (c) 2026, the pgawait authors

# Base backups that read files ahead are what they would be without it, whatever
# happens to the files meanwhile, and leave nothing when they end early.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../..", "$FindBin::RealBin/../../replay";

use AioLoad;
use AioReplay;
use File::Compare;
use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Errno;
use Test::More;
use Time::HiRes qw(usleep);

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', replay_conf() . "summarize_wal = on\nwal_keep_size = 1GB\n");
$primary->start;
fill($primary);

# Files of all sizes, in a tablespace, too; unlogged ones of which nothing is sent
# but that they are empty; and one whose end is no whole page.
my $tablespace = PostgreSQL::Test::Utils::tempdir_short();
$primary->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$tablespace'");
$primary->safe_psql(
	'postgres', q{
	CREATE TABLE large TABLESPACE elsewhere AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 8000) i;
	CREATE TABLE there TABLESPACE elsewhere AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 500) i;
	CREATE UNLOGGED TABLE unlogged AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 3000) i;
	VACUUM (FREEZE);
	CHECKPOINT});
my $odd = $primary->data_dir . '/odd';
open my $handle, '>:raw', $odd or die "$odd: $!";
print $handle pack('N*', 1 .. 200_001);
close $handle;

# Take a backup.
my $nbackups = 0;

sub take
{
	my (@options) = @_;
	my $to = $primary->backup_dir . '/backup' . ++$nbackups;

	$primary->command_ok(
		[ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--pgdata' => $to,
			'--tablespace-mapping' => "$tablespace=$to.elsewhere", @options ],
		"backup $nbackups");
	return $to;
}

# What the walsenders have counted of reads ahead: a column of pg_stat_aio.  They
# tell when they end, which may be later than their client does.
sub counted
{
	$primary->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'walsender'}) or die;
	return $primary->safe_psql('postgres', "SELECT coalesce(sum($_[0]), 0) FROM pg_stat_aio WHERE kind = 'backup' AND backend_type = 'walsender'");
}

# The files of a directory by which backups are compared, without those that every
# backup has of its own.
sub files_below
{
	my ($directory) = @_;
	my %files;

	find({ no_chdir => 1, follow => 1, wanted => sub {
		return unless -f $_;
		my $name = substr($_, length($directory) + 1);
		$files{$name} = 1 if $name =~ m{^(base|global|pg_tblspc|pg_xact|odd)} && $name !~ m{pg_control$|pg_internal.init|/t\d+_\d+};
	} }, $directory);
	return %files;
}

# Files that differ, or are missing on one side.  Unlogged tables are empty in a backup.
sub differences
{
	my ($from, $to) = @_;
	my %from = files_below($from);
	my %to = files_below($to);

	foreach my $init (grep { /_init$/ } keys %from)
	{
		delete $from{ $init =~ s/_init$/$_/r } foreach '', '_fsm', '_vm';
	}
	return join ' ', sort grep { !exists $from{$_} || !exists $to{$_} || compare("$from/$_", "$to/$_") != 0 } keys %{ { %from, %to } };
}

# Have a server of a backup replay what there is, and compare.
sub restored
{
	my ($path, $name) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);
	my ($backup) = $path =~ m{([^/]+)$};

	$standby->init_from_backup($primary, $backup, has_streaming => 1,
		tablespace_map => { map { m{(\d+)$} && $1 => PostgreSQL::Test::Utils::tempdir_short() . '/there' } glob("$path/pg_tblspc/*") });
	$standby->start;
	$primary->wait_for_replay_catchup($standby);
	my @contents = map { contents($_) . $_->safe_psql('postgres', 'SELECT count(*), sum(i), sum(length(filler)) FROM large; SELECT count(*), sum(i) FROM there') } $primary, $standby;
	is($contents[1], $contents[0], "$name: has what the primary has");
	$standby->stop;
}

# The server's files of tables and indexes.
sub relation_files { return grep { -f } glob($primary->data_dir . '/base/*/* ' . $primary->data_dir . '/pg_tblspc/*/*/*/*') }

# Have the kernel forget what the larger of them have in its page cache.  False
# where files are nowhere else.
sub forget
{
	my @files = grep { -s >= 262_144 } relation_files();

	return 0 if `stat --file-system --format=%T '$files[0]'` =~ /tmpfs/;
	system_or_bail('dd', 'status=none', "of=$_", 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0') foreach @files;
	return 1;
}

# Can the kernel be asked what is in its page cache?  Where file systems lie upon
# others, or have caches of their own, it does not know.
sub can_cachestat
{
	my $type = `stat --file-system --format=%T '@{[ $primary->data_dir ]}'`;

	return $^O eq 'linux' && $type =~ /^(ext|xfs|btrfs|tmpfs)/ && syscall(451, -1, 0, 0, 0) < 0 && !$!{ENOSYS};
}

my $round = 0;
my ($large, $in_base) = map { $primary->safe_psql('postgres', $_) } q{SELECT pg_relation_size('large')},
  q{SELECT pg_relation_size('large') + pg_relation_size('load') + pg_relation_size('cut')};
foreach my $way (replay_ways(), [ 'sync', '' ])
{
	my ($method, $direct) = @$way;
	my $name = "$method, " . ($direct ? 'direct' : 'buffered');
	$primary->append_conf('postgresql.conf', "io_method = $method\ndebug_io_direct = '$direct'\n");
	$primary->restart;

	# nobody changes anything
	my %before = map { $_ => counted($_) } qw(started bytes);
	my $is_on_disk = forget();
	my $quiet = take();
	is(differences($primary->data_dir, $quiet), '', "$name: each file of the backup is that of the server");
	$primary->command_ok([ 'pg_verifybackup', $quiet ], "$name: and the manifest fits");
	if ($method eq 'sync')
	{
		is(counted('started'), $before{started}, "$name: nothing is read ahead");
		next;
	}
	SKIP:
	{
		skip 'files are in memory', 2 unless $is_on_disk || $direct;

		# While no I/O worker is free, upstream reads.  Beside other tests that
		# was so for all of a backup, now and then, also without workers, before
		# handles were reclaimed: if it is again, show what there is to see.
		my $wanted = $method eq 'worker' ? 0 : $in_base;
		foreach (1 .. 10)
		{
			note sprintf '%d bytes read ahead, tables have %d', counted('bytes') - $before{bytes}, $in_base;
			last if counted('bytes') - $before{bytes} > $wanted && counted('max_in_flight') > 1;
			note $primary->safe_psql('postgres', q{SELECT * FROM pg_stat_aio WHERE backend_type = 'walsender'});
			forget();
			take();
		}
		cmp_ok(counted('bytes') - $before{bytes}, '>', $wanted, "$name: it was read ahead, not only in the tablespace");
		cmp_ok(counted('max_in_flight'), '>', 1, "$name: several at a time");
	}

	# what the page cache has is taken from there
	SKIP:
	{
		skip 'what is in the page cache is not known', 2 if $direct || !can_cachestat();
		my $cold = counted('bytes') - $before{bytes};
		slurp_file($_) foreach relation_files();
		my $start = counted('bytes');
		my $warm = take();
		is(differences($primary->data_dir, $warm), '', "$name: a backup of what is in the page cache");
		cmp_ok(counted('bytes') - $start, '<', $cold / 4, "$name: is hardly read ahead");
	}
	is(counted('failed'), 0, "$name: and all could be read");

	# somebody does
	my $changes = $primary->background_psql('postgres');
	$round++;
	$changes->query_until(qr/begun/, qq{
		\\echo begun
		DO \$\$ BEGIN FOR turn IN 1..40 LOOP
			UPDATE large SET filler = repeat(turn::text, 400) WHERE i % 50 = turn;
			COMMIT;
			TRUNCATE there;
			INSERT INTO there SELECT j, repeat('$round', 1000) FROM generate_series(1, 500) j;
			COMMIT;
		END LOOP; END \$\$;
	});
	my $busy = take('--max-rate' => '20M', '--format' => 'plain');
	change_everything($primary, $round);
	$changes->query_safe('SELECT 1');
	$changes->quit;
	$primary->command_ok([ 'pg_verifybackup', $busy ], "$name: the manifest of a backup fits while files change");
	restored($busy, "busy$round");

	# only what has changed
	my $full = take();
	$primary->safe_psql('postgres', q{UPDATE large SET filler = 'short' WHERE i BETWEEN 100 AND 2000 OR i % 100 = 0; INSERT INTO there SELECT 1, 'x'});
	my $some = take('--incremental' => "$full/backup_manifest");
	my $combined = $primary->backup_dir . '/combined' . $round;
	$primary->command_ok(
		[ 'pg_combinebackup', '--no-sync', '--output' => $combined, $full, $some,
			'--tablespace-mapping' => "$some.elsewhere=$combined.elsewhere" ],
		"$name: an incremental backup can be combined");
	$primary->command_ok([ 'pg_verifybackup', '--no-parse-wal', $combined ], "$name: and is whole then");
	restored($combined, "combined$round");

	# with the WAL in the same stream, and in tar files
	my $tar = take('--format' => 'tar', '--wal-method' => 'fetch');
	$primary->command_ok([ 'pg_verifybackup', '--no-parse-wal', $tar ], "$name: tar files are whole, too");
	File::Path::rmtree([ glob($primary->backup_dir . '/*') ]);
}

my ($method) = map { $_->[0] } replay_ways();
my $direct = direct_io_works() ? 'data' : '';
$primary->append_conf('postgresql.conf', "io_method = $method\ndebug_io_direct = '$direct'\n");
$primary->restart;
note "with $method, '$direct', from here on";

# Several at a time share the buffers.
my @both = map { IPC::Run::start([ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--target' => 'blackhole', '--wal-method' => 'none', '--max-rate' => '10M',
		'--dbname' => $primary->connstr('postgres') ]) } 1 .. 2;
ok($_->finish, 'two backups at the same time') foreach @both;

# One that ends early waits for its reads, and leaves nothing in use: the same
# session can take another one.
my $session = $primary->background_psql('postgres', replication => 'database', on_error_stop => 0);
my $pid = $session->query_safe('SELECT pg_backend_pid()');

sub cancel_backup
{
	my ($how) = @_;

	$session->query_until(qr/begun/, qq{\\echo begun\nBASE_BACKUP (TARGET 'blackhole', CHECKPOINT 'fast', WAL true, MAX_RATE 1024);\n});
	ok($primary->poll_query_until('postgres', "SELECT phase = 'streaming database files' FROM pg_stat_progress_basebackup WHERE pid = $pid"), "$how: a backup has begun");
	$primary->safe_psql('postgres', "SELECT pg_${how}_backend($pid)");
}
foreach (1 .. 2)
{
	forget();
	cancel_backup('cancel');
	like($session->query_until(qr/done/, "\\echo done\n"), qr/done/, 'it is cancelled');
	$session->{stderr} = '';
}
is($primary->safe_psql('postgres', q{SELECT count(*) FROM pg_aios WHERE target = 'backup'}), 0, 'nothing is being read');
my $log = -s $primary->logfile;
cancel_backup('terminate');
ok($primary->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid"), 'the process has ended');
eval { $session->quit };
my $before = counted('bytes');
my $is_on_disk = forget();
my $again = take();
$primary->command_ok([ 'pg_verifybackup', $again ], 'the next one is whole');
cmp_ok(counted('bytes') - $before, '>', $is_on_disk || $direct ? $method eq 'worker' ? 0 : $large : -1, 'and was read ahead');
unlike(slurp_file($primary->logfile, $log), qr/PANIC|TRAP|leaked/, 'the log has no complaint');

# A file that changes between the reading and the sending of it
SKIP:
{
	skip 'injection points are not supported by this build' if $ENV{enable_injection_points} ne 'yes';
	$primary->safe_psql('postgres', q{CREATE EXTENSION injection_points; SELECT injection_points_attach('aio-backup-file', 'wait')});
	my $to = $primary->backup_dir . '/injected';
	forget();
	my $backup = IPC::Run::start([ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--pgdata' => $to, '--dbname' => $primary->connstr('postgres'),
			'--tablespace-mapping' => "$tablespace=$to.elsewhere" ]);
	ok($primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'aio-backup-file'}), 'files are read, and not sent');
	change_everything($primary, ++$round);
	$primary->safe_psql('postgres', q{
		DELETE FROM large WHERE i > 500;
		VACUUM large;
		TRUNCATE there;
		INSERT INTO there SELECT i, 'new' FROM generate_series(1, 3000) i;
		CHECKPOINT;
		SELECT injection_points_detach('aio-backup-file');
		SELECT injection_points_wakeup('aio-backup-file')});
	ok($backup->finish, 'then they are sent');
	$primary->command_ok([ 'pg_verifybackup', $to ], 'and the manifest fits');
	restored($to, 'injected');
}

# Files that others get the names of between the reading and the sending: each is
# sent as one of them, not as parts of two.
SKIP:
{
	skip 'injection points are not supported by this build' if $ENV{enable_injection_points} ne 'yes';
	my ($many) = map { "$_/many" } glob("$tablespace/PG_18_*");
	my $version = 0;
	my $replace = sub {
		$version++;
		foreach my $name (map { "$many/$_" } 1 .. 20)
		{
			PostgreSQL::Test::Utils::append_to_file("$name.new", chr(64 + $version) x (20_000 + 1_000 * $version));
			rename("$name.new", $name) or die "$name: $!";
		}
	};

	mkdir($many) or die "$many: $!";
	$replace->();
	$primary->safe_psql('postgres', q{SELECT injection_points_attach('aio-backup-file', 'wait')});
	my $to = $primary->backup_dir . '/replaced';
	my $backup = IPC::Run::start([ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--pgdata' => $to, '--dbname' => $primary->connstr('postgres'),
			'--tablespace-mapping' => "$tablespace=$to.elsewhere" ]);
	foreach (1 .. 25)
	{
		$primary->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'aio-backup-file'}) or die 'no file is sent';
		$replace->();
		$primary->psql('postgres', q{SELECT injection_points_wakeup('aio-backup-file')});
	}
	$primary->safe_psql('postgres', q{SELECT injection_points_detach('aio-backup-file')});
	$primary->psql('postgres', q{SELECT injection_points_wakeup('aio-backup-file')});
	ok($backup->finish, 'files are replaced while they are sent');
	my %versions;
	foreach my $file (glob("$to.elsewhere/PG_18_*/many/*"))
	{
		my $content = slurp_file($file);
		my $first = ord($content) - 64;

		$versions{$first} = 1 if $content eq chr(64 + $first) x (20_000 + 1_000 * $first);
		fail("$file is made of several") unless $content eq chr(64 + $first) x (20_000 + 1_000 * $first);
	}
	note 'versions: ', join ' ', sort { $a <=> $b } keys %versions;
	cmp_ok(scalar(keys %versions), '>', 1, 'each of them is one, and not all of the same time');
	File::Path::rmtree($many);
}

# Damaged pages are found, as ever.
my $damaged = $primary->safe_psql('postgres', q{SELECT pg_relation_filepath('cut')});
$primary->stop;
damage($primary, $damaged, 3);
$primary->start;
my ($stdout, $stderr) = run_command([ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--target' => 'blackhole', '--wal-method' => 'none',
		'--dbname' => $primary->connstr('postgres') ]);
like($stderr, qr/checksum verification failed in file "\.\/\Q$damaged\E", block 3:/, 'a damaged page is found');
like($stderr, qr/checksum error occurred/, 'and the backup fails');

# Files that went did no harm to I/O workers.
unlike(slurp_file($primary->logfile), qr/could not open file|PANIC|TRAP/, 'the log has no complaint about files');

# All backups together leave an I/O worker to others.
SKIP:
{
	skip 'injection points are not supported by this build' if $ENV{enable_injection_points} ne 'yes';
	skip 'direct I/O does not work here' unless $direct;
	$primary->append_conf('postgresql.conf', "io_method = worker\nio_workers = 3\nshared_preload_libraries = injection_points\n");
	$primary->restart;

	# this session finds in memory what it needs
	my @take = ('pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--target' => 'blackhole', '--wal-method' => 'none', '--no-verify-checksums');
	$primary->command_ok(\@take, 'a backup by workers');
	my $observer = $primary->background_psql('postgres', on_error_stop => 0);
	my $reading = q{SELECT count(*) FROM pg_aios WHERE target = 'backup' AND state = 'SUBMITTED'};
	# of two reads, one may have been about to end before workers were held up
	my $waiting = q{SELECT count(*) FILTER (WHERE wait_event = 'aio-worker-after-reopen') > 1
		AND count(*) FILTER (WHERE backend_type = 'walsender' AND wait_event = 'AioIoCompletion') > 0 FROM pg_stat_activity};
	my $becomes_true = sub
	{
		my ($query) = @_;

		for (my $i = 0; $i < 10 * $PostgreSQL::Test::Utils::timeout_default; $i++)
		{
			usleep(100_000) if $i;
			return 1 if $observer->query_safe($query) eq 't';
		}
		return 0;
	};
	$observer->query_safe($_) foreach $waiting, $reading;
	# the checkpoint that they begin with writes by workers, too, so it has to end before
	my @backups = map { IPC::Run::start([ @take, '--max-rate' => '8M', '--dbname' => $primary->connstr('postgres') ]) } 1 .. 2;
	ok($becomes_true->(q{SELECT count(*) = 2 FROM pg_stat_progress_basebackup WHERE phase = 'streaming database files'}), 'two backups have begun');
	$observer->query_safe(q{SELECT injection_points_attach('aio-worker-after-reopen', 'wait')});
	ok($becomes_true->($waiting), 'a backup waits for what it reads ahead');
	is($observer->query_safe($reading), 2, 'and all backups read by two of three workers');
	$observer->query_safe(q{SELECT injection_points_detach('aio-worker-after-reopen')});
	# it is the same worker that is woken up again, until it has gone on
	while ($observer->query_safe(q{SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'aio-worker-after-reopen'}) eq 't')
	{
		# which has perhaps just done so
		$observer->query_safe(q{DO $$BEGIN PERFORM injection_points_wakeup('aio-worker-after-reopen'); EXCEPTION WHEN internal_error THEN END$$});
	}
	$observer->quit;
	ok($_->finish, 'the backup is complete') foreach @backups;
	$primary->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
}

# Without buffers, it is upstream's.
$primary->append_conf('postgresql.conf', 'aio.backup_buffers = 0');
$primary->restart;
$before = counted('started');
$primary->command_ok([ 'pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--target' => 'blackhole', '--wal-method' => 'none', '--no-verify-checksums' ], 'without buffers');
is(counted('started'), $before, 'nothing is read ahead');

done_testing();
