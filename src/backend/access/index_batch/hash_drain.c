/*-------------------------------------------------------------------------
 *
 * hash_drain.c
 *	  Insert entries into a hash index, bucket by bucket.
 *
 * Entries are sorted by the bucket of their hash value, and then by that, as
 * they are on a page.  The buckets' pages are read ahead in the order of the
 * buckets, which is nearly that of the file.  A pin is not kept: it would
 * prevent the bucket from being split.
 *
 * Tests: src/test/aio/sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/hash.h"
#include "aio/index_backlog.h"
#include "built_in_ams.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* buckets planned at a time */
#define RUNS_PER_PLAN	512

/* so many entries ahead, the next one is fetched into the cache */
#define PREFETCH_DISTANCE	4

typedef struct HashDrain
{
	Relation	index;
	AioEntry   *entries;
	uint32		nentries;
	uint32		planned;
	HashMetaPageData metap;		/* as of the beginning */
} HashDrain;

/* ------------------------------------------------------------------------
 * Sorting
 * ------------------------------------------------------------------------
 */

StaticAssertDecl(sizeof(Datum) >= sizeof(Bucket) + sizeof(uint32),
				 "a key has room for a bucket and a hash value");

/* AioEntry.key: the bucket, and the hash value. */
static inline Datum
make_key(Bucket bucket, uint32 hash)
{
	return (Datum) bucket << 32 | hash;
}

static inline Bucket
bucket_of(const AioEntry *entry)
{
	return entry->key >> 32;
}

static inline int
compare_buckets(const AioEntry *a, const AioEntry *b)
{
	if (a->key < b->key)
		return -1;
	if (a->key > b->key)
		return 1;
	return ItemPointerCompare(&a->tuple->t_tid, &b->tuple->t_tid);
}

#define ST_SORT sort_buckets
#define ST_ELEMENT_TYPE AioEntry
#define ST_COMPARE(a, b) compare_buckets(a, b)
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Set the keys of hash entries, whose tuples are hash values.
 *
 * Returns false if the entries had better stay as they are: an index that will
 * have far more buckets than now splits them one after the other, and those
 * filled before their turn would become long chains of pages.
 */
static bool
set_buckets(AioEntry *entries, uint32 n, Relation index)
{
	Buffer		metabuf = InvalidBuffer;
	HashMetaPage metap = _hash_getcachedmetap(index, &metabuf, true);
	bool		grows = n > metap->hashm_ntuples / 2;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		hash = _hash_get_indextuple_hashkey(entries[i].tuple);
		Bucket		bucket = _hash_hashkey2bucket(hash, metap->hashm_maxbucket,
												  metap->hashm_highmask,
												  metap->hashm_lowmask);

		Assert(bucket <= metap->hashm_maxbucket);
		entries[i].key = make_key(bucket, hash);
	}
	if (BufferIsValid(metabuf))
		_hash_dropbuf(index, metabuf);
	return !grows;
}

/* AioIndexAmOps.sort: by bucket, hash value and place in the heap. */
AioEntry *
AioSortBuckets(AioIndexBatch *batch)
{
	AioEntry   *entries = AioListEntries(batch);

	if (set_buckets(entries, batch->nentries, batch->index))
		sort_buckets(entries, batch->nentries);
	return entries;
}

/* ------------------------------------------------------------------------
 * Inserting
 * ------------------------------------------------------------------------
 */

/* AioPlanRuns: the entries of a bucket are a run. */
static void
plan_runs(AioLeafStream *stream, void *arg)
{
	HashDrain  *drain = arg;

	for (int i = 0; i < RUNS_PER_PLAN && AioLeafStreamRoom(stream) > 0 &&
		 drain->planned < drain->nentries; i++)
	{
		uint32		first = drain->planned;
		Bucket		bucket = bucket_of(&drain->entries[first]);

		while (drain->planned < drain->nentries &&
			   bucket_of(&drain->entries[drain->planned]) == bucket)
			drain->planned++;
		AioLeafStreamPlan(stream, BUCKET_TO_BLKNO(&drain->metap, bucket),
						  first, drain->planned);
	}
}

/* Insert entries that are sorted; reads are waited for in a stream. */
void
AioDrainHash(AioIndexBatch *batch, AioEntry *entries, AioScope *scope)
{
	HashDrain  *drain = palloc(sizeof(HashDrain));
	Buffer		buffer = InvalidBuffer;
	AioLeafStream *stream;
	AioLeafRun	run;

	Assert(!batch->unique);
	drain->index = batch->index;
	drain->entries = entries;
	drain->nentries = batch->nentries;
	drain->planned = 0;
	drain->metap = *_hash_getcachedmetap(drain->index, &buffer, false);
	if (BufferIsValid(buffer))
		_hash_dropbuf(drain->index, buffer);

	stream = AioLeafStreamBegin(batch, plan_runs, drain);
	while (AioLeafStreamNext(stream, &buffer, &run))
	{
		ReleaseBuffer(buffer);
		Assert(run.end <= drain->planned);
		for (uint32 i = run.first; i < run.end; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (i + PREFETCH_DISTANCE < drain->nentries)
				__builtin_prefetch(entries[i + PREFETCH_DISTANCE].tuple);
			_hash_doinsert(drain->index, entries[i].tuple, batch->heap, false);
		}
	}
	AioLeafStreamEnd(stream);
	if (drain->planned != drain->nentries)
		elog(ERROR, "only %u of %u entries of hash index \"%s\" have been inserted",
			 drain->planned, drain->nentries,
			 RelationGetRelationName(drain->index));
}
