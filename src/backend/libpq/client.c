/*-------------------------------------------------------------------------
 *
 * client.c
 *	  Nobody waits for a client that somebody else waits for.
 *
 * A client that does not read holds up the session that sends it something,
 * for as long as it likes.  Messages can come from anywhere: with
 * client_min_messages = debug5, upstream's AIO sends some for each I/O, be it
 * that of a page of WAL that is written under WALWriteLock.  So while this
 * process has anything that others may wait for, a message is kept, and sent
 * when it has not: before the next one that is sent, before the client is
 * waited for, or when interrupts are processed.  Messages stay in their order,
 * but for those of tasks, which come in the order of PostgreSQL.
 * One that comes while another is being put is kept, too: upstream would leave
 * it out, and a worker would be detached from its leader.
 *
 * The gate is where a message is put into what is sent to a client, or by a
 * parallel worker to its leader, who may be waiting for the client.  That is
 * INVARIANT-88.
 *
 * Kept are notices of all levels, and errors that are reported before what the
 * transaction had locked has been released.  Who reports a FATAL error, or a
 * worker's ERROR, releases that first, as it is what the process does next.
 * A PANIC does not wait for the client at all.  Of messages of debug levels, so
 * many are kept; when others have been left out, one more says how many.
 *
 * What is kept is in memory of malloc(): in a critical section there is no
 * other.
 *
 * Suspends:  nothing here does.
 * Errors:    as pq_putmessage(), where that is called.
 * Tests:     src/test/aio/write/t/009_messages.pl,
 *			  src/test/aio/core/t/003_client.pl,
 *			  src/test/aio/write/t/007_slow_client.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/block.h"
#include "aio/client.h"
#include "aio/io_internal.h"
#include "aio/read.h"
#include "aio/sibling_locks.h"
#include "aio/table_gate.h"
#include "aio/task.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "storage/aio_subsys.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"

bool		aio_messages_kept = false;

/* bytes of messages of debug levels that are kept */
#define DEBUG_MAX	(1024 * 1024)

/* A message that is kept; its body follows. */
typedef struct Kept
{
	struct Kept *next;
	AioSpawnPlace place;		/* where it came */
	size_t		len;
	char		type;
	char		body[FLEXIBLE_ARRAY_MEMBER];
} Kept;

static Kept *first_kept = NULL;
static Kept **end_kept = &first_kept;
static size_t bytes_kept = 0;

/* some are for more than debugging */
static bool others_kept = false;

/* messages that were not kept */
static int	left_out = 0;

/* what was kept is being sent */
static bool sending = false;

/* the last one that could have been sent was kept */
static bool last_kept = false;

/* the process ends in the middle of what it does */
static volatile sig_atomic_t ending = false;

/* and must not wait */
static bool panicking = false;

/* Is I/O begun that others may wait for, and that is not on its way? */
static bool
has_staged(void)
{
	return pgaio_my_backend != NULL &&
		(pgaio_my_backend->num_staged_ios > 0 ||
		 pgaio_my_backend->handed_out_io != NULL);
}

/* Has this process what others wait for without being able to do otherwise? */
bool
AioHoldsUpOthers(void)
{
	return CritSectionCount > 0 || AioHeldLWLocks() > 0 || AioGateIsMine() ||
		has_staged();
}

/*
 * May what runs in a scope wait for its client?  Suspended tasks, of which
 * others may need something, would not go on meanwhile.  But if it waits for a
 * heavyweight lock, none is left that could go on.
 */
static bool
tasks_permit(void)
{
	if (aio_current_scope == NULL)
		return true;
	return GetAwaitedLock() != NULL && AioSiblingsIdle();
}

/*
 * May this process wait for its client?  Not if it has what other sessions or
 * its own tasks need soon.
 */
bool
AioMayWaitForClient(void)
{
	return !AioHoldsUpOthers() && tasks_permit();
}

/*
 * May it do so with a notice?  A message for debugging does not wait for the
 * client where the session could not be terminated then, nor with a relation
 * extended, either.  But others do as in PostgreSQL: who commits, or ends, has
 * a warning only then; what a parallel worker says comes while its leader waits
 * for it; and the function of an index expression, under the lock of a
 * speculative insertion, may say something before it sleeps.
 */
