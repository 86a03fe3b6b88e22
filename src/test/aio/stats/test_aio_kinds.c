/*-------------------------------------------------------------------------
 *
 * test_aio_kinds.c
 *	  An extension that has statistics of its own: it registers kinds of
 *	  cumulative statistics with numbers that it is told.
 *
 * They count nothing, and are not kept.
 *
 * Tests: src/test/aio/stats/t/004_kinds.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/pgstat_internal.h"

PG_MODULE_MAGIC;

typedef struct SharedNumber
{
	int64		number;
} SharedNumber;

static int	first_kind;
static int	last_kind;
static PgStat_KindInfo infos[PGSTAT_KIND_CUSTOM_SIZE];

static void
init_number(void *shared)
{
	((SharedNumber *) shared)->number = 0;
}

static void
reset_number(TimestampTz ts)
{
}

static void
snapshot_number(void)
{
}

void
_PG_init(void)
{
	DefineCustomIntVariable("test_aio_kinds.first", "The first kind.", NULL, &first_kind,
							PGSTAT_KIND_CUSTOM_MAX, PGSTAT_KIND_CUSTOM_MIN, PGSTAT_KIND_CUSTOM_MAX,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("test_aio_kinds.last", "The last kind.", NULL, &last_kind,
							PGSTAT_KIND_CUSTOM_MAX, PGSTAT_KIND_CUSTOM_MIN, PGSTAT_KIND_CUSTOM_MAX,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("test_aio_kinds");
	for (int kind = first_kind; kind <= last_kind; kind++)
	{
		PgStat_KindInfo info = {
			.name = MemoryContextStrdup(TopMemoryContext, psprintf("test_%d", kind)),
			.fixed_amount = true,
			.write_to_file = false,
			.shared_size = sizeof(SharedNumber),
			.shared_data_off = 0,
			.shared_data_len = sizeof(SharedNumber),
			.init_shmem_cb = init_number,
			.reset_all_cb = reset_number,
			.snapshot_cb = snapshot_number,
		};

		memcpy(&infos[kind - PGSTAT_KIND_CUSTOM_MIN], &info, sizeof(info));
		pgstat_register_kind(kind, &infos[kind - PGSTAT_KIND_CUSTOM_MIN]);
	}
}
