/*-------------------------------------------------------------------------
 *
 * plot.c
 *	  Draws the curves over depth, with gnuplot.
 *
 * The upper row has I/Os per second, the lower one 99th percentiles; a column
 * for each test.  The script holds the data and goes to gnuplot's input.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/logging.h"
#include "pg_test_aio.h"

#define PANEL_WIDTH		480
#define PLOT_HEIGHT		800

/* no latency is less, in microseconds: a logarithmic axis has no zero */
#define LATENCY_MIN		0.1

/* the columns of the data, after the depth */
#define RATE			2
#define LATENCY			3

static bool
has_extension(const char *path, const char *extension)
{
	size_t		length = strlen(path);

	return length > strlen(extension) &&
		strcmp(path + length - strlen(extension), extension) == 0;
}

/* Can a plot be drawn to this file?  Ends the program if not. */
void
plot_check(const char *path)
{
	if (!has_extension(path, ".svg") && !has_extension(path, ".png"))
		pg_fatal("the name of the plot must end in \".svg\" or \".png\": \"%s\"", path);
	fflush(NULL);
	if (system("gnuplot --version >/dev/null 2>&1") != 0)
	{
		pg_log_error("could not execute gnuplot, which draws the plot");
		pg_log_error_hint("Install it (Debian: gnuplot-nox), or leave out --plot.");
		exit(1);
	}
}

/* A string in gnuplot's single quotes, in which a quote is doubled */
static void
put_quoted(FILE *script, const char *string)
{
	fputc('\'', script);
	for (const char *c = string; *c != '\0'; c++)
	{
		if (*c == '\'')
			fputc('\'', script);
		fputc(*c, script);
	}
	fputc('\'', script);
}

/* The data of a curve, as a block that is named after it */
static void
put_data(FILE *script, TestKind test, FileMode mode, const char *method)
{
	fprintf(script, "$%s_%s_%s << END\n",
			test_names[test], mode_names[mode], method);
	for (int depth = 1; depth <= DEPTH_LIMIT; depth *= 2)
	{
		const Result *result = results_find(&results, test, mode, method,
											depth, -1);

		if (result != NULL)
			fprintf(script, "%d %.1f %.1f\n", depth, result->rate,
					Max(result->p99, LATENCY_MIN));
	}
	fprintf(script, "END\n");
}

/*
 * Set the axes of a panel such that all points are inside.  gnuplot would do
 * that itself, but complains if there is only one point.
 */
static void
put_axes(FILE *script, TestKind test, int column)
{
	int			deepest = 1;
	double		least = INFINITY;
	double		most = LATENCY_MIN;

	for (int i = 0; i < results.nresults; i++)
	{
		const Result *result = &results.results[i];
		double		value = column == RATE ? result->rate : result->p99;

		if (result->test != test)
			continue;
		deepest = Max(deepest, result->depth);
		least = Min(least, Max(value, LATENCY_MIN));
		most = Max(most, value);
	}
	fprintf(script, "set xrange [0.8:%.1f]\n", 1.25 * deepest);
	if (column == RATE)
		fprintf(script, "unset logscale y; set yrange [0:%.1f]\n", 1.1 * most);
	else
		fprintf(script, "set logscale y; set yrange [%g:%g]; unset key\n",
				least / 1.5, 1.5 * most);
}

/* A panel: one column of all data of a test */
static void
put_panel(FILE *script, TestKind test, int column)
{
	const char *separator = "plot ";

	fprintf(script, "set title '%s'\nset ylabel '%s'\n", test_names[test],
			column == RATE ? _("I/Os per second") : _("99th percentile, us"));
	put_axes(script, test, column);
	for (FileMode mode = 0; mode < NMODES; mode++)
	{
		for (int i = 0; all_methods[i] != NULL; i++)
		{
			const char *method = all_methods[i]->name;
			bool		direct = mode == MODE_DIRECT;

			if (results_find(&results, test, mode, method, -1, -1) == NULL)
				continue;
			fprintf(script, "%s$%s_%s_%s using 1:%d with linespoints "
					"linecolor %d dashtype %d pointtype %d "
					"title '%s, %s' noenhanced",
					separator, test_names[test], mode_names[mode], method,
					column, i + 1, direct ? 1 : 2, direct ? 7 : 6,
					method, mode_names[mode]);
			separator = ", ";
		}
	}
	fprintf(script, "\n");
}

static void
put_script(FILE *script, const char *path)
{
	char	   *title = psprintf(_("%s (%s), %s"), results.directory,
								 results.file_system, results.date);
	TestKind	panels[NTESTS];
	int			npanels = 0;
	int			width;

	for (TestKind test = TEST_READ; test <= TEST_MIXED; test++)
	{
		bool		found = false;

		for (FileMode mode = 0; mode < NMODES; mode++)
		{
			for (int i = 0; all_methods[i] != NULL; i++)
			{
				const char *method = all_methods[i]->name;

				if (results_find(&results, test, mode, method, -1, -1) == NULL)
					continue;
				put_data(script, test, mode, method);
				found = true;
			}
		}
		if (found)
			panels[npanels++] = test;
	}

	width = npanels * PANEL_WIDTH;
	if (has_extension(path, ".svg"))
		fprintf(script, "set terminal svg size %d,%d background 'white'\n",
				width, PLOT_HEIGHT);
	else
		fprintf(script, "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) "
				"{ set terminal pngcairo size %d,%d } "
				"else { set terminal png size %d,%d }\n",
				width, PLOT_HEIGHT, width, PLOT_HEIGHT);
	fprintf(script, "set multiplot layout 2,%d title ", npanels);
	put_quoted(script, title);
	fprintf(script, " noenhanced\nset logscale x 2\nset xlabel '%s'\n"
			"set grid\nset key below maxrows 4 font ',9'\n", _("in flight"));
	for (int column = RATE; column <= LATENCY; column++)
	{
		for (int i = 0; i < npanels; i++)
			put_panel(script, panels[i], column);
	}
	fprintf(script, "unset multiplot\n");
	pfree(title);
}

/* Draw to a file that is not there yet; its name ends in .svg or .png. */
void
plot(const char *path)
{
	FILE	   *script = NULL;
	bool		has_curves = false;
	int			fd;
	int			our_stdout;
	int			error;
	int			status;

	for (int i = 0; i < results.nresults; i++)
		has_curves |= results.results[i].test <= TEST_MIXED;
	if (!has_curves)
		pg_fatal("there is nothing to plot: no reads and writes were measured");

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		pg_fatal("could not create file \"%s\": %m", path);

	/* gnuplot gets the file, instead of a name that it might misunderstand */
	fflush(NULL);
	our_stdout = dup(STDOUT_FILENO);
	if (our_stdout >= 0 && dup2(fd, STDOUT_FILENO) >= 0)
		script = popen("gnuplot", "w");
	error = errno;
	if (our_stdout >= 0)
	{
		dup2(our_stdout, STDOUT_FILENO);
		close(our_stdout);
	}
	close(fd);
	if (script == NULL)
	{
		unlink(path);
		errno = error;
		pg_fatal("could not execute command \"%s\": %m", "gnuplot");
	}
	/* if it ends too early, its status tells, not what we write to it */
	pqsignal(SIGPIPE, SIG_IGN);
	put_script(script, path);
	status = pclose(script);
	pqsignal(SIGPIPE, SIG_DFL);
	if (status != 0)
	{
		unlink(path);
		pg_fatal("could not draw the plot: %s", wait_result_to_str(status));
	}
}
