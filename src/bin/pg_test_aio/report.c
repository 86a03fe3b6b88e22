/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What is printed: tables, and settings.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "common/logging.h"
#include "pg_test_aio.h"

/* others may use so much of the CPUs, in per cent */
#define OTHERS_LIMIT	10

/* width of a setting, so that the reasons are one below the other */
#define SETTING_WIDTH	38

/* and of what is said of one method in a row */
#define COLUMNS_WIDTH	23

/* Have what was printed read, or end the program if that cannot be. */
void
flush_output(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		pg_fatal("could not write to standard output: %m");
}

static const char *
mode_title(FileMode mode)
{
	return mode == MODE_DIRECT ? _("direct I/O") : _("buffered I/O");
}

/* Is there a result?  'depth' may be -1, for any. */
static bool
has_results(TestKind test, FileMode mode, int depth)
{
	for (int i = 0; i < results.nresults; i++)
	{
		const Result *result = &results.results[i];

		if (result->test == test && result->mode == mode &&
			(depth == -1 || result->depth == depth))
			return true;
	}
	return false;
}

/* A row for each depth, three columns for each method */
static void
print_random(TestKind test, FileMode mode)
{
	static const char *const titles[] = {
		gettext_noop("Random reads"), gettext_noop("Random writes"),
		gettext_noop("Random reads (70 %) and writes")
	};
	const IoMethod *columns[METHODS_LIMIT];
	int			ncolumns = 0;

	printf(_("%s of %d kB, %s\n"), _(titles[test]), BLCKSZ / 1024, mode_title(mode));
	printf("%9s", "");
	for (int i = 0; all_methods[i] != NULL; i++)
	{
		if (results_find(&results, test, mode, all_methods[i]->name,
						 -1, -1) == NULL)
			continue;
		columns[ncolumns++] = all_methods[i];
		printf("  %21s", all_methods[i]->name);
	}
	printf("\n%9s", _("in flight"));
	for (int i = 0; i < ncolumns; i++)
		printf("  %7s %6s %6s", _("IOPS"), _("avg us"), _("p99 us"));
	printf("\n");
	for (int depth = 1; depth <= DEPTH_LIMIT; depth *= 2)
	{
		int			blanks = 0;

		if (!has_results(test, mode, depth))
			continue;
		printf("%9d", depth);
		for (int i = 0; i < ncolumns; i++)
		{
			const Result *result = results_find(&results, test, mode,
												columns[i]->name, depth, -1);

			if (result == NULL)
				blanks += COLUMNS_WIDTH;
			else
			{
				printf("%*s  %7.0f %6.0f %6.0f", blanks, "",
					   result->rate, result->average, result->p99);
				blanks = 0;
			}
		}
		printf("\n");
	}
}

static void
print_sync(FileMode mode)
{
	printf(_("Write and sync of %d kB, %s\n"), BLCKSZ / 1024, mode_title(mode));
	printf("%-28s %9s %7s %7s %7s %7s\n", "",
		   _("per s"), _("avg us"), _("p99 us"), _("max us"), _("sync us"));
	for (int i = 0; i < results.nresults; i++)
	{
		const Result *result = &results.results[i];
		char		label[NAME_LIMIT + 32];

		if (result->test != TEST_SYNC || result->mode != mode)
			continue;
		if (strcmp(result->how, "io_uring") == 0 ||
			strcmp(result->how, "worker") == 0)
			snprintf(label, sizeof(label), _("%s, %d in flight"),
					 result->how, result->depth);
		else
			strlcpy(label, result->how, sizeof(label));
		printf("%-28s %9.0f %7.0f %7.0f %7.0f", label,
			   result->rate, result->average, result->p99, result->max);
		if (result->aside > 0)
			printf(" %7.0f", result->aside);
		if (result->meanwhile > 0)
			printf(_("  %.1f writes during each sync"), result->meanwhile);
		printf("\n");
	}
}

static void
print_extend(FileMode mode)
{
	printf(_("Extending a file, %s\n"), mode_title(mode));
	printf("%-28s %9s %7s %7s %7s\n", "",
		   _("MB/s"), _("avg us"), _("p99 us"), _("max us"));
	for (int i = 0; i < results.nresults; i++)
	{
		const Result *result = &results.results[i];
		char		label[NAME_LIMIT + 32];

		if (result->test != TEST_EXTEND || result->mode != mode)
			continue;
		snprintf(label, sizeof(label), _("%s, %d blocks"),
				 result->how, result->size);
		printf("%-28s %9.0f %7.1f %7.1f %7.0f", label,
			   result->rate * result->size * BLCKSZ / MEGABYTE,
			   result->average, result->p99, result->max);
		if (result->aside > 0)
			printf(_("  allocating: %.0f us"), result->aside);
		printf("\n");
	}
}

static void
print_stream(FileMode mode)
{
	printf(_("Streaming writes and a sync, %s\n"), mode_title(mode));
	printf("%-28s %9s %9s %17s\n", "", _("MB/s"), _("sync ms"), _("longest stall ms"));
	for (int i = 0; i < results.nresults; i++)
	{
		const Result *result = &results.results[i];
		char		label[NAME_LIMIT + 64];

		if (result->test != TEST_STREAM || result->mode != mode)
			continue;
		if (mode == MODE_DIRECT)
			snprintf(label, sizeof(label), _("%s, %d in flight"),
					 result->how, result->depth);
		else if (result->size > 0)
			snprintf(label, sizeof(label), _("%s, paced by %d kB"),
					 result->how, result->size);
		else
			snprintf(label, sizeof(label), _("%s, not paced"), result->how);
		printf("%-28s %9.0f %9.1f %17.1f\n", label,
			   result->rate, result->aside / 1000, result->max / 1000);
	}
}

/* Print what came of a test, if anything did. */
void
print_table(TestKind test, FileMode mode)
{
	if (!has_results(test, mode, -1))
		return;
	printf("\n");
	switch (test)
	{
		case TEST_READ:
		case TEST_WRITE:
		case TEST_MIXED:
			print_random(test, mode);
			break;
		case TEST_SYNC:
			print_sync(mode);
			break;
		case TEST_EXTEND:
			print_extend(mode);
			break;
		case TEST_STREAM:
			print_stream(mode);
			break;
	}
	flush_output();
}

/* Print lines for postgresql.conf. */
void
print_recommendations(void)
{
	Recommendation lines[RECOMMENDATIONS_LIMIT];
	int			n = recommend(&results, lines);

	printf("\n");
	if (n == 0)
		printf(_("# too little was measured to recommend settings\n"));
	else if (results.requested[MODE_BUFFERED])
		printf(_("# settings for this directory; lines that are comments need no change\n"));
	else
		printf(_("# settings for this directory with direct I/O; lines that are comments need no change\n"));
	if (results.others >= OTHERS_LIMIT)
		printf(_("# others have used %.0f %% of the CPUs: measure again when they do not\n"),
			   results.others);
	for (int i = 0; i < n; i++)
	{
		const Recommendation *line = &lines[i];
		char	   *setting;

		if (line->value == NULL)
		{
			printf("# %s: %s\n", line->name, line->reason);
			continue;
		}
		setting = psprintf("%s%s = %s", line->comment ? "#" : "", line->name,
						   line->value);
		printf("%-*s # %s\n", SETTING_WIDTH, setting, line->reason);
		pfree(setting);
	}
}
