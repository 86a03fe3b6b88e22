/*-------------------------------------------------------------------------
 *
 * pg_test_aio.c
 *	  Measures the asynchronous I/O of a directory's disk, and suggests
 *	  settings.
 *
 * The order of tests.  All of them are run twice: first to count the
 * measurements, then to make them; see begin_measurement().
 *
 * Nothing has to be cleaned up, whatever ends the program while it measures:
 * the test file has no name, and threads and rings go with the process.  So
 * signals do what they do by default; SIGPIPE, too, for without a reader
 * nothing is worth measuring.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <locale.h>
#include <math.h>
#include <signal.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <time.h>
#include <unistd.h>

#include "common/logging.h"
#include "common/pg_prng.h"
#include "pg_test_aio.h"

/*
 * Is a test to be run in this mode?  WAL stays buffered where data is direct,
 * so buffered syncs matter in any case.
 */
static bool
is_wanted(TestKind test, FileMode mode)
{
	return options.tests[test] &&
		(options.modes[mode] || (test == TEST_SYNC && mode == MODE_BUFFERED));
}

static void
run_tests(void)
{
	for (TestKind test = 0; test < NTESTS; test++)
	{
		for (FileMode mode = 0; mode < NMODES; mode++)
		{
			if (!is_wanted(test, mode))
				continue;
			switch (test)
			{
				case TEST_READ:
				case TEST_WRITE:
				case TEST_MIXED:
					test_random(test, mode);
					break;
				case TEST_SYNC:
					test_sync(mode);
					break;
				case TEST_EXTEND:
					test_extend(mode);
					break;
				case TEST_STREAM:
					test_stream(mode);
					break;
			}
			if (!counting_measurements())
			{
				end_progress();
				print_table(test, mode);
			}
		}
	}
}

/* What kind of file system is it? */
static char *
file_system_name(void)
{
#ifdef __linux__
	static const struct
	{
		unsigned int type;
		const char *name;
	}			names[] = {
		{0xEF53, "ext4"}, {0x58465342, "xfs"}, {0x9123683E, "btrfs"},
		{0x2FC12FC1, "zfs"}, {0x01021994, "tmpfs"}, {0x794C7630, "overlayfs"},
		{0x6969, "nfs"}, {0xF2F52010, "f2fs"}, {0x65735546, "fuse"},
		{0xCA451A4E, "bcachefs"}, {0xFF534D42, "cifs"}, {0x00C36400, "ceph"},
	};
	struct statfs space;

	if (statfs(options.directory, &space) != 0)
		pg_fatal("could not access directory \"%s\": %m", options.directory);
	for (int i = 0; i < lengthof(names); i++)
	{
		if (names[i].type == (unsigned int) space.f_type)
			return pg_strdup(names[i].name);
	}
	return psprintf("0x%lX", (unsigned long) space.f_type);
#else
	return pg_strdup(_("unknown file system"));
#endif
}

static char *
today(void)
{
	time_t		now = time(NULL);
	char		date[64];

	strftime(date, sizeof(date), "%Y-%m-%d %H:%M", localtime(&now));
	return pg_strdup(date);
}

static void
print_head(void)
{
	printf(_("Directory:  %s (%s)\n"), results.directory, results.file_system);
	printf(_("Date:       %s\n"), results.date);
	printf(_("Test file:  %lld MB\n"), (long long) (results.file_size / MEGABYTE));
	for (int i = 0; i < results.nskips; i++)
		printf(_("Without %s: %s\n"), results.skips[i].what, results.skips[i].why);
	flush_output();
}

/* Create the test file, and find out what can be measured. */
static void
prepare(void)
{
	char	   *path;

	testfile_create();
	start_methods();
	for (FileMode mode = 0; mode < NMODES; mode++)
		options.modes[mode] &= testfile_has(mode);

	path = realpath(options.directory, NULL);
	results.directory = one_line(path != NULL ? path : options.directory);
	free(path);
	results.file_system = file_system_name();
	results.date = today();
	results.seconds = options.seconds;
	results.file_size = options.file_size;
	memcpy(results.requested, options.modes, sizeof(results.requested));

	run_tests();
	end_counting();
	print_head();
	if (strcmp(results.file_system, "tmpfs") == 0)
		pg_log_warning("directory \"%s\" is in memory: no disk is measured", options.directory);
	if (geteuid() == 0)
	{
		pg_log_warning("root may use what a server may not, such as io_uring, and as much memory for it as it wants");
		pg_log_warning_hint("Run this program as the account that runs the server.");
	}
	if (seconds_of_all() == 0)
		pg_fatal("there is nothing to measure: these tests need a method that can be used");
}

/* Fill the test file, if there is a test that needs all of it. */
static void
fill(void)
{
	if (!options.tests[TEST_READ] && !options.tests[TEST_WRITE] &&
		!options.tests[TEST_MIXED] && !options.tests[TEST_STREAM])
		return;
	testfile_fill(options.file_size);
	if (testfile_size() < options.file_size)
	{
		results.file_size = options.file_size = testfile_size();
		printf(_("Writing takes long, so the test file has %lld MB\n"),
			   (long long) (results.file_size / MEGABYTE));
	}
}

/* Run all tests, and print what comes of them. */
static void
measure(void)
{
	prepare();
	printf(_("This takes about %.0f s, and the time to fill the test file\n"),
		   ceil(seconds_of_all()));
	flush_output();
	cpu_begin();
	fill();
	run_tests();
	results.others = cpu_others();
}

/* Print the tables of an earlier run. */
static void
tell(void)
{
	results_read_json(options.from_json);
	print_head();
	for (TestKind test = 0; test < NTESTS; test++)
	{
		for (FileMode mode = 0; mode < NMODES; mode++)
			print_table(test, mode);
	}
}

int
main(int argc, char *argv[])
{
	pg_logging_init(argv[0]);
	set_pglocale_pgservice(argv[0], PG_TEXTDOMAIN("pg_test_aio"));

	/*
	 * Numbers are not written as people write them here or there: they go
	 * into JSON, postgresql.conf and a script, and are read from the first.
	 */
	setlocale(LC_NUMERIC, "C");

	/* a file that must not be so large is an error like others */
	pqsignal(SIGXFSZ, SIG_IGN);
	pg_prng_seed(&pg_global_prng_state, (uint64) now_ns());

	parse_options(argc, argv);
	if (options.from_json != NULL)
		tell();
	else
		measure();
	print_recommendations();
	if (options.json_path != NULL)
		results_write_json(options.json_path);
	if (options.plot_path != NULL)
		plot(options.plot_path);
	flush_output();
	return 0;
}
