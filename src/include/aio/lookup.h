/*-------------------------------------------------------------------------
 *
 * lookup.h
 *	  Lookups in indexes, ahead of need.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_LOOKUP_PUBLIC_H
#define AIO_LOOKUP_PUBLIC_H

#include "access/genam.h"
#include "access/tableam.h"
#include "executor/tuptable.h"

/* aio.lookup_ahead */
extern PGDLLIMPORT int aio_lookup_ahead;

#ifdef USE_ASSERT_CHECKING
/* aio.debug_lookups */
extern PGDLLIMPORT int aio_debug_lookups;

#define AIO_LOOKUPS_FORCED	(aio_debug_lookups > 0)
#else
#define AIO_LOOKUPS_FORCED	false
#endif

/* pages that this process has had to wait for, and the relation of the last */
extern PGDLLIMPORT uint64 aio_pages_missed;
extern PGDLLIMPORT Oid aio_rel_missed;

extern void AioLookupInitialize(void);

/* lookup_scan.c */
extern bool AioClusterNextSlot(IndexScanDesc scan, ScanDirection direction,
							   TupleTableSlot *slot);
extern HeapTuple AioNextChunk(SysScanDesc scan, ScanDirection direction);

/* lookup_copy.c */
extern PGDLLIMPORT int aio_copies_ahead;
extern PGDLLIMPORT uint64 aio_copy_missed;

extern bool AioCopyNextAhead(TableScanDesc scan, ScanDirection direction,
							 TupleTableSlot *slot, List *columns);

#endif							/* AIO_LOOKUP_PUBLIC_H */