static bool
may_tell(bool debug)
{
	Assert(aio_current_task == NULL || aio_current_scope != NULL);
	return AioMayWaitForClient() &&
		!(debug && (InterruptHoldoffCount > 0 || aio_sibling_locks > 0));
}

/*
 * The process ends in the middle of what it does: with a PANIC, or in
 * quickdie(), a signal handler.  It is killed if that takes long.
 */
void
AioForbidKeeping(void)
{
	ending = true;
}

/* Does it?  Then it must not wait. */
bool
AioIsEnding(void)
{
	return ending;
}

/*
 * A message is going to be sent to the client.  Returns it.  May be called
 * anywhere.
 */
ErrorData *
AioBeforeTelling(ErrorData *edata)
{
	if (edata->elevel >= PANIC)
		ending = panicking = true;
	else if (edata->elevel == FATAL ||
			 (edata->elevel == ERROR && MyBackendType == B_BG_WORKER))
	{
		/* what called us is not returned to */
		LWLockReleaseAll();
		AioOpenGate();
		AioSubmitBatch();
		if (pgaio_my_backend != NULL)
		{
			pgaio_error_cleanup();
			if (pgaio_my_backend->handed_out_io != NULL)
				pgaio_io_release(pgaio_my_backend->handed_out_io);
		}
	}
	return edata;
}

/* Is this the body of a message of one of the debug levels? */
static bool
is_debug(char type, const char *body, size_t len)
{
	const char *severity;

	if (type != PqMsg_NoticeResponse || body[0] != PG_DIAG_SEVERITY)
		return false;
	severity = body + strnlen(body, len) + 1;
	return severity < body + len && severity[0] == PG_DIAG_SEVERITY_NONLOCALIZED &&
		strncmp(severity + 1, "DEBUG", 5) == 0;
}

static void
append(Kept *kept)
{
	kept->next = NULL;
	*end_kept = kept;
	end_kept = &kept->next;
	bytes_kept += kept->len;
	aio_messages_kept = true;
}

/* Keep a message.  Raises nothing, and may be called in a critical section. */
static void
keep(char type, const char *body, size_t len)
{
	bool		debug = is_debug(type, body, len);
	Kept	   *kept = NULL;

	if (!debug || bytes_kept + len <= DEBUG_MAX)
		kept = malloc(offsetof(Kept, body) + len);
	aio_messages_kept = true;
	if (kept == NULL)
	{
		left_out++;
		return;
	}
	kept->place = AioPlaceInSpawnOrder();
	kept->type = type;
	kept->len = len;
	memcpy(kept->body, body, len);
	append(kept);

	/* those of debug levels come so often that nothing else would be done */
	if (!debug)
	{
		others_kept = true;
		InterruptPending = true;
	}
}

/*
 * Is a message being put into what is sent?  What finishes I/O meanwhile may
 * have something to say, which cannot be put into the middle of that.
 */
static bool
is_busy(void)
{
	return AioSocketBusy() || AioQueueBusy();
}

/*
 * Is a message kept?  If not, those that have been kept are sent before it.
 * Called where it would be sent.
 */
bool
AioKeepOrSend(char type, const char *body, size_t len)
{
	if (ending)
	{
		last_kept = false;

		/* a leader may be waiting for its client, and is about to be killed */
		return (panicking && MyBackendType == B_BG_WORKER) ||
			(type == PqMsg_NoticeResponse && is_busy());
	}

	/*
	 * An error is on its way to where PostgreSQL says that no message is
	 * being put any more.  A worker's is not, and detaches it from its
	 * leader, who reports that.
	 */
	if (type == PqMsg_NoticeResponse && is_busy())
	{
		keep(type, body, len);
		return true;
	}
	if (sending)
		return false;
	last_kept = (type == PqMsg_NoticeResponse && !may_tell(is_debug(type, body, len))) ||
		(type == PqMsg_ErrorResponse && AioHoldsUpOthers());
	if (last_kept)
	{
		keep(type, body, len);
		return true;
	}
	if (aio_messages_kept)
		AioSendKept();
	Assert(type != PqMsg_NoticeResponse || !is_busy());
	return false;
}

