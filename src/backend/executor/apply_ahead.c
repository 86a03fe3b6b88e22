/*-------------------------------------------------------------------------
 *
 * apply_ahead.c
 *	  Logical replication: messages ahead, and lookups of the rows that they
 *	  change.
 *
 * A worker that applies UPDATEs and DELETEs searches for one row after the
 * other.  When it has had to wait for pages, messages that are there already
 * are taken ahead, as many as a window allows, and kept until they are due.
 * The keys of those that change rows are probed (apply_key.c, ri_probe.c):
 * first steps for all, second steps for those in the nearer half.  Catalogs are
 * needed for that, and so it is done only while the worker is in a transaction,
 * between two messages.
 *
 * INVARIANT-67: messages are worked on in the order in which they came, and
 * nothing of one can be told, neither by what the publisher is sent nor by an
 * error, before those that came earlier have been worked on.
 *
 * What is kept is bounded by work_mem, and by some megabytes: a message in
 * which the publisher asks for an answer has to wait for those before it.  It
 * is in the memory of the process, which ends if an error leaves its loop.
 *
 * Tests: src/test/aio/replication.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "aio/apply_ahead.h"
#include "aio/io_internal.h"
#include "aio/lookup.h"
#include "aio/task_port.h"
#include "aio/usage.h"
#include "apply_key.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "replication/logicalproto.h"
#include "storage/aio.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* the part of a window that is taken, or looked up, at a time */
#define MESSAGES_AT_A_TIME(distance)	(((distance) + 7) / 8)

/*
 * Messages that are kept, for each one that looks something up: small
 * transactions have a begin and an end.
 */
#define MESSAGES_PER_LOOKUP	4

/* bytes of messages that are kept, whatever work_mem allows */
#define BYTES_MAX	(4 * 1024 * 1024)

/* a window so wide has opened in earnest */
#define DISTANCE_USEFUL		8

/* after so many waits, looking ahead that has gained nothing is tried again */
#define WAITS_WANTED_MAX	1024

/* How far the lookup of a message has got. */
typedef enum MessageStep
{
	STEP_NONE,
	STEP_FIRST,
	STEP_ALL,
} MessageStep;

typedef struct AheadMessage
{
	char	   *data;
	int			len;
	bool		looks_up;
	uint64		lookup;			/* how many look something up, as far as it */
	MessageStep step;
	AioRiSteps	steps;
} AheadMessage;

struct AioApplyAhead
{
	AioMessageSource source;
	MemoryContext context;		/* messages */
	MemoryContext probe_context;	/* until all probes have ended */
	char	   *current;		/* the message that was taken off last */
	int			waits;			/* for pages, while closed */
	int			waits_wanted;	/* to open */
	bool		open;
	AioLookupWindow window;

	/* messages in order */
	AheadMessage *messages;
	uint32		nmessages;		/* room, a power of 2 */
	uint32		first;			/* the next one, counted, */
	uint32		end;			/* like the end, */
	uint32		ndone;			/* and the first that has a step to make */
	Size		bytes;
	bool		in_stream;		/* at the end */
	AioNextMessage last;		/* what became of the last attempt */
	uint64		tried;			/* the lookup that was due then */
	uint32		idle;			/* messages taken since a lookup was new */
	uint64		due;			/* lookups that have been due, */
	uint64		passed;			/* and those of messages that have been kept */

	AioRiProbes probes;
};

/* aio_pages_missed, when a message was due last */
static uint64 pages_missed = 0;

static inline AheadMessage *
message_at(AioApplyAhead *ahead, uint32 i)
{
	return &ahead->messages[i % ahead->nmessages];
}

/*
 * Messages are not kept at the moment.  Has anything happened for which to
 * begin with that?
 */
bool
AioApplyMayBegin(void)
{
	return unlikely(aio_pages_missed != pages_missed || AIO_LOOKUPS_FORCED);
}

AioApplyAhead *
AioApplyAheadMake(const AioMessageSource *source)
{
	AioApplyAhead *ahead = MemoryContextAllocZero(TopMemoryContext,
												  sizeof(AioApplyAhead));

	ahead->source = *source;
	ahead->context = AllocSetContextCreate(TopMemoryContext, "messages ahead",
										   ALLOCSET_DEFAULT_SIZES);
	ahead->probe_context = AllocSetContextCreate(ahead->context, "probes",
												 ALLOCSET_DEFAULT_SIZES);
	ahead->waits_wanted = AIO_WAITS_BEFORE_OPENING;
	ahead->last = AIO_MESSAGE_READY;
	return ahead;
}

