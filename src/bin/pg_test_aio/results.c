/*-------------------------------------------------------------------------
 *
 * results.c
 *	  What has been measured: in memory, and as JSON.
 *
 * The JSON is one object.  Its members are those of Results, with the array
 * "results" of objects that have the members of Result, and the array
 * "skipped" of {"what", "why"}.  What is read back gives the same tables and
 * recommendations; members that are not known are ignored.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "common/jsonapi.h"
#include "common/logging.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "pg_test_aio.h"

/* a file that is larger than this is none of ours */
#define JSON_SIZE_LIMIT (16 * MEGABYTE)

/* and nothing of ours is nested deeper: the parser is recursive */
#define JSON_LEVEL_LIMIT 3

const char *const test_names[NTESTS] = {
	"read", "write", "mixed", "sync", "extend", "stream"
};
const char *const mode_names[NMODES] = {"direct", "buffered"};

Results		results;

/*
 * A copy that fits on a line, wherever the text comes from: it goes into
 * comments of postgresql.conf, and to gnuplot.
 */
char *
one_line(const char *text)
{
	char	   *copy = pg_strdup(text);

	for (char *c = copy; *c != '\0'; c++)
	{
		if ((unsigned char) *c < ' ')
			*c = '?';
	}
	return copy;
}

/*
 * Add a result, whose numbers are zero.  The pointer is good until the next
 * one is added.
 */
Result *
results_add(TestKind test, FileMode mode, const char *how, int depth, int size)
{
	Result	   *result;

	results.results = pg_realloc_array(results.results, Result,
									   results.nresults + 1);
	result = &results.results[results.nresults++];
	*result = (Result)
	{
		.test = test,.mode = mode,.depth = depth,.size = size
	};
	strlcpy(result->how, how, NAME_LIMIT);
	return result;
}

static int
compare_rates(const void *a, const void *b)
{
	double		rate_a = ((const Result *) a)->rate;
	double		rate_b = ((const Result *) b)->rate;

	return rate_a < rate_b ? -1 : rate_a > rate_b;
}

/* Add the median of some rounds, which are sorted here. */
void
results_add_median(TestKind test, FileMode mode, const char *how, int depth,
				   Result *rounds)
{
	Result	   *result = results_add(test, mode, how, depth, 0);
	const Result *median = &rounds[ROUNDS / 2];

	qsort(rounds, ROUNDS, sizeof(Result), compare_rates);
	result->rate = median->rate;
	result->low = rounds[0].rate;
	result->high = rounds[ROUNDS - 1].rate;
	result->average = median->average;
	result->p99 = median->p99;
	result->max = median->max;
	result->meanwhile = median->meanwhile;
}

/* Note that something cannot be measured. */
void
results_skip(const char *what, const char *why)
{
	results.skips = pg_realloc_array(results.skips, Skip, results.nskips + 1);
	results.skips[results.nskips++] = (Skip)
	{
		one_line(what), one_line(why)
	};
}

/* Returns a result, or NULL.  'depth' or 'size' may be -1, for any. */
const Result *
results_find(const Results *in, TestKind test, FileMode mode, const char *how,
			 int depth, int size)
{
	for (int i = 0; i < in->nresults; i++)
	{
		const Result *result = &in->results[i];

		if (result->test == test && result->mode == mode &&
			strcmp(result->how, how) == 0 &&
			(depth == -1 || result->depth == depth) &&
			(size == -1 || result->size == size))
			return result;
	}
	return NULL;
}

/* Returns why something has not been measured, or NULL if it has been. */
const char *
results_why_not(const Results *in, const char *what)
{
	for (int i = 0; i < in->nskips; i++)
	{
		if (strcmp(in->skips[i].what, what) == 0)
			return in->skips[i].why;
	}
	return NULL;
}

static void
append_string(StringInfo json, const char *string)
{
	appendStringInfoChar(json, '"');
	for (const char *c = string; *c != '\0'; c++)
	{
		if (*c == '"' || *c == '\\')
			appendStringInfoChar(json, '\\');
		appendStringInfoChar(json, *c);
	}
	appendStringInfoChar(json, '"');
}

static void
append_member(StringInfo json, const char *name, const char *value)
{
	appendStringInfo(json, "  \"%s\": ", name);
	append_string(json, value);
	appendStringInfoString(json, ",\n");
}