/* send_message_to_frontend(): have the client read it now, unless it is kept */
void
AioFlushMessage(void)
{
	if (last_kept)
		return;
	pq_flush();

	/* waiting for the client may have reset what tells that it has its lock */
	if (GetAwaitedLock() != NULL &&
		(InterruptPending || MyProc->waitStatus != PROC_WAIT_STATUS_WAITING))
		SetLatch(MyLatch);
}

/*
 * Take off what is to be sent now, in its order.  INVARIANT-117: while a task
 * waits for another transaction, its client does not hear of what PostgreSQL
 * would do after it: of siblings that were spawned later, or of the scope's
 * body.
 */
static Kept *
take_kept(void)
{
	Kept	   *kept = first_kept;
	Kept	   *taken = NULL;
	Kept	  **end_taken = &taken;

	first_kept = NULL;
	end_kept = &first_kept;
	bytes_kept = left_out = 0;
	others_kept = aio_messages_kept = false;
	while (kept != NULL)
	{
		Kept	   *next = kept->next;

		if (AioIsLaterPlace(&kept->place))
		{
			append(kept);
			others_kept |= !is_debug(kept->type, kept->body, kept->len);
		}
		else
		{
			kept->next = NULL;
			*end_taken = kept;
			end_taken = &kept->next;
		}
		kept = next;
	}
	return taken;
}

/*
 * Send what has been kept, unless a message is being sent.  It was to be sent
 * when it came, so it is, also if there is to be no more output since.
 */
void
AioSendKept(void)
{
	Kept	   *volatile next;
	int			nleft_out = left_out;

	if (sending || ending || is_busy())
		return;
	next = take_kept();

	sending = true;
	PG_TRY();
	{
		while (next != NULL)
		{
			Kept	   *kept = next;

			if (!ClientConnectionLost)
				(void) pq_putmessage(kept->type, kept->body, kept->len);
			next = kept->next;
			free(kept);
		}
		if (nleft_out > 0)
			ereport(DEBUG1,
					(errmsg_plural("%d message for the client has been left out",
								   "%d messages for the client have been left out",
								   nleft_out, nleft_out)));
		if (!ClientConnectionLost)
			pq_flush();
	}
	PG_FINALLY();
	{
		sending = false;
	}
	PG_END_TRY();
}

/* Interrupts are processed: send what has been kept, if that may be. */
void
AioSendKeptIfAllowed(void)
{
	if (may_tell(!others_kept))
		AioSendKept();
}

/*
 * Another transaction is about to be waited for: its client hears of what has
 * been done before.  In a scope, this is allowed as for who waits for a lock.
 */
void
AioSendKeptBeforeWait(void)
{
	if (!AioHoldsUpOthers() && (aio_current_scope == NULL || AioSiblingsIdle()))
		AioSendKept();
}

/*
 * A scope has ended, in which messages may have been kept.  Interrupts that
 * were processed in it could not send them, and are not pending any more; nor
 * do they stay so, as there is code that goes on only when none is.
 */
void
AioScopeHasKept(void)
{
	if (others_kept)
		InterruptPending = true;
}

/*
 * Output does not go on before the client takes some: may this process wait for
 * that?  If not, the connection is lost.  Reads ahead are completed before.
 */
bool
AioMayWaitToSend(void)
{
	if (panicking)
	{
		errno = ECONNABORTED;
		return false;
	}
	if (unlikely(aio_read_ahead_used) && !ending)
		AioEndReadAhead(false);
	return true;
}

#ifdef USE_ASSERT_CHECKING
/* The client may be waited for now. */
void
AioAssertMayTell(void)
{
	if (ending)
		return;
	Assert(CritSectionCount == 0);
	Assert(AioHeldLWLocks() == 0);
	Assert(!AioGateIsMine());
	Assert(!has_staged());
}
#endif
