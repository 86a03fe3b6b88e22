/*-------------------------------------------------------------------------
 *
 * options.c
 *	  What the user wants.
 *
 * Whatever would fail after a minute of measuring is tried before it, so far as
 * that can be done: programs that are needed, and files that are to be written.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/logging.h"
#include "fe_utils/option_utils.h"
#include "getopt_long.h"
#include "pg_test_aio.h"

#define FILE_SIZE_MIN	(16 * MEGABYTE)
#define FILE_SIZE_LIMIT (MEGABYTE * MEGABYTE)

#define SECONDS_MIN		0.01
#define SECONDS_LIMIT	3600

static const char *progname;

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
	printf(_("      --direct                 direct I/O only, but for syncs of WAL\n"));
	printf(_("      --buffered               buffered I/O only\n"));
	printf(_("\nWhat is told:\n"));
	printf(_("  -o, --plot=FILE              draw the results to a new file, .svg or .png, with gnuplot\n"));
	printf(_("  -j, --json=FILE              write the results to a new file\n"));
	printf(_("  -f, --from-json=FILE         measure nothing, and tell the results of an earlier run\n"));
	printf(_("  -P, --progress               show progress (default: if standard error is a terminal)\n"));
	printf(_("      --no-progress            do not show progress\n"));
	printf(_("  -V, --version                output version information, then exit\n"));
	printf(_("  -?, --help                   show this help, then exit\n"));
	printf(_("\nRun it as the account of the server, which may be allowed less than others.\n"));
	printf(_("The test file has no name; where that cannot be, it is unlinked while it is empty.\n"));
	printf(_("\nReport bugs to <%s>.\n"), PACKAGE_BUGREPORT);
	printf(_("%s home page: <%s>\n"), PACKAGE_NAME, PACKAGE_URL);
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
parse_seconds(const char *string)
{
	char	   *end;
	double		seconds;

	errno = 0;
	seconds = strtod(string, &end);
	if (end == string || *end != '\0' || errno != 0)
	{
		pg_log_error("invalid value \"%s\" for option %s", string, "-s/--seconds-per-test");
		bad_option();
	}
	if (!(seconds >= SECONDS_MIN && seconds <= SECONDS_LIMIT))
		pg_fatal("%s must be in range %g..%d", "-s/--seconds-per-test", SECONDS_MIN, SECONDS_LIMIT);
	return seconds;
}

/* Parse a size; returns bytes. */
static int64
parse_size(const char *string)
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
	size = strtoi64(string, &end, 10);
	for (int i = 0; i < lengthof(units) && end != string && errno == 0; i++)
	{
		if (strcmp(end, units[i].name) != 0)
			continue;
		/* a negative one could overflow, too */
		if (size < 0 || size > FILE_SIZE_LIMIT / units[i].size ||
			size * units[i].size < FILE_SIZE_MIN)
			pg_fatal("%s must be in range %s..%s", "-S/--file-size", "16MB", "1TB");
		/* whole megabytes */
		return size * units[i].size / MEGABYTE * MEGABYTE;
	}
	pg_log_error("invalid value \"%s\" for option %s", string, "-S/--file-size");
	pg_log_error_hint("Valid units for this option are \"kB\", \"MB\", \"GB\", and \"TB\".");
	exit(1);
}