/* Write all to a new file. */
void
results_write_json(const char *path)
{
	StringInfoData json;
	int			fd;

	initStringInfo(&json);
	appendStringInfoString(&json, "{\n");
	append_member(&json, "program", "pg_test_aio (PostgreSQL) " PG_VERSION);
	append_member(&json, "directory", results.directory);
	append_member(&json, "file_system", results.file_system);
	append_member(&json, "date", results.date);
	appendStringInfo(&json, "  \"seconds\": %g,\n", results.seconds);
	appendStringInfo(&json, "  \"file_size\": " INT64_FORMAT ",\n",
					 results.file_size);
	for (FileMode mode = 0; mode < NMODES; mode++)
		appendStringInfo(&json, "  \"%s\": %s,\n", mode_names[mode],
						 results.requested[mode] ? "true" : "false");
	appendStringInfoString(&json, "  \"skipped\": [");
	for (int i = 0; i < results.nskips; i++)
	{
		appendStringInfo(&json, "%s\n    {\"what\": ", i > 0 ? "," : "");
		append_string(&json, results.skips[i].what);
		appendStringInfoString(&json, ", \"why\": ");
		append_string(&json, results.skips[i].why);
		appendStringInfoChar(&json, '}');
	}
	appendStringInfoString(&json, "\n  ],\n  \"results\": [");
	for (int i = 0; i < results.nresults; i++)
	{
		const Result *result = &results.results[i];

		appendStringInfo(&json, "%s\n    {\"test\": \"%s\", \"mode\": \"%s\", ",
						 i > 0 ? "," : "", test_names[result->test],
						 mode_names[result->mode]);
		appendStringInfo(&json, "\"how\": \"%s\", \"depth\": %d, \"size\": %d, ",
						 result->how, result->depth, result->size);
		appendStringInfo(&json, "\"rate\": %.1f, \"average\": %.1f, \"p99\": %.1f, ",
						 result->rate, result->average, result->p99);
		appendStringInfo(&json, "\"low\": %.1f, \"high\": %.1f, ",
						 result->low, result->high);
		appendStringInfo(&json, "\"max\": %.1f, \"aside\": %.1f, \"meanwhile\": %.2f}",
						 result->max, result->aside, result->meanwhile);
	}
	appendStringInfoString(&json, "\n  ]\n}\n");

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	if (fd < 0)
		pg_fatal("could not create file \"%s\": %m", path);
	errno = 0;
	if (write(fd, json.data, json.len) != json.len || close(fd) != 0)
	{
		/* if write didn't set errno, assume problem is no disk space */
		int			error = errno != 0 ? errno : ENOSPC;

		unlink(path);
		errno = error;
		pg_fatal("could not write file \"%s\": %m", path);
	}
	pfree(json.data);
}

/* Where the parser is */
typedef struct Reader
{
	const char *path;
	int			level;			/* of objects and arrays around */
	char		array[NAME_LIMIT];	/* name of the array at level 1 */
	char		field[NAME_LIMIT];
	Result		result;
	bool		has_test;
	bool		has_mode;
	char	   *what;
	char	   *why;
} Reader;

static pg_noreturn void
not_ours(const Reader *reader, const char *complaint)
{
	pg_log_error("file \"%s\" does not hold results of pg_test_aio: %s", reader->path, complaint);
	pg_log_error_hint("Use a file that was written with --json.");
	exit(1);
}

static void
enter_level(Reader *reader)
{
	if (++reader->level > JSON_LEVEL_LIMIT)
		not_ours(reader, _("it is nested too deep"));
}

static JsonParseErrorType
on_object_start(void *state)
{
	Reader	   *reader = state;

	enter_level(reader);
	if (reader->level == 3)
	{
		reader->result = (Result)
		{
			.how = ""
		};
		reader->has_test = reader->has_mode = false;
		reader->what = reader->why = NULL;
	}
	return JSON_SUCCESS;
}

static JsonParseErrorType
on_object_end(void *state)
{
	Reader	   *reader = state;
	const Result *result = &reader->result;

	if (reader->level-- != 3)
		return JSON_SUCCESS;
	if (strcmp(reader->array, "skipped") == 0)
	{
		if (reader->what == NULL || reader->why == NULL)
			not_ours(reader, _("what was skipped is not named"));
		results_skip(reader->what, reader->why);
	}
	else if (strcmp(reader->array, "results") == 0)
	{
		if (!reader->has_test || !reader->has_mode || result->how[0] == '\0')
			not_ours(reader, _("a result lacks \"test\", \"mode\" or \"how\""));
		*results_add(result->test, result->mode, result->how,
					 result->depth, result->size) = *result;
	}
	return JSON_SUCCESS;
}

static JsonParseErrorType
on_array_start(void *state)
{
	Reader	   *reader = state;

	enter_level(reader);
	if (reader->level == 2)
		strlcpy(reader->array, reader->field, NAME_LIMIT);
	return JSON_SUCCESS;
}

static JsonParseErrorType
on_array_end(void *state)
{
	((Reader *) state)->level--;
	return JSON_SUCCESS;
}

static JsonParseErrorType
on_field(void *state, char *name, bool isnull)
{
	strlcpy(((Reader *) state)->field, name, NAME_LIMIT);
	return JSON_SUCCESS;
}

/*
 * The place of a string in a list of names; does not return if it is not
 * there.
 */
static int
place_in(const Reader *reader, const char *const *names, int n,
		 const char *token)
{
	for (int i = 0; i < n; i++)
	{
		if (strcmp(names[i], token) == 0)
			return i;
	}
	not_ours(reader, psprintf(_("\"%s\" is not a \"%s\""), token, reader->field));
}

