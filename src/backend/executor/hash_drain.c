/*-------------------------------------------------------------------------
 *
 * hash_drain.c
 *	  Insert entries into a hash index, bucket by bucket.
 *
 * The buckets' pages are read ahead in the order of the buckets, which is
 * nearly that of the file.  A pin is not kept: it would prevent the bucket
 * from being split.
 *
 * Tests: src/test/aio/sql.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/hash.h"
#include "backlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* buckets planned at a time */
#define RUNS_PER_PLAN	512

typedef struct HashDrain
{
	Relation	index;
	AioEntry   *entries;
	uint32		nentries;
	uint32		planned;
	HashMetaPageData metap;		/* as of the beginning */
} HashDrain;

/* AioPlanRuns: the entries of a bucket are a run. */
static void
plan_runs(AioLeafStream *stream, void *arg)
{
	HashDrain  *drain = arg;

	for (int i = 0; i < RUNS_PER_PLAN && AioLeafStreamRoom(stream) > 0 &&
		 drain->planned < drain->nentries; i++)
	{
		uint32		first = drain->planned;
		Bucket		bucket = drain->entries[first].key;

		while (drain->planned < drain->nentries &&
			   drain->entries[drain->planned].key == bucket)
			drain->planned++;
		AioLeafStreamPlan(stream, BUCKET_TO_BLKNO(&drain->metap, bucket),
						  first, drain->planned);
	}
}

/* Insert entries that are sorted. */
void
AioDrainHash(AioIndexBacklog *backlog, AioEntry *entries)
{
	HashDrain  *drain = palloc(sizeof(HashDrain));
	Buffer		buffer = InvalidBuffer;
	AioLeafStream *stream;
	AioLeafRun	run;

	drain->index = backlog->index;
	drain->entries = entries;
	drain->nentries = backlog->nentries;
	drain->planned = 0;
	drain->metap = *_hash_getcachedmetap(drain->index, &buffer, false);
	if (BufferIsValid(buffer))
		_hash_dropbuf(drain->index, buffer);

	stream = AioLeafStreamBegin(drain->index, plan_runs, drain);
	while (AioLeafStreamNext(stream, &buffer, &run))
	{
		ReleaseBuffer(buffer);
		for (uint32 i = run.first; i < run.end; i++)
		{
			CHECK_FOR_INTERRUPTS();
			_hash_doinsert(drain->index, entries[i].tuple, backlog->heap, false);
		}
	}
	AioLeafStreamEnd(stream);
	if (drain->planned != drain->nentries)
		elog(ERROR, "only %u of %u entries of hash index \"%s\" have been inserted",
			 drain->planned, drain->nentries,
			 RelationGetRelationName(drain->index));
}