/* Set 'chosen' for each of a comma-separated list of names. */
static void
parse_list(const char *string, const char *option, const char *const *names,
		   int n, bool *chosen)
{
	char	   *list = pg_strdup(string);
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

/*
 * The name that a new file will have, whatever way leads there.  Ends the
 * program if none can be created there.
 */
static char *
place_of_new_file(const char *path)
{
	const char *slash = last_dir_separator(path);
	const char *name = slash != NULL ? slash + 1 : path;
	char	   *parent = slash == NULL ? pg_strdup(".") :
		psprintf("%.*s", (int) (slash + 1 - path), path);
	char	   *found;
	char	   *place;

	if (name[0] == '\0')
		pg_fatal("\"%s\" is not the name of a file", path);
	found = realpath(parent, NULL);
	if (found == NULL || access(found, W_OK | X_OK) != 0)
		pg_fatal("could not create file \"%s\": %m", path);
	pfree(parent);
	place = psprintf("%s/%s", found, name);
	free(found);
	return place;
}

/* What we are going to write must not exist, and it must be possible to. */
static void
check_new_file(const char *path)
{
	struct stat status;

	pfree(place_of_new_file(path));
	if (lstat(path, &status) == 0)
	{
		pg_log_error("file \"%s\" exists", path);
		pg_log_error_hint("No file is overwritten: remove it, or choose another name.");
		exit(1);
	}
}

/* Check what is to be written at the end. */
static void
check_output(void)
{
	if (options.plot_path != NULL)
	{
		if (options.from_json == NULL && !options.tests[TEST_READ] &&
			!options.tests[TEST_WRITE] && !options.tests[TEST_MIXED])
			pg_fatal("there is nothing to plot without the tests %s, %s or %s", "read", "write", "mixed");
		plot_check(options.plot_path);
		check_new_file(options.plot_path);
	}
	if (options.json_path != NULL)
		check_new_file(options.json_path);
	if (options.plot_path != NULL && options.json_path != NULL &&
		strcmp(place_of_new_file(options.plot_path),
			   place_of_new_file(options.json_path)) == 0)
		pg_fatal("options %s and %s name the same file", "-o/--plot", "-j/--json");
}

/*
 * Take one option.  Returns its name if it says what to measure, otherwise
 * NULL.
 */
static const char *
take_option(int c, char *value)
{
	const char *method_names[METHODS_LIMIT];
	int			nmethods = 0;

	switch (c)
	{
		case 'D':
			options.directory = value;
			return "-D/--directory";
		case 's':
			options.seconds = parse_seconds(value);
			return "-s/--seconds-per-test";
		case 'S':
			options.file_size = parse_size(value);
			return "-S/--file-size";
		case 'd':
			if (!option_parse_int(value, "-d/--max-depth", 1, DEPTH_LIMIT,
								  &options.max_depth))
				exit(1);
			return "-d/--max-depth";
		case 'm':
			for (; all_methods[nmethods] != NULL; nmethods++)
				method_names[nmethods] = all_methods[nmethods]->name;
			parse_list(value, "-m/--methods", method_names, nmethods,
					   options.methods);
			return "-m/--methods";
		case 't':
			parse_list(value, "-t/--tests", test_names, NTESTS, options.tests);
			return "-t/--tests";
		case 1:
			options.modes[MODE_DIRECT] = true;
			return "--direct";
		case 2:
			options.modes[MODE_BUFFERED] = true;
			return "--buffered";
		case 'o':
			options.plot_path = value;
			return NULL;
		case 'j':
			options.json_path = value;
			return NULL;
		case 'f':
			options.from_json = value;
			return NULL;
		case 'P':
			options.progress = true;
			return NULL;
		case 3:
			options.progress = false;
			return NULL;
		default:
			/* getopt_long already emitted a complaint */
			bad_option();
	}
}

/* Set 'options', or end the program. */
void
parse_options(int argc, char *argv[])
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
	const char *measuring = NULL;	/* an option that says what to measure */
	int			c;

	progname = get_progname(argv[0]);
	handle_help_version_opts(argc, argv, "pg_test_aio", usage);
	options.progress = isatty(fileno(stderr));
	while ((c = getopt_long(argc, argv, "d:D:f:j:m:o:Ps:S:t:",
							long_options, NULL)) != -1)
	{
		const char *name = take_option(c, optarg);

		if (name != NULL)
			measuring = name;
	}
	if (optind < argc)
	{
		pg_log_error("too many command-line arguments (first is \"%s\")", argv[optind]);
		bad_option();
	}
	if (options.from_json != NULL && measuring != NULL)
	{
		pg_log_error("options %s and %s cannot be used together",
					 "-f/--from-json", measuring);
		bad_option();
	}
	default_to_all(options.methods, METHODS_LIMIT);
	default_to_all(options.tests, NTESTS);
	default_to_all(options.modes, NMODES);
	check_output();
}
