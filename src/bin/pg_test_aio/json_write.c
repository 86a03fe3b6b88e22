/*-------------------------------------------------------------------------
 *
 * json_write.c
 *	  What has been measured, as JSON.
 *
 * One object.  Its members are those of Results, with the array "results" of
 * objects that have the members of Result, and the array "skipped" of {"what",
 * "why"}.
 *
 * Tests: src/bin/pg_test_aio/t/001_pg_test_aio.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/logging.h"
#include "lib/stringinfo.h"
#include "pg_test_aio.h"

/* There are no control characters in what is ours; see one_line(). */
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
	appendStringInfo(&json, "  \"others\": %.1f,\n", results.others);
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
		appendStringInfoString(&json, "\"how\": ");
		append_string(&json, result->how);
		appendStringInfo(&json, ", \"depth\": %d, \"size\": %d, ",
						 result->depth, result->size);
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
		/* nothing said why: then the disk is full */
		int			error = errno != 0 ? errno : ENOSPC;

		unlink(path);
		errno = error;
		pg_fatal("could not write file \"%s\": %m", path);
	}
	pfree(json.data);
}
