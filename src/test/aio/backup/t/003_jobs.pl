# Copyright (c) 2026, the pgawait authors

# Backups that several connections receive (--jobs): each file comes once, the
# manifest has all of them, and a server of the backup has what the primary has.
# If one of the processes fails, on either side, the backup does, nothing hangs,
# and nothing is left.
#
# AIO_REFERENCE names an installation without our changes, whose programs and
# servers are tried with ours.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/..", "$FindBin::RealBin/../..", "$FindBin::RealBin/../../replay";

use AioReplay;
use AioWatch qw(unsynced);
use File::Compare;
use File::Find;
use File::Path qw(rmtree);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $conf = q{
	allow_in_place_tablespaces = on
	autovacuum = off
	bgwriter_lru_maxpages = 0
	checkpoint_timeout = 1h
	max_connections = 10
	max_wal_senders = 25
	summarize_wal = on
	wal_keep_size = 1GB
	log_replication_commands = on
};

# Files of many sizes, in several tablespaces, one of them in the data directory;
# unlogged ones; and files that are no relations.
my $elsewhere = PostgreSQL::Test::Utils::tempdir_short();

sub fill_node
{
	my ($node) = @_;

	$node->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$elsewhere'");
	$node->safe_psql(
		'postgres', q{
		CREATE EXTENSION aio;
		CREATE TABLESPACE in_place LOCATION '';
		CREATE TABLE large AS SELECT i, repeat('x', 1000) AS filler FROM generate_series(1, 24000) i;
		CREATE TABLE large2 AS SELECT * FROM large LIMIT 12000;
		CREATE TABLE there TABLESPACE elsewhere AS SELECT * FROM large LIMIT 9000;
		CREATE TABLE here TABLESPACE in_place AS SELECT * FROM large LIMIT 1000;
		CREATE UNLOGGED TABLE unlogged AS SELECT * FROM large LIMIT 500;
		CREATE UNLOGGED TABLE unlogged_there TABLESPACE elsewhere AS SELECT * FROM large LIMIT 500;
		CREATE TABLE empty ();
		ALTER SYSTEM SET log_min_duration_statement = 77777});
	$node->safe_psql('postgres', join '', map { "CREATE TABLE small$_ AS SELECT i FROM generate_series(1, $_ * 10) i;" } 1 .. 60);
	$node->safe_psql('postgres', 'VACUUM (FREEZE); CHECKPOINT');
	my $before = umask 0027;
	append_to_file($node->data_dir . '/odd', 'x' x 1_234_567);
	mkdir $node->data_dir . '/extra' or die;
	append_to_file($node->data_dir . "/extra/$_", 'y' x ($_ * 1000)) foreach 0, 1, 512, 3000;
	umask $before;
}

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1, extra => [ '--data-checksums', '--allow-group-access' ]);
$primary->append_conf('postgresql.conf', $conf);
$primary->start;
fill_node($primary);

