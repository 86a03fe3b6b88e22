/*-------------------------------------------------------------------------
 *
 * leaf_stream.c
 *	  Read ahead the pages that sorted entries go to.
 *
 * Entries in index order visit pages in key order, each once, and the upper
 * pages of the index tell which.  A plan of these visits, "runs" of entries
 * that go to one page, feeds upstream's read stream, which keeps many reads in
 * flight and joins those of neighbouring blocks.  Where reads are quick
 * (quick_io.c), it joins them only.
 *
 * The plan is made by the caller, outside of the stream's own callback, which
 * therefore does no I/O and may be called in AIO batch mode.  It is a forecast:
 * by the time a page is in memory its entries may belong elsewhere.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/index_backlog.h"
#include "aio/read.h"
#include "aio/stats.h"
#include "storage/aio.h"
#include "storage/aio_internal.h"
#include "storage/bufmgr.h"
#include "storage/read_stream.h"

/* planned runs kept; a power of two */
#define RUNS_MAX 4096

/* plan ahead of what the stream has asked for, more than it asks at a time */
#define RUNS_AHEAD 2048

struct AioLeafStream
{
	AioIndexBatch *batch;
	ReadStream *stream;
	AioPlanRuns plan;
	void	   *arg;
	/* runs are numbered from 0: taken <= issued <= planned */
	uint32		taken;
	uint32		issued;
	uint32		planned;
	bool		complete;		/* there is nothing more to plan */
	AioLeafRun	runs[RUNS_MAX];
};

static inline AioLeafRun *
get_run(AioLeafStream *stream, uint32 number)
{
	return &stream->runs[number % RUNS_MAX];
}

/* ReadStreamBlockNumberCB */
static BlockNumber
next_block(ReadStream *read_stream, void *callback_private_data,
		   void *per_buffer_data)
{
	AioLeafStream *stream = callback_private_data;

	Assert(stream->taken <= stream->issued);
	Assert(stream->issued <= stream->planned);
	if (stream->issued == stream->planned)
		return InvalidBlockNumber;
	*(uint32 *) per_buffer_data = stream->issued;
	return get_run(stream, stream->issued++)->block;
}

/*
 * Begin to read the pages that plan(stream, arg) forecasts for a batch, which
 * is told how many reads were in flight.  plan() is called again and again, and
 * each time adds at least one run by AioLeafStreamPlan() unless it has forecast
 * all.
 *
 * As many reads may be in flight as tasks may await, or as
 * effective_io_concurrency allows if that is more; one if that is 0.
 */
AioLeafStream *
AioLeafStreamBegin(AioIndexBatch *batch, AioPlanRuns plan, void *arg)
{
	AioLeafStream *stream = palloc(sizeof(AioLeafStream));
	int			save_concurrency = effective_io_concurrency;

	stream->batch = batch;
	stream->plan = plan;
	stream->arg = arg;
	stream->taken = stream->issued = stream->planned = 0;
	stream->complete = false;

	/* the only way to tell a stream */
	PG_TRY();
	{
		if (save_concurrency > 0 && io_method != IOMETHOD_SYNC)
			effective_io_concurrency = Max(save_concurrency, AioTaskLimit());
		stream->stream = read_stream_begin_relation(READ_STREAM_USE_BATCHING,
													NULL, batch->index, MAIN_FORKNUM,
													next_block, stream,
													sizeof(uint32));
	}
	PG_FINALLY();
	{
		effective_io_concurrency = save_concurrency;
	}
	PG_END_TRY();
	return stream;
}

/* How many runs may be added now? */
int
AioLeafStreamRoom(AioLeafStream *stream)
{
	/* the run taken last is still in use */
	return RUNS_MAX - 1 - (stream->planned - stream->taken);
}

/* Forecast that entries from first to before end go to a page. */
void
AioLeafStreamPlan(AioLeafStream *stream, BlockNumber block,
				  uint32 first, uint32 end)
{
	AioLeafRun *run = get_run(stream, stream->planned);

	Assert(AioLeafStreamRoom(stream) > 0);
	Assert(first < end && end <= stream->batch->nentries);
	run->block = block;
	run->first = first;
	run->end = end;
	stream->planned++;
}

/*
 * The next page, pinned, and the entries that are expected to go there.  The
 * caller releases the pin.  Returns false at the end.
 */
bool
AioLeafStreamNext(AioLeafStream *stream, Buffer *buffer, AioLeafRun *run)
{
	void	   *number;

	while (!stream->complete && AioLeafStreamRoom(stream) > 0 &&
		   stream->planned - stream->issued < RUNS_AHEAD)
	{
		uint32		before = stream->planned;

		stream->plan(stream, stream->arg);
		stream->complete = stream->planned == before;
	}
	if (stream->taken == stream->planned)
	{
		Assert(stream->complete);
		return false;
	}

	aio_streamed_relation = stream->batch->index;
	*buffer = read_stream_next_buffer(stream->stream, &number);
	if (!BufferIsValid(*buffer))
	{
		/* it has run past what was planned then: rouse it */
		read_stream_reset(stream->stream);
		*buffer = read_stream_next_buffer(stream->stream, &number);
	}
	aio_streamed_relation = NULL;
	Assert(*(uint32 *) number == stream->taken);
	stream->batch->in_flight_max = Max(stream->batch->in_flight_max,
									   (int) dclist_count(&pgaio_my_backend->in_flight_ios));
	*run = *get_run(stream, stream->taken++);
	aio_session_stats_data.leaf_visits++;
	return true;
}

/* The page after the one returned last, or InvalidBlockNumber. */
BlockNumber
AioLeafStreamPeek(AioLeafStream *stream)
{
	return stream->taken == stream->planned ? InvalidBlockNumber :
		get_run(stream, stream->taken)->block;
}

/* Give back what the stream has. */
void
AioLeafStreamEnd(AioLeafStream *stream)
{
	read_stream_end(stream->stream);
	pfree(stream);
}
