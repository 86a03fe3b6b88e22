/*-------------------------------------------------------------------------
 *
 * leaf_wal.h
 *	  Log many changes of a leaf in one record.  Private to
 *	  src/backend/access/index_batch.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_LEAF_WAL_H
#define AIO_LEAF_WAL_H

#include "access/xlogrecord.h"
#include "storage/buf.h"
#include "storage/off.h"

/* what any record about a block consists of */
#define AIO_BLOCK_RECORD_BYTES \
	(SizeOfXLogRecord + SizeOfXLogRecordBlockHeader + sizeof(RelFileLocator) + \
	 sizeof(BlockNumber))

extern Size AioLeafRecordBytes(int line_pointers, Size items);
extern void AioLogLeaf(Buffer leaf, OffsetNumber first, int end);

#endif							/* AIO_LEAF_WAL_H */