# What is put before pg_basebackup (watch.c), also where AddressSanitizer wants to be first.
my @preloaded = ($ENV{AIO_WATCH}, join(':', $ENV{ASAN_OPTIONS} // (), 'verify_asan_link_order=0'));

# Where backups are taken
my $server = $primary;
my $nbackups = 0;

# Arguments of a backup to a new directory.
sub arguments
{
	my ($to, @options) = @_;
	return ('pg_basebackup', '--no-sync', '--checkpoint' => 'fast', '--pgdata' => $to, '--no-password',
		'--tablespace-mapping' => "$elsewhere=$to.elsewhere", @options);
}

# Take a backup.
sub take
{
	my ($name, @options) = @_;
	my $to = $primary->backup_dir . '/backup' . ++$nbackups;

	$server->command_ok([ arguments($to, @options) ], "$name: pg_basebackup @options");
	return $to;
}

sub verify
{
	my ($to, $name, @options) = @_;
	$primary->command_ok([ 'pg_verifybackup', @options, $to ], "$name: the manifest fits");
}

# All files and directories but those that every backup has of its own, and links.
sub below
{
	my ($directory) = @_;
	my %files;

	find({ no_chdir => 1, follow => 1, wanted => sub {
		my $name = substr($_, length($directory));
		$files{$name} = -d $_ ? 'directory' : 'file'
		  unless $name =~ m{^/(pg_wal|pg_stat|pg_stat_tmp|pg_replslot|pg_subtrans|pg_dynshmem|pg_notify|pg_snapshots|pg_serial)(/|$)}
		  or $name =~ m{^/(postmaster\.|global/pg_control|backup_label|backup_manifest|current_logfiles)|pg_internal\.init|/t\d+_\d+|/pgsql_tmp};
	} }, $directory);
	return %files;
}

# What differs, or is missing on one side.  Unlogged tables are empty in a backup.
sub differences
{
	my ($from, $to) = @_;
	my %from = below($from);
	my %to = below($to);

	foreach my $init (grep { /_init$/ } keys %from)
	{
		delete $from{ $init =~ s/_init$/$_/r } foreach '', '_fsm', '_vm';
	}
	return join ' ', sort grep {
		($from{$_} // '') ne ($to{$_} // '') || $from{$_} eq 'file' && compare("$from$_", "$to$_") != 0
	} keys %{ { %from, %to } };
}

# How many connections have joined a backup since this position of the log?
sub joined
{
	my ($position) = @_;
	my $log = slurp_file($primary->logfile, $position);
	return scalar(() = $log =~ /received replication command: BASE_BACKUP \( ?SHARE /g);
}

# No process takes a backup, and no memory and no file of a shared one is left.
sub is_quiet
{
	my ($name) = @_;
	ok($server->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'walsender'}), "$name: all connections have ended");
	is(join(' ', glob($server->data_dir . '/base/pgsql_tmp/*')), '', "$name: no temporary file is left");
}

# Files that the group may not read, or others may.
sub wrong_modes
{
	my ($directory) = @_;
	my @wrong;

	find({ no_chdir => 1, wanted => sub {
		my $mode = (lstat $_)[2] & 07777;
		push @wrong, sprintf('%s: %o', $_, $mode) unless -l $_ or $mode == (-d _ ? 0750 : 0640);
	} }, $directory);
	return "@wrong";
}

# What tables have.
my $contents = join ';', map { "SELECT count(*), sum(i), sum(length(filler)) FROM $_" } qw(large large2 there here);

# Start a server of a backup, and return it.
sub restored
{
	my ($path, $name) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);
	my ($backup) = $path =~ m{([^/]+)$};
	my $oid = $primary->safe_psql('postgres', q{SELECT oid FROM pg_tablespace WHERE spcname = 'elsewhere'});

	$standby->init_from_backup($primary, $backup, has_streaming => 1,
		tablespace_map => { $oid => PostgreSQL::Test::Utils::tempdir_short() . '/there' });
	$standby->start;
	$primary->wait_for_replay_catchup($standby);
	is($standby->safe_psql('postgres', $contents), $primary->safe_psql('postgres', $contents), "$name: has what the primary has");
	return $standby;
}

# ----------------------------------------------------------------------
# Nobody changes anything
# ----------------------------------------------------------------------

foreach my $jobs (1, 2, 4, 20)
{
	my $name = "$jobs jobs";
	my $position = -s $primary->logfile;
	my $to = take($name, '--jobs' => $jobs);
	is(differences($primary->data_dir, $to), '', "$name: each file of the backup is that of the server");
	verify($to, $name);
	is(joined($position), $jobs - 1, "$name: so many others have joined");
	is(wrong_modes($to), '', "$name: the group may read it");
	is_quiet($name);
	rmtree([ $to, "$to.elsewhere" ]);
}

my @compressions = ('none');
push @compressions, 'server-gzip' if check_pg_config('#define HAVE_LIBZ 1');
push @compressions, 'server-lz4' if check_pg_config('#define USE_LZ4 1');
push @compressions, 'server-zstd:level=1' if check_pg_config('#define USE_ZSTD 1');
foreach my $case (
	(map { [ '--compress' => $_ ] } @compressions),
	(map { [ '--wal-method' => $_ ] } qw(none fetch stream)),
	(map { [ '--manifest-checksums' => $_ ] } qw(none sha256)),
	['--manifest-force-encode'],
	['--no-manifest'],
	['--no-verify-checksums'],
	['--write-recovery-conf'])
{
	my @options = @$case;
	my $name = "with @options";
	my $to = take('4 jobs', '--jobs' => 4, @options);
	my $but = $options[0] eq '--write-recovery-conf' ? ' /postgresql.auto.conf /standby.signal' : '';
	is(' ' . differences($primary->data_dir, $to), $but || ' ', "$name: each file of the backup is that of the server");
	if ($options[0] eq '--no-manifest')
	{
		ok(!-e "$to/backup_manifest", "$name: there is none");
	}
	elsif ($options[0] ne '--write-recovery-conf')
	{
		verify($to, $name, ($options[1] // '') eq 'none' && $options[0] eq '--wal-method' ? '--no-parse-wal' : ());
	}
	if ($options[0] eq '--write-recovery-conf')
	{
		my $settings = slurp_file("$to/postgresql.auto.conf");
		like($settings, qr/^log_min_duration_statement = '77777'\n.*^primary_conninfo = /ms, "$name: settings come after those of the server");
		is(scalar(() = $settings =~ /^primary_conninfo/mg), 1, "$name: once");
	}
	rmtree([ $to, "$to.elsewhere" ]);
}

# Files are synced by the process that has written them.
{
	my $to = $primary->backup_dir . '/synced';
	my @command = grep { $_ ne '--no-sync' } arguments($to, '--jobs' => 3, '--dbname' => $primary->connstr('postgres'));
	my ($out, $err);

	if ($ENV{AIO_WATCH})
	{
		my $watched = PostgreSQL::Test::Utils::tempdir_short() . '/watched';
		{
			local @ENV{ 'LD_PRELOAD', 'ASAN_OPTIONS', 'WATCH_LOG' } = (@preloaded, $watched);
			ok(IPC::Run::run(\@command, '>', \$out, '2>', \$err), 'a backup that is synced') or diag $err;
		}
		my ($unsynced, $count) = unsynced($watched, $to, "$to.elsewhere");
		my $nfiles = 0;
		find(sub { $nfiles++ if -f }, $to, "$to.elsewhere");
		is($unsynced, '', 'all is synced after it was written');
		cmp_ok($count->{'fsync main'} + ($count->{'fsync thread'} // 0), '<=', $nfiles + 70, 'and not again by another process');
	}
	else
	{
		ok(IPC::Run::run(\@command, '>', \$out, '2>', \$err), 'a backup that is synced') or diag $err;
	}
	is(differences($primary->data_dir, $to), '', 'it is that of the server');
	rmtree([ $to, "$to.elsewhere" ]);
}

# All connections read ahead, small files, too.
SKIP:
{
	my ($way) = grep { $_->[1] } replay_ways();
	skip 'direct I/O does not work here', 4 unless $way;
	$primary->append_conf('postgresql.conf', "io_method = $way->[0]\ndebug_io_direct = '$way->[1]'\n");
	$primary->restart;
	my $counted = q{SELECT coalesce(sum(bytes), 0) FROM pg_stat_aio WHERE kind = 'backup' AND backend_type = 'walsender'};
	my $before = $primary->safe_psql('postgres', $counted);
	my $to = take('direct', '--jobs' => 4);
	my $tables = $primary->safe_psql('postgres', q{SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relkind IN ('r', 'i') AND relpersistence = 'p' AND relfilenode <> 0});
	is(differences($primary->data_dir, $to), '', 'direct: each file of the backup is that of the server');
	verify($to, 'direct');
	cmp_ok($primary->safe_psql('postgres', $counted) - $before, '>', $tables * 0.9, 'direct: files were read ahead');
	rmtree([ $to, "$to.elsewhere" ]);
}

# The rate is that of all connections together.
my $size = 0;
find({ no_chdir => 1, follow => 1, wanted => sub { $size += -s $_ if -f $_ } }, $primary->data_dir . '/base', $elsewhere);
my $begin = time;
my $limited = take('with a limit', '--jobs' => 4, '--max-rate' => '16M', '--wal-method' => 'none');
cmp_ok(time - $begin, '>=', $size / (16 * 1024 * 1024) * 0.7, 'the rate is limited');
is(differences($primary->data_dir, $limited), '', 'with a limit: each file of the backup is that of the server');

# Progress is that of all connections, and ends with everything.
my ($stdout, $stderr) = run_command([ arguments($primary->backup_dir . '/progress', '--jobs' => 4, '--progress', '--max-rate' => '16M', '--dbname' => $primary->connstr('postgres')) ]);
my @reports = $stderr =~ m{(\d+)/\d+ kB \(\d+%\), \d+/\d+ tablespaces}g;
cmp_ok(scalar(@reports), '>', 2, 'progress is reported') or diag $stderr;
is(join(' ', @reports), join(' ', sort { $a <=> $b } @reports), 'and does not go back');
like($stderr, qr{(\d+)/\1 kB \(100%\), 3/3 tablespaces$}, 'up to the end');
cmp_ok($reports[-1], '>=', $size / 1024 * 0.98, 'which is that of all files');
unlike($stderr, qr{[4-9]/3 tablespaces}, 'no tablespace is counted twice');
rmtree([ glob($primary->backup_dir . '/*') ]);

# ----------------------------------------------------------------------
# Somebody does
# ----------------------------------------------------------------------

{
	my $changes = $primary->background_psql('postgres');
	$changes->query_until(qr/begun/, q{
		\echo begun
		DO $$ BEGIN FOR turn IN 1..60 LOOP
			UPDATE large SET filler = repeat(turn::text, 400) WHERE i % 60 = turn;
			COMMIT;
			TRUNCATE there;
			INSERT INTO there SELECT j, repeat(turn::text, 400) FROM generate_series(1, 500) j;
			COMMIT;
			EXECUTE format('DROP TABLE small%s', turn);
			EXECUTE format('CREATE TABLE new%s AS SELECT * FROM large2 LIMIT 100', turn);
			COMMIT;
		END LOOP; END $$;
	});
	my $busy = take('while files change', '--jobs' => 4, '--max-rate' => '16M');
	$changes->query_safe('SELECT 1');
	$changes->quit;
	verify($busy, 'while files change');
	restored($busy, 'busy')->stop;
	rmtree([ $busy, "$busy.elsewhere" ]);

	# A tablespace that goes, after it was found
	my $going = PostgreSQL::Test::Utils::tempdir_short();
	$primary->safe_psql('postgres', "CREATE TABLESPACE going LOCATION '$going'");
	$primary->safe_psql('postgres', 'CREATE TABLE gone TABLESPACE going AS SELECT * FROM large LIMIT 2000; CHECKPOINT');
	my $to = $primary->backup_dir . '/going';
	my ($out, $err) = ('', '');
	my $backup = IPC::Run::start([ arguments($to, '--jobs' => 4, '--max-rate' => '8M', '--tablespace-mapping' => "$going=$to.elsewhere2", '--dbname' => $primary->connstr('postgres')) ],
		'>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	ok($primary->poll_query_until('postgres', q{SELECT count(*) = 4 FROM pg_stat_progress_basebackup WHERE backup_streamed > 0}), 'all connections send files');
	$primary->safe_psql('postgres', 'DROP TABLE gone');
	$primary->safe_psql('postgres', 'DROP TABLESPACE going');
	ok($backup->finish, 'a tablespace is dropped meanwhile') or diag $err;
	verify($to, 'a tablespace is dropped meanwhile');
	rmtree([ glob("$to*") ]);
}

# Only what has changed
{
	my $full = take('a full one', '--jobs' => 3);
	$primary->safe_psql('postgres', q{UPDATE large SET filler = 'short' WHERE i % 100 = 0; CREATE TABLE more AS SELECT * FROM large; INSERT INTO there SELECT 1, 'x'});
	my $some = take('what has changed', '--jobs' => 3, '--incremental' => "$full/backup_manifest");
	my $combined = $primary->backup_dir . '/combined';
	my @incremental;
	find(sub { push @incremental, $_ if /^INCREMENTAL/ }, $some);
	cmp_ok(scalar(@incremental), '>', 10, 'files are sent incrementally');
	verify($some, 'what has changed');
	$primary->command_ok(
		[ 'pg_combinebackup', '--no-sync', '--output' => $combined, $full, $some,
			'--tablespace-mapping' => "$some.elsewhere=$combined.elsewhere" ],
		'an incremental backup can be combined');
	$primary->command_ok([ 'pg_verifybackup', '--no-parse-wal', $combined ], 'and is whole then');
	restored($combined, 'combined')->stop;
	rmtree([ glob($primary->backup_dir . '/*') ]);
}

# ----------------------------------------------------------------------
# What cannot be
# ----------------------------------------------------------------------

# A backup that must fail; 'while' it goes on, something is done.
sub fails
{
	my ($name, $options, $error, $while) = @_;
	my $to = $primary->backup_dir . '/failing';
	my ($out, $err) = ('', '');
	my $backup = IPC::Run::start([ arguments($to, @$options, '--dbname' => $server->connstr('postgres')) ], '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));

	$while->($backup) if $while;
	ok(!$backup->finish, "$name: pg_basebackup fails");
	like($err, $error, "$name: and says why") if $error;
	ok(!-e $to, "$name: nothing is left") if $error;
	is_quiet($name);
	rmtree([ $to, "$to.elsewhere" ]);
	return;
}

fails('tar', [ '--jobs' => 2, '--format' => 'tar' ], qr/^pg_basebackup: error: several jobs are possible only in plain format$/m);
fails('no number', [ '--jobs' => 'many' ], qr/invalid value "many" for option -j/);
fails('0', [ '--jobs' => 0 ], qr/-j\/--jobs must be in range 1\.\.1024/);
fails('slow', [ '--jobs' => 4, '--max-rate' => '64k' ], qr/transfer rate of 64 kB\/s is too low for 4 jobs/);
$primary->command_fails_like([ 'pg_basebackup', '--jobs' => 2, '--target' => 'blackhole', '--wal-method' => 'none' ], qr/several jobs are possible only in plain format/, 'not to a target');

# Commands that our pg_basebackup does not send
foreach my $case (
	[ q{BASE_BACKUP (SHARE 'abc')}, qr/invalid key of a shared base backup/ ],
	[ q{BASE_BACKUP (SHARE '} . '00' x 20 . q{')}, qr/there is no shared base backup with this key/ ],
	[ q{BASE_BACKUP (SHARE '} . '7f' x 20 . q{')}, qr/there is no shared base backup with this key/ ],
	[ q{BASE_BACKUP (SHARE '} . 'xy' x 20 . q{')}, qr/invalid hexadecimal digit/ ],
	[ q{BASE_BACKUP (SHARE 'abc', WAL)}, qr/options of a shared base backup are those with which it has begun/ ],
	[ q{BASE_BACKUP (SHARE 'abc', MANIFEST 'yes')}, qr/options of a shared base backup are those with which it has begun/ ],
	[ q{BASE_BACKUP (SHARED 1)}, qr/1 is outside the valid range for parameter "SHARED"/ ],
	[ q{BASE_BACKUP (SHARED 2, SHARE 'abc')}, qr/conflicting or redundant options/ ],
	[ q{BASE_BACKUP (SHARED 2, SHARED 3)}, qr/conflicting or redundant options/ ],
	[ q{BASE_BACKUP (SHARED 2, TARGET 'blackhole')}, qr/can be shared only if it is sent to the client/ ])
{
	my ($command, $error) = @$case;
	my ($status, $out, $err) = $primary->psql('postgres', $command, replication => 'true');
	like($err, $error, "$command is refused");
}

# ----------------------------------------------------------------------
# Processes that end
# ----------------------------------------------------------------------

# While a backup by 4 connections goes on, all of which send.
my $slow = [ '--jobs' => 4, '--max-rate' => '4M' ];
my $leader = q{backend_type = 'walsender' AND query ~ 'BASE_BACKUP.*SHARED'};
my $other = q{backend_type = 'walsender' AND query ~ 'BASE_BACKUP.*SHARE '};

sub wait_for_all
{
	ok($server->poll_query_until('postgres', qq{
		SELECT count(*) = 4 FROM pg_stat_progress_basebackup JOIN pg_stat_activity USING (pid)
		WHERE phase = 'streaming database files' AND backup_streamed > 0 AND ($leader OR $other)}), 'all connections send files');
}

# The children of pg_basebackup that receive files
sub children
{
	my ($backup) = @_;
	my $parent = $backup->{KIDS}[0]{PID};
	my ($out) = run_command([ 'ps', '-o', 'pid=', '--ppid', $parent ]);
	my @children = sort { $a <=> $b } split ' ', $out;

	# the first of them receives WAL
	return @children[ 1 .. $#children ];
}

foreach my $case ([ 'terminate', 'the leader', $leader ], [ 'terminate', 'another', $other ], [ 'cancel', 'the leader', $leader ], [ 'cancel', 'another', $other ])
{
	my ($how, $who, $which) = @$case;
	# as of PostgreSQL, what the server says may come after the complaint that it ends
	fails("$how $who", $slow, qr/terminating connection|canceling statement|COPY stream ended|another connection of this base backup has failed/, sub {
		wait_for_all();
		$primary->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE $which LIMIT 1");
	});
}
fails('terminate who sends WAL', $slow, qr/background process terminated unexpectedly/, sub {
	wait_for_all();
	$primary->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'walsender' AND query ~ 'START_REPLICATION'});
});
fails('kill a child', $slow, qr/another connection of this base backup has failed/, sub {
	my ($backup) = @_;
	wait_for_all();
	my @children = children($backup);
	is(scalar(@children), 3, 'three children');
	kill 'KILL', $children[1];
});
fails('kill a child by SIGTERM', $slow, qr/another connection of this base backup has failed/, sub {
	my ($backup) = @_;
	wait_for_all();
	kill 'TERM', (children($backup))[2];
});
fails('kill pg_basebackup', [ @$slow, '--wal-method' => 'none' ], undef, sub {
	my ($backup) = @_;
	wait_for_all();
	kill 'KILL', $backup->{KIDS}[0]{PID};
});

# A disk fails, whoever writes the file.
if ($ENV{AIO_WATCH})
{
	foreach my $table (qw(large large2 there))
	{
		my ($file) = $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$table')") =~ m{(\d+)$};
		local @ENV{ 'LD_PRELOAD', 'ASAN_OPTIONS', 'WATCH_FAIL', 'WATCH_PATH' } = (@preloaded, 'write', "/$file");
		my $to = $primary->backup_dir . '/failing';
		my ($out, $err);
		ok(!IPC::Run::run([ arguments($to, '--jobs' => 4, '--dbname' => $primary->connstr('postgres')) ], '>', \$out, '2>', \$err), "$table cannot be written");
		like($err, qr/^pg_basebackup: error: could not (write to|close) file ".*\/$file": No space left on device$/m, 'and pg_basebackup says so');
		ok(!-e $to, 'nothing is left');
		rmtree("$to.elsewhere");
	}
	is_quiet('a disk that fails');
}

# A damaged page is found by whoever sends the file.
{
	my @damaged = map { $primary->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") } qw(large large2 more);
	$primary->stop;
	damage($primary, $_, 3) foreach @damaged;
	$primary->start;
	my $to = $primary->backup_dir . '/damaged';
	my ($out, $err) = run_command([ arguments($to, '--jobs' => 4, '--dbname' => $primary->connstr('postgres')) ]);
	like($err, qr/checksum verification failed in file "\.\/\Q$_\E", block 3:/, "a damaged page of $_ is found") foreach @damaged;
	like($err, qr/checksum error occurred/, 'and the backup fails');
	ok(-e "$to/PG_VERSION", 'but is left, as ever');
	is_quiet('damaged');
	$primary->stop;
	$primary->append_conf('postgresql.conf', "zero_damaged_pages = on\nmax_wal_senders = 5\n");
	$primary->start;
	$primary->safe_psql('postgres', 'DROP TABLE more; VACUUM (FULL) large; VACUUM (FULL) large2; CHECKPOINT');
	rmtree([ glob($primary->backup_dir . '/*') ]);
}

# There are not enough walsenders.
fails('too many', [ '--jobs' => 20 ], qr/number of requested standby connections exceeds "max_wal_senders" \(currently 5\)/);
my $enough = take('as many as there may be', '--jobs' => 4);
verify($enough, 'as many as there may be');
is(differences($primary->data_dir, $enough), '', 'after all that, each file of the backup is that of the server');

# Lists of addresses: in the connection string, in a service, in the environment.
{
	$primary->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\n");
	$primary->restart;
	my $service = PostgreSQL::Test::Utils::tempdir() . '/services';
	my $lists = 'host=a.invalid,b.invalid hostaddr=127.0.0.2,127.0.0.1 port=1,' . $primary->port;
	append_to_file($service, "[lists]\n" . ($lists =~ s/ /\n/gr) . "\n");

	foreach my $case (
		[ 'hosts and addresses', "$lists dbname=postgres" ],
		[ 'addresses alone', 'hostaddr=127.0.0.1,127.0.0.1 port=' . $primary->port ],
		[ 'a service', 'service=lists', PGSERVICEFILE => $service ],
		[ 'a service of the environment', 'dbname=postgres', PGSERVICEFILE => $service, PGSERVICE => 'lists' ],
		[ 'addresses of the environment', 'host=a.invalid,b.invalid port=1,' . $primary->port, PGHOSTADDR => '127.0.0.2,127.0.0.1' ],
		[ 'a socket beside an address', 'host=b.invalid,' . $primary->host . ' port=1,' . $primary->port, PGHOSTADDR => '127.0.0.2,' ])
	{
		my ($name, $string, %environment) = @$case;
		delete local @ENV{ 'PGHOST', 'PGPORT' };
		local @ENV{ keys %environment } = values %environment;
		my $to = $primary->backup_dir . '/lists';
		my ($out, $err);
		ok(IPC::Run::run([ arguments($to, '--jobs' => 3, '--dbname' => $string) ], '>', \$out, '2>', \$err), "$name: can be backed up")
		  or diag $err;
		rmtree([ $to, "$to.elsewhere" ]);
	}
}

# ----------------------------------------------------------------------
# A standby
# ----------------------------------------------------------------------

{
	my $standby = restored($enough, 'standby');
	my ($there) = glob($standby->data_dir . '/pg_tblspc/*');
	my $options = sub { return ('--jobs' => 4, '--tablespace-mapping' => readlink($there) . '=' . $primary->backup_dir . "/$_[0]") };

	$server = $standby;
	my $to = take('of a standby', $options->('complete'));
	verify($to, 'of a standby');
	$server = $primary;
	restored($to, 'of_standby')->stop;

	# Which of several servers it is, the first connection decides.
	my $any = join ' ', 'host=' . join(',', map { $_->host } $primary, $standby), 'port=' . join(',', map { $_->port } $primary, $standby),
		'load_balance_hosts=random dbname=postgres';
	foreach my $turn (1 .. 3)
	{
		my $of_any = take("any of two servers, $turn", '--jobs' => 3, ($options->("any$turn"))[ 2, 3 ], '--dbname' => $any);
		verify($of_any, "any of two servers, $turn");
	}

	$server = $standby;
	fails('promotion', [ $options->('partial'), '--max-rate' => '8M', '--wal-method' => 'none' ], qr/the standby was promoted during online backup/, sub {
		wait_for_all();
		$standby->promote;
	});
	like(slurp_file($standby->logfile), qr/promoted during online backup\n.*HINT:  Take another base backup/, 'promotion: files are not sent any more');
	$standby->stop;
	$server = $primary;
}

# ----------------------------------------------------------------------
# Stock
# ----------------------------------------------------------------------

SKIP:
{
	my $stock = $ENV{AIO_REFERENCE};
	skip 'AIO_REFERENCE names no installation without our changes', 1 unless $stock;

	my $to = $primary->backup_dir . '/by_stock';
	my ($program, @arguments) = arguments($to, '--dbname' => $primary->connstr('postgres'));
	{
		local $ENV{LD_LIBRARY_PATH} = join ':', glob("$stock/lib*");
		command_ok([ "$stock/bin/$program", @arguments ], q{stock's pg_basebackup with our server});
	}
	is(differences($primary->data_dir, $to), '', 'each file of the backup is that of the server');

	my $server = PostgreSQL::Test::Cluster->new('stock', install_path => $stock);
	$server->init(allows_streaming => 1);
	$server->start;
	my $failing = $primary->backup_dir . '/of_stock';
	my ($out, $err) = run_command([ 'pg_basebackup', '--checkpoint' => 'fast', '--jobs' => 2, '--pgdata' => $failing, '--dbname' => $server->connstr('postgres') ]);
	like($err, qr/^pg_basebackup: error: server does not support parallel base backups\npg_basebackup: hint: Use --jobs=1\.$/m, q{stock's server is refused});
	ok(!-e $failing, 'and nothing is left');
	command_ok([ 'pg_basebackup', '--checkpoint' => 'fast', '--jobs' => 1, '--pgdata' => $failing, '--dbname' => $server->connstr('postgres') ], 'but for one job');
	$server->stop;
}

unlike(slurp_file($primary->logfile), qr/PANIC|TRAP|leaked|resource was not closed/, 'the log has no complaint');
$primary->stop;
done_testing();