static void
open_ahead(AioApplyAhead *ahead)
{
	int			limit = aio_lookup_ahead;

	if (zero_damaged_pages || ignore_checksum_failure || !AioTasksCanSuspend())
		return;
	limit = Min(limit, 2 * AioTaskLimit());
	if (limit < 1)
		return;
	if (ahead->messages == NULL)
	{
		ahead->nmessages = pg_nextpower2_32(MESSAGES_PER_LOOKUP * limit);
		ahead->messages = MemoryContextAllocZero(ahead->context,
												 ahead->nmessages * sizeof(AheadMessage));
	}
	limit = Min(limit, (int) ahead->nmessages / MESSAGES_PER_LOOKUP);
	ahead->open = true;
	ahead->idle = 0;
	AioWindowOpen(&ahead->window, limit, AIO_ALL_ROWS);
}

static void
close_ahead(AioApplyAhead *ahead)
{
	MemoryContextReset(ahead->probe_context);
	ahead->open = false;
	ahead->waits = 0;
	ahead->waits_wanted = Min(2 * ahead->waits_wanted, WAITS_WANTED_MAX);
}

/* Pages were missed since the message before was due. */
static void
count_wait(AioApplyAhead *ahead)
{
	if (ahead->open)
	{
		/* looked up too late, or forgotten again */
		if (AioApplySearchesIn(aio_rel_missed))
			aio_usage[AIO_KIND_LOOKUP].waited++;
		return;
	}

	/*
	 * Pages of indexes that are only inserted into count, too: if nothing is
	 * looked up, that is noticed after some messages (AioApplyAheadDue()),
	 * and tried again at ever longer intervals.
	 */
	if (!AIO_LOOKUPS_FORCED &&
		(aio_rel_missed < FirstNormalObjectId ||
		 ++ahead->waits < ahead->waits_wanted))
		return;
	open_ahead(ahead);
}

/* What may it look up?  Keeps account of where streams begin and end. */
static bool
looks_up(AioApplyAhead *ahead, const AheadMessage *message)
{
	if (message->len <= ahead->source.prefix)
		return false;
	switch ((LogicalRepMsgType) message->data[ahead->source.prefix])
	{
		case LOGICAL_REP_MSG_STREAM_START:
			ahead->in_stream = true;
			return false;
		case LOGICAL_REP_MSG_STREAM_STOP:
			ahead->in_stream = false;
			return false;
		case LOGICAL_REP_MSG_UPDATE:
		case LOGICAL_REP_MSG_DELETE:
			/* others are not applied now, or not by this process */
			return ahead->in_stream == ahead->source.has_xid;
		default:
			return false;
	}
}

/* Keep a message.  Returns false if there is none. */
static bool
keep_message(AioApplyAhead *ahead)
{
	AheadMessage *message = message_at(ahead, ahead->end);
	char	   *data;
	int			len;

	ahead->last = ahead->source.next(ahead->source.arg, &data, &len);
	if (ahead->last != AIO_MESSAGE_READY)
		return false;
	MemSet(message, 0, sizeof(*message));
	message->data = MemoryContextAllocHuge(ahead->context, Max(len, 1));
	memcpy(message->data, data, len);
	message->len = len;
	message->looks_up = looks_up(ahead, message);
	if (message->looks_up)
		ahead->passed++;
	else
		message->step = STEP_ALL;
	message->lookup = ahead->passed;
	ahead->bytes += len;
	ahead->end++;
	return true;
}

/* Keep what there is already, as far as the window allows. */
static void
keep_messages(AioApplyAhead *ahead)
{
	ahead->tried = ahead->due;
	if (ahead->first == ahead->end)
	{
		ahead->in_stream = AioInStream();
		ahead->passed = ahead->due;
		ahead->bytes = 0;
		ahead->ndone = ahead->end;
	}
	while (ahead->passed - ahead->due < ahead->window.distance &&
		   ahead->end - ahead->first < ahead->nmessages &&
		   ahead->bytes < Min((Size) work_mem * 1024, BYTES_MAX))
	{
		if (!keep_message(ahead))
			break;
	}
}

/* May further messages be asked for, and is it time to? */
static bool
is_to_keep_messages(AioApplyAhead *ahead)
{
	int			distance = ahead->window.distance;
	int			at_a_time = MESSAGES_AT_A_TIME(distance);

	if (ahead->first == ahead->end)
		return ahead->last != AIO_MESSAGE_NEVER;
	switch (ahead->last)
	{
		case AIO_MESSAGE_READY:
			return ahead->passed - ahead->due + at_a_time <= distance;
		case AIO_MESSAGE_NOT_YET:
			return ahead->due - ahead->tried >= at_a_time;
		default:
			return false;
	}
}

