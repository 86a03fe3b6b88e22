/*-------------------------------------------------------------------------
 *
 * apply_key.h
 *	  Keys of changes that logical replication will apply.  Private to
 *	  src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_APPLY_KEY_H
#define AIO_APPLY_KEY_H

#include "ri.h"

extern void AioApplyBeginKeys(void);
extern bool AioApplyKeysAreStale(void);
extern TupleTableSlot *AioApplyGetKey(const char *data, int len, bool has_xid,
									  AioRiSearch **search);
extern bool AioApplySearchesIn(Oid relid);

#endif							/* AIO_APPLY_KEY_H */
