/*-------------------------------------------------------------------------
 *
 * pg_test_aio.c
 *	  Measures the asynchronous I/O of a directory's disk, and suggests
 *	  settings.
 *
 * Options, the order of tests, and progress.  All tests are run twice: first
 * to count the measurements, then to make them; see begin_measurement().
 *
 * Nothing has to be cleaned up, whatever ends the program: the test file has
 * no name, and threads and rings go with the process.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <time.h>
#include <unistd.h>

#include "common/logging.h"
#include "common/pg_prng.h"
#include "fe_utils/option_utils.h"
#include "getopt_long.h"
#include "pg_test_aio.h"

#define FILE_SIZE_MIN	(16 * MEGABYTE)
#define FILE_SIZE_LIMIT (MEGABYTE * MEGABYTE)

#define SECONDS_MIN		0.01
#define SECONDS_LIMIT	3600

Options		options = {
	.directory = ".",
	.seconds = 0.5,
	.file_size = 1024 * MEGABYTE,
	.max_depth = DEPTH_LIMIT,
};

static const char *progname;

/* methods that are wanted and work, as in all_methods */
static bool usable[METHODS_LIMIT];

/* of all measurements, in units of the time of one */
static bool counting = true;
static double total = 0;
static double complete = 0;
static bool show_progress = false;

static void
usage(const char *name)
{
	printf(_("%s measures asynchronous I/O in a directory, and suggests settings for a server.\n\n"), name);
	printf(_("Usage:\n"));
	printf(_("  %s [OPTION]...\n"), name);
	printf(_("\nWhat is measured:\n"));
	printf(_("  -D, --directory=DIR          directory whose disk is measured (default: the current one)\n"));
	printf(_("  -s, --seconds-per-test=SECS  time for each measurement (default: 0.5)\n"));
	printf(_("  -S, --file-size=SIZE         size of the test file, with kB, MB, GB or TB (default: 1GB)\n"));
	printf(_("  -d, --max-depth=NUM          most I/Os in flight (default: %d)\n"), DEPTH_LIMIT);
	printf(_("  -m, --methods=LIST           of sync, worker, io_uring, libaio (default: all)\n"));
	printf(_("  -t, --tests=LIST             of read, write, mixed, sync, extend, stream (default: all)\n"));
	printf(_("      --direct                 direct I/O only\n"));
	printf(_("      --buffered               buffered I/O only\n"));
	printf(_("\nWhat is told:\n"));
	printf(_("  -o, --plot=FILE              draw the results to a new file, .svg or .png, with gnuplot\n"));
	printf(_("  -j, --json=FILE              write the results to a new file\n"));
	printf(_("  -f, --from-json=FILE         measure nothing, and tell the results of an earlier run\n"));
	printf(_("  -P, --progress               show progress (default: if standard error is a terminal)\n"));
	printf(_("      --no-progress            do not show progress\n"));
	printf(_("  -V, --version                output version information, then exit\n"));
	printf(_("  -?, --help                   show this help, then exit\n"));
	printf(_("\nThe test file has no name; where that cannot be, it is unlinked while it is empty.\n"));
	printf(_("\nReport bugs to <%s>.\n"), PACKAGE_BUGREPORT);
	printf(_("%s home page: <%s>\n"), PACKAGE_NAME, PACKAGE_URL);
}

/* Can a method be used on a file that has been opened so? */
bool
method_is_usable(const IoMethod *method, FileMode mode)
{
	for (int i = 0; all_methods[i] != NULL; i++)
	{
		if (all_methods[i] == method)
			return usable[i] && (mode == MODE_DIRECT || !method->direct_only);
	}
	return false;
}

/* The first of a list that ends with NULL; NULL if there is none. */
const IoMethod *
first_usable(const IoMethod *const *methods, FileMode mode)
{
	while (*methods != NULL && !method_is_usable(*methods, mode))
		methods++;
	return *methods;
}

/*
 * Announce a measurement that takes 'weight' times the time of a test, with a
 * description.  Returns whether it is to be made now; otherwise it has only
 * been counted.
 */