/* Add the probe of one message.  Returns whether it was the first step. */
static bool
add_message(AioApplyAhead *ahead, AheadMessage *message)
{
	uint32		before = (uint32) (message->lookup - ahead->due);
	bool		near = before <= ahead->window.distance / 2 + 1;
	bool		again = message->step == STEP_FIRST;
	TupleTableSlot *row;
	AioRiSearch *search;

	if (message->step == STEP_ALL || (again && !near))
		return false;
	message->step = near ? STEP_ALL : STEP_FIRST;
	if (again && memchr(message->steps.begun, true,
						sizeof(message->steps.begun)) == NULL)
		return false;
	row = AioApplyGetKey(message->data + ahead->source.prefix,
						 message->len - ahead->source.prefix,
						 ahead->source.has_xid, &search);
	if (row == NULL)
		return false;
	return AioRiAddProbes(&ahead->probes, search, row, before, &message->steps,
						  again, near) && !again;
}

/* Pass over messages that have no step to make. */
static void
skip_done(AioApplyAhead *ahead)
{
	while (ahead->ndone != ahead->end &&
		   message_at(ahead, ahead->ndone)->step == STEP_ALL)
		ahead->ndone++;
}

/* Look up what has been kept. */
static void
look_ahead(AioApplyAhead *ahead)
{
	MemoryContext old;
	bool		has_read = false;
	int			nnew = 0;

	MemoryContextReset(ahead->probe_context);
	old = MemoryContextSwitchTo(ahead->probe_context);
	PushActiveSnapshot(GetTransactionSnapshot());
	MemSet(&ahead->probes, 0, sizeof(ahead->probes));
	AioApplyBeginKeys();
	for (uint32 i = ahead->ndone; i != ahead->end; i++)
		nnew += add_message(ahead, message_at(ahead, i));
	skip_done(ahead);

	/* if a table has been altered, keys may be of other types now */
	if (!AioApplyKeysAreStale())
		has_read = AioRunProbes(ahead->probes.probes);
	AioRiEndProbes(&ahead->probes);
	PopActiveSnapshot();
	MemoryContextSwitchTo(old);

	if (nnew > 0)
		ahead->idle = 0;
	if (nnew > 0)
		AioWindowLooked(&ahead->window, nnew, has_read);
	if (ahead->window.distance >= DISTANCE_USEFUL)
		ahead->waits_wanted = AIO_WAITS_BEFORE_OPENING;
}

/* Is there enough to look up, and may it be done now? */
static bool
is_to_look_ahead(AioApplyAhead *ahead)
{
	uint32		distance = ahead->window.distance;
	uint32		at_a_time = MESSAGES_AT_A_TIME(distance);
	AheadMessage *message;

	skip_done(ahead);
	if (ahead->ndone == ahead->end || !IsTransactionState() ||
		!AioScopeAllowed())
		return false;
	message = message_at(ahead, ahead->ndone);
	return message->step == STEP_NONE ||
		message_at(ahead, ahead->end - 1)->step == STEP_NONE ||
		message->lookup - ahead->due + at_a_time <= Max(distance / 2, at_a_time);
}

/*
 * The message before has been worked on, and the next one is due: keep further
 * ones, and look them up.
 */
void
AioApplyAheadDue(AioApplyAhead *ahead)
{
	bool		missed = AioApplyMayBegin();

	pages_missed = aio_pages_missed;
	if (aio_lookup_ahead == 0 || io_method == IOMETHOD_SYNC)
		ahead->open = false;
	else if (missed)
		count_wait(ahead);
	if (!ahead->open)
		return;
	if (ahead->window.distance == 0 || ahead->idle > ahead->nmessages)
	{
		close_ahead(ahead);
		return;
	}
	if (is_to_keep_messages(ahead))
		keep_messages(ahead);
	if (is_to_look_ahead(ahead))
		look_ahead(ahead);
	pages_missed = aio_pages_missed;
}

/*
 * Take the next message off those that are kept.  It stays where it is until
 * that is called again.  Returns false if none is kept.
 */
bool
AioApplyAheadTake(AioApplyAhead *ahead, char **data, int *len)
{
	AheadMessage *message;

	if (ahead->current != NULL)
		pfree(ahead->current);
	ahead->current = NULL;
	if (ahead->first == ahead->end)
		return false;
	message = message_at(ahead, ahead->first);
	if (ahead->ndone == ahead->first)
		ahead->ndone++;
	ahead->first++;
	ahead->idle++;
	ahead->due = message->lookup;
	ahead->bytes -= message->len;
	ahead->current = message->data;
	*data = message->data;
	*len = message->len;
	return true;
}

/* Are messages kept, or asked for? */
bool
AioApplyAheadActive(const AioApplyAhead *ahead)
{
	return ahead->open || ahead->first != ahead->end || ahead->current != NULL;
}
