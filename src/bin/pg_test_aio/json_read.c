/*-------------------------------------------------------------------------
 *
 * json_read.c
 *	  What json_write.c has written, or somebody by hand.
 *
 * What is read back gives the same tables and recommendations.  Members that
 * are not known are ignored; those that are missing are zero, or the default.
 * The file may come from anywhere: no string of it leaves its line.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <limits.h>

#include "common/jsonapi.h"
#include "common/logging.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "pg_test_aio.h"

/* a file that is larger than this is none of ours */
#define JSON_SIZE_LIMIT (16 * MEGABYTE)

/* and nothing of ours is nested deeper: the parser is recursive */
#define JSON_LEVEL_LIMIT 3

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
	{
		char	   *how = one_line(token);

		strlcpy(reader->result.how, how, NAME_LIMIT);
		pg_free(how);
	}
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
		else if (strcmp(reader->field, "others") == 0)
			results.others = strtod(token, NULL);
		else if (strcmp(reader->field, "file_size") == 0)
			results.file_size = strtoi64(token, NULL, 10);
	}
	else if (type == JSON_TOKEN_TRUE || type == JSON_TOKEN_FALSE)
	{
		for (FileMode mode = 0; mode < NMODES; mode++)
		{
			if (strcmp(reader->field, mode_names[mode]) == 0)
				results.requested[mode] = type == JSON_TOKEN_TRUE;
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