bool
begin_measurement(double weight, const char *fmt,...)
{
	if (counting)
	{
		total += weight;
		return false;
	}
	if (show_progress)
	{
		char		what[128];
		va_list		args;

		va_start(args, fmt);
		vsnprintf(what, sizeof(what), fmt, args);
		va_end(args);
		fprintf(stderr, _("%3.0f %%, about %.0f s left: %-50s"), 100 * complete / total,
				ceil((total - complete) * options.seconds), what);
		fputc(isatty(fileno(stderr)) ? '\r' : '\n', stderr);
	}
	complete += weight;
	return true;
}

/* Wipe out the line of progress, if it is one that is overwritten. */
static void
end_progress(void)
{
	if (show_progress && isatty(fileno(stderr)))
		fprintf(stderr, "%79s\r", "");
}

static void
run_tests(void)
{
	for (TestKind test = 0; test < NTESTS; test++)
	{
		for (FileMode mode = 0; mode < NMODES; mode++)
		{
			if (!options.tests[test] || !options.modes[mode])
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
			if (!counting)
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
	char text[	64];

	strftime(text, sizeof(text), "%Y-%m-%d %H:%M", localtime(&now));
	return pg_strdup(text);
}

/* Try the methods that are wanted, and keep those that work. */
static void
start_methods(const bool *wanted)
{
	for (int i = 0; all_methods[i] != NULL; i++)
	{
		const IoMethod *method = all_methods[i];
		char	   *why_not;

		if (!wanted[i])
			continue;
		why_not = method->start(method->max_depth);
		usable[i] = why_not == NULL;
		if (why_not != NULL)
		{
			results_skip(method->name, why_not);
			pfree(why_not);
		}
	}
}

static void
print_head(void)
{
	printf(_("Directory:  %s (%s)\n"), results.directory, results.file_system);
	printf(_("Date:       %s\n"), results.date);
	printf(_("Test file:  %lld MB\n"), (long long) (results.file_size / MEGABYTE));
	for (int i = 0; i < results.nskips; i++)
		printf(_("Without %s: %s\n"), results.skips[i].what, results.skips[i].why);
	fflush(stdout);
}

/* Run all tests, and print what comes of them. */
static void
measure(const bool *wanted)
{
	char		path[MAXPGPATH];

	testfile_create();
	start_methods(wanted);
	for (FileMode mode = 0; mode < NMODES; mode++)
		options.modes[mode] &= testfile_has(mode);

	results.directory = one_line(realpath(options.directory, path) != NULL ?
								 path : options.directory);
	results.file_system = file_system_name();
	results.date = today();
	results.seconds = options.seconds;
	results.file_size = options.file_size;
	memcpy(results.requested, options.modes, sizeof(results.requested));
	print_head();
	if (strcmp(results.file_system, "tmpfs") == 0)
		pg_log_warning("directory \"%s\" is in memory: no disk is measured", options.directory);

	run_tests();
	counting = false;
	if (total == 0)
		pg_fatal("there is nothing to measure: none of these methods can be used");
	printf(_("This takes about %.0f s, and the time to fill the test file\n"),
		   ceil(total * options.seconds));
	fflush(stdout);

	if (options.tests[TEST_READ] || options.tests[TEST_WRITE] ||
		options.tests[TEST_MIXED] || options.tests[TEST_STREAM])
	{
		testfile_fill(options.file_size);
		if (testfile_size() < options.file_size)
		{
			results.file_size = options.file_size = testfile_size();
			printf(_("Writing takes long, so the test file has %lld MB\n"),
				   (long long) (results.file_size / MEGABYTE));
		}
	}
	run_tests();
	for (int i = 0; i < results.nskips; i++)
	{
		if (strcmp(results.skips[i].what, "fallocate") == 0 ||
			strcmp(results.skips[i].what, "ahead") == 0)
			printf(_("Without %s: %s\n"), results.skips[i].what, results.skips[i].why);
	}
}

/* Does not return; the user has been told what is wrong. */
static pg_noreturn void
bad_option(void)
{
	pg_log_error_hint("Try \"%s --help\" for more information.", progname);
	exit(1);
}

/* Parse a number of seconds. */
static double
parse_seconds(const char *text)
{
	char	   *end;
	double		seconds;

	errno = 0;
	seconds = strtod(text, &end);
	if (end == text ||*end != '\0' || errno != 0)
	{
		pg_log_error("invalid value \"%s\" for option %s", text, "-s/--seconds-per-test");
		bad_option();
	}
	if (!(seconds >= SECONDS_MIN && seconds <= SECONDS_LIMIT))
		pg_fatal("%s must be in range %g..%d", "-s/--seconds-per-test", SECONDS_MIN, SECONDS_LIMIT);
	return seconds;
}

/* Parse a size; returns bytes. */
static int64
parse_size(const char *text)
{
	static const struct
	{
		const char *name;
		int64		size;
	}			units[] = {
		{"", MEGABYTE}, {"kB", KILOBYTE}, {"MB", MEGABYTE},
		{"GB", 1024 * MEGABYTE}, {"TB", MEGABYTE * MEGABYTE},
	};
	char	   *end;
	int64		size;

	errno = 0;
	size = strtoi64(text, &end, 10);
	for (int i = 0; i < lengthof(units) && end != text &&errno == 0; i++)
	{
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (size > FILE_SIZE_LIMIT / units[i].size ||
			size * units[i].size < FILE_SIZE_MIN)
			pg_fatal("%s must be in range %s..%s", "-S/--file-size", "16MB", "1TB");
		/* whole megabytes */
		return size * units[i].size / MEGABYTE * MEGABYTE;
	}
	pg_log_error("invalid value \"%s\" for option %s", text, "-S/--file-size");
	pg_log_error_hint("Valid units for this option are \"kB\", \"MB\", \"GB\", and \"TB\".");
	exit(1);
}

/* Set 'chosen' for each of a comma-separated list of names. */
static void
parse_list(const char *text, const char *option, const char *const *names,
		   int n, bool *chosen)
{
	char	   *list = pg_strdup(text);
	char	   *rest = list;
	char	   *item;

	while ((item = strsep(&rest, ",")) != NULL)
	{
		int			i = 0;

		while (i < n && strcmp(names[i], item) != 0)
			i++;
		if (i == n)
		{
			pg_log_error("invalid value \"%s\" for option %s", item, option);
			bad_option();
		}
		chosen[i] = true;
	}
	pg_free(list);
}

/* All, if none has been chosen. */
static void
default_to_all(bool *chosen, int n)
{
	for (int i = 0; i < n; i++)
	{
		if (chosen[i])
			return;
	}
	memset(chosen, true, n);
}

/* What we are going to write must not exist, and it must be possible to. */
static void
check_new_file(const char *path)
{
	char		parent[MAXPGPATH];
	struct stat status;

	if (lstat(path, &status) == 0)
	{
		pg_log_error("file \"%s\" exists", path);
		pg_log_error_hint("No file is overwritten: remove it, or choose another name.");
		exit(1);
	}
	strlcpy(parent, path, sizeof(parent));
	get_parent_directory(parent);
	if (access(parent[0] == '\0' ? "." : parent, W_OK | X_OK) != 0)
		pg_fatal("could not create file \"%s\": %m", path);
}

int
main(int argc, char *argv[])
{
	static struct option long_options[] = {
		{"directory", required_argument, NULL, 'D'},
		{"seconds-per-test", required_argument, NULL, 's'},
		{"file-size", required_argument, NULL, 'S'},
		{"max-depth", required_argument, NULL, 'd'},
		{"methods", required_argument, NULL, 'm'},
		{"tests", required_argument, NULL, 't'},
		{"plot", required_argument, NULL, 'o'},
		{"json", required_argument, NULL, 'j'},
		{"from-json", required_argument, NULL, 'f'},
		{"progress", no_argument, NULL, 'P'},
		{"direct", no_argument, NULL, 1},
		{"buffered", no_argument, NULL, 2},
		{"no-progress", no_argument, NULL, 3},
		{NULL, 0, NULL, 0}
	};
	const char *method_names[METHODS_LIMIT] = {0};
	bool		wanted[METHODS_LIMIT] = {0};
	int			nmethods = 0;
	const char *plot_path = NULL;
	const char *json_path = NULL;
	const char *from_json = NULL;
	const char *measuring = NULL;	/* an option that says what to measure */
	int			c;

	pg_logging_init(argv[0]);
	set_pglocale_pgservice(argv[0], PG_TEXTDOMAIN("pg_test_aio"));
	progname = get_progname(argv[0]);
	handle_help_version_opts(argc, argv, "pg_test_aio", usage);

	/* a file that must not be so large is an error like others */
	pqsignal(SIGXFSZ, SIG_IGN);
	pqsignal(SIGPIPE, SIG_IGN);
	pg_prng_seed(&pg_global_prng_state, (uint64) now_ns());
	show_progress = isatty(fileno(stderr));
	while (all_methods[nmethods] != NULL)
	{
		method_names[nmethods] = all_methods[nmethods]->name;
		nmethods++;
	}

	while ((c = getopt_long(argc, argv, "d:D:f:j:m:o:Ps:S:t:",
							long_options, NULL)) != -1)
	{
		switch (c)
		{
			case 'D':
				options.directory = optarg;
				measuring = "-D/--directory";
				break;
			case 's':
				options.seconds = parse_seconds(optarg);
				measuring = "-s/--seconds-per-test";
				break;
			case 'S':
				options.file_size = parse_size(optarg);
				measuring = "-S/--file-size";
				break;
			case 'd':
				if (!option_parse_int(optarg, "-d/--max-depth", 1, DEPTH_LIMIT,
									  &options.max_depth))
					exit(1);
				measuring = "-d/--max-depth";
				break;
			case 'm':
				parse_list(optarg, "-m/--methods", method_names, nmethods,
						   wanted);
				measuring = "-m/--methods";
				break;
			case 't':
				parse_list(optarg, "-t/--tests", test_names, NTESTS,
						   options.tests);
				measuring = "-t/--tests";
				break;
			case 'o':
				plot_path = optarg;
				break;
			case 'j':
				json_path = optarg;
				break;
			case 'f':
				from_json = optarg;
				break;
			case 'P':
				show_progress = true;
				break;
			case 1:
				options.modes[MODE_DIRECT] = true;
				measuring = "--direct";
				break;
			case 2:
				options.modes[MODE_BUFFERED] = true;
				measuring = "--buffered";
				break;
			case 3:
				show_progress = false;
				break;
			default:
				/* getopt_long already emitted a complaint */
				bad_option();
		}
	}
	if (optind < argc)
	{
		pg_log_error("too many command-line arguments (first is \"%s\")", argv[optind]);
		bad_option();
	}
	if (from_json != NULL && measuring != NULL)
	{
		pg_log_error("options %s and %s cannot be used together",
					 "-f/--from-json", measuring);
		bad_option();
	}
	default_to_all(options.tests, NTESTS);
	default_to_all(options.modes, NMODES);
	default_to_all(wanted, nmethods);

	if (plot_path != NULL)
	{
		if (from_json == NULL && !options.tests[TEST_READ] &&
			!options.tests[TEST_WRITE] && !options.tests[TEST_MIXED])
			pg_fatal("there is nothing to plot without the tests %s, %s or %s", "read", "write", "mixed");
		plot_check(plot_path);
		check_new_file(plot_path);
	}
	if (json_path != NULL)
		check_new_file(json_path);

	if (from_json != NULL)
	{
		results_read_json(from_json);
		print_head();
		for (TestKind test = 0; test < NTESTS; test++)
		{
			for (FileMode mode = 0; mode < NMODES; mode++)
				print_table(test, mode);
		}
	}
	else
		measure(wanted);
	print_recommendations();
	if (json_path != NULL)
		results_write_json(json_path);
	if (plot_path != NULL)
		plot(plot_path);
	if (fflush(stdout) != 0 || ferror(stdout))
		pg_fatal("could not write to standard output: %m");
	return 0;
}