/* A string of one of the inner objects */
static void
set_string(Reader *reader, const char *token)
{
	if (strcmp(reader->field, "test") == 0)
	{
		reader->result.test = place_in(reader, test_names, NTESTS, token);
		reader->has_test = true;
	}
	else if (strcmp(reader->field, "mode") == 0)
	{
		reader->result.mode = place_in(reader, mode_names, NMODES, token);
		reader->has_mode = true;
	}
	else if (strcmp(reader->field, "how") == 0)
		strlcpy(reader->result.how, token, NAME_LIMIT);
	else if (strcmp(reader->field, "what") == 0)
		reader->what = pg_strdup(token);
	else if (strcmp(reader->field, "why") == 0)
		reader->why = pg_strdup(token);
}

/* A number of one of the inner objects */
static void
set_number(Reader *reader, double value)
{
	Result	   *result = &reader->result;

	if (!(value >= 0 && value <= 1e15))
		not_ours(reader, psprintf(_("\"%s\" is out of range"), reader->field));
	if (strcmp(reader->field, "depth") == 0)
		result->depth = (int) Min(value, INT_MAX);
	else if (strcmp(reader->field, "size") == 0)
		result->size = (int) Min(value, INT_MAX);
	else if (strcmp(reader->field, "rate") == 0)
		result->rate = value;
	else if (strcmp(reader->field, "low") == 0)
		result->low = value;
	else if (strcmp(reader->field, "high") == 0)
		result->high = value;
	else if (strcmp(reader->field, "average") == 0)
		result->average = value;
	else if (strcmp(reader->field, "p99") == 0)
		result->p99 = value;
	else if (strcmp(reader->field, "max") == 0)
		result->max = value;
	else if (strcmp(reader->field, "aside") == 0)
		result->aside = value;
	else if (strcmp(reader->field, "meanwhile") == 0)
		result->meanwhile = value;
}

/* A member of the outer object */
static void
set_member(Reader *reader, const char *token, JsonTokenType type)
{
	if (type == JSON_TOKEN_STRING)
	{
		if (strcmp(reader->field, "directory") == 0)
			results.directory = one_line(token);
		else if (strcmp(reader->field, "file_system") == 0)
			results.file_system = one_line(token);
		else if (strcmp(reader->field, "date") == 0)
			results.date = one_line(token);
	}
	else if (type == JSON_TOKEN_NUMBER)
	{
		if (strcmp(reader->field, "seconds") == 0)
			results.seconds = strtod(token, NULL);
		else if (strcmp(reader->field, "file_size") == 0)
			results.file_size = strtoi64(token, NULL, 10);
	}
	else if (type == JSON_TOKEN_TRUE)
	{
		for (FileMode mode = 0; mode < NMODES; mode++)
		{
			if (strcmp(reader->field, mode_names[mode]) == 0)
				results.requested[mode] = true;
		}
	}
}

static JsonParseErrorType
on_scalar(void *state, char *token, JsonTokenType type)
{
	Reader	   *reader = state;

	if (reader->level == 1)
		set_member(reader, token, type);
	else if (reader->level == 3 && type == JSON_TOKEN_STRING)
		set_string(reader, token);
	else if (reader->level == 3 && type == JSON_TOKEN_NUMBER)
		set_number(reader, strtod(token, NULL));
	return JSON_SUCCESS;
}

/* Read a file, which has to be a small one. */
static void
read_file(Reader *reader, StringInfo into)
{
	FILE	   *file = fopen(reader->path, PG_BINARY_R);
	char		buffer[8192];
	size_t		n;

	if (file == NULL)
		pg_fatal("could not open file \"%s\" for reading: %m", reader->path);
	while ((n = fread(buffer, 1, sizeof(buffer), file)) > 0)
	{
		appendBinaryStringInfo(into, buffer, n);
		if (into->len > JSON_SIZE_LIMIT)
			not_ours(reader, _("it is too large"));
	}
	if (ferror(file))
		pg_fatal("could not read file \"%s\": %m", reader->path);
	fclose(file);
}

/*
 * Set the results to what is in a file that results_write_json() has written.
 */
void
results_read_json(const char *path)
{
	Reader		reader = {.path = path};
	JsonSemAction action = {
		.semstate = &reader,
		.object_start = on_object_start,
		.object_end = on_object_end,
		.array_start = on_array_start,
		.array_end = on_array_end,
		.object_field_start = on_field,
		.scalar = on_scalar,
	};
	StringInfoData json;
	JsonLexContext *lex;
	JsonParseErrorType status;

	initStringInfo(&json);
	read_file(&reader, &json);
	lex = makeJsonLexContextCstringLen(NULL, json.data, json.len, PG_UTF8,
									   true);
	status = pg_parse_json(lex, &action);
	if (status != JSON_SUCCESS)
		not_ours(&reader, json_errdetail(status, lex));
	freeJsonLexContext(lex);
	pfree(json.data);
	if (results.nresults == 0)
		not_ours(&reader, _("there is no result in it"));
	if (results.directory == NULL || results.file_system == NULL ||
		results.date == NULL)
		not_ours(&reader, _("it lacks \"directory\", \"file_system\" or \"date\""));
}
