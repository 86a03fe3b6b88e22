/*-------------------------------------------------------------------------
 *
 * hash_read.c
 *	  Read ahead the bucket page that a hash insert goes to.
 *
 * hashinsert() computes the bucket from the cached metapage, reads the
 * bucket's page, and then validates the page against the cached metapage.  A
 * sibling that refreshed that cache during the read would make a stale bucket
 * pass for a valid one.  So a task reads the page first, and then inserts
 * without suspending.  Overflow pages are read under the bucket's lock and
 * could not be awaited anyway.
 *
 * Suspends:  in the read of the bucket page.
 * Tests:     src/test/aio/sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/hash.h"
#include "built_in_ams.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/*
 * AioIndexAmOps.look_ahead: read the primary page of the bucket that the key
 * belongs to.  If the bucket is split meanwhile, the wrong page has been read,
 * and no harm done.
 */
void
AioHashReadAhead(AioIndexEntry *entry)
{
	HashMetaPage metap;
	Buffer		metabuf = InvalidBuffer;
	Bucket		bucket;
	uint32		hashkey;
	BlockNumber blkno;

	Assert(entry->natts == 1);
	/* hash indexes do not contain nulls */
	if (entry->isnull[0])
		return;

	/* may fetch a toasted value, and so process invalidations */
	hashkey = _hash_datum2hashkey(entry->index, entry->values[0]);

	/* metap points into the relation cache: neither while it is in use */
	metap = _hash_getcachedmetap(entry->index, &metabuf, false);
	bucket = _hash_hashkey2bucket(hashkey,
								  metap->hashm_maxbucket,
								  metap->hashm_highmask,
								  metap->hashm_lowmask);
	Assert(bucket <= metap->hashm_maxbucket);
	blkno = BUCKET_TO_BLKNO(metap, bucket);
	if (BufferIsValid(metabuf))
		_hash_dropbuf(entry->index, metabuf);

	ReleaseBuffer(ReadBuffer(entry->index, blkno));
}
