/*-------------------------------------------------------------------------
 *
 * error_point.c
 *	  Go on after an error, without a subtransaction.
 *
 * Only for what changes nothing that would have to be undone, such as the
 * evaluation of an expression whose value may not be needed: locks of pages and
 * interrupts are as before.
 *
 * INVARIANT-98: what is tried and has failed leaves nothing, and AioTry() is
 * the only way to try anything and forget its error.  What it has got belongs
 * to a resource owner of its own, which is released.  What no resource owner
 * counts, such as a connection of SPI, an active snapshot, or a setting, is not
 * given back; so nothing is tried that could get it: no function that the
 * server does not come with, and none that executes queries (side_effects.c).
 * Only who raises the error later, or has the transaction end by it, need not
 * care.
 *
 * Tests: src/test/aio/lookup/t/004_damaged.pl,
 *		  src/test/aio/lookup/t/007_when.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "aio/block.h"
#include "aio/error_point.h"
#include "aio/io_internal.h"
#include "aio/task_port.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/buf_internals.h"
#include "utils/snapmgr.h"

uint64		aio_earlier_errors = 0;

/* Remember what holds before something is tried that may raise an error. */
void
AioMarkErrorPoint(AioErrorPoint *point)
{
	point->memory_context = CurrentMemoryContext;
	point->owner = CurrentResourceOwner;
	point->holdoff = InterruptHoldoffCount;
	point->cancel_holdoff = QueryCancelHoldoffCount;
	point->earlier_errors = aio_earlier_errors;
}

/*
 * Is the error that has just been caught one of rows, or of their index
 * entries, that had waited before something was tried, and were inserted
 * meanwhile?  It is due by now, whoever needs what was tried.
 */
bool
AioErrorIsOfOthers(const AioErrorPoint *point)
{
	return aio_earlier_errors != point->earlier_errors;
}

/*
 * In PG_CATCH(): forget the error, and go on from there.  Who will need the
 * error has copied it.
 */
void
AioReturnToErrorPoint(const AioErrorPoint *point)
{
	ResourceOwner owner = CurrentResourceOwner;

	MemoryContextSwitchTo(point->memory_context);
	CurrentResourceOwner = point->owner;
	FlushErrorState();
	AioCleanUpAfterError();
	if (owner != NULL && owner != point->owner)
		ResourceOwnerReleaseAllOfKind(owner, &buffer_io_resowner_desc);
	InterruptHoldoffCount = point->holdoff;
	QueryCancelHoldoffCount = point->cancel_holdoff;
}

/*
 * Is an error about what was being done?  Others come at any time: who sends
 * them does not want to wait.
 */
bool
AioErrorIsOfWork(int sqlerrcode)
{
	return sqlerrcode != ERRCODE_OUT_OF_MEMORY &&
		ERRCODE_TO_CATEGORY(sqlerrcode) != ERRCODE_OPERATOR_INTERVENTION &&
		ERRCODE_TO_CATEGORY(sqlerrcode) != ERRCODE_TRANSACTION_ROLLBACK;
}

/* Release what belongs to an attempt, which is nothing if it has ended well. */
static void
release_owner(ResourceOwner owner, bool well)
{
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, well, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, well, false);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, well, false);
	ResourceOwnerDelete(owner);
}

/*
 * Do errors like this come at any time, whatever is being done?  They are not
 * forgotten.
 */
static bool
comes_at_any_time(int sqlerrcode)
{
	return !AioErrorIsOfWork(sqlerrcode) ||
		sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_CONNECTION_EXCEPTION;
}

static Snapshot
active_snapshot(void)
{
	return ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
}

/*
 * Call a function that leaves nothing when it ends.  If it raises an error that
 * is about what it does, and for which 'may_forget', unless that is NULL,
 * returns true, the error is forgotten, with what the function has got, and
 * false is returned.  Unless 'error' is NULL, *error is a copy of it then.
 * Others go on.
 *
 * After an error, all LWLocks and locks of pages are released, so the caller
 * has none.
 */
bool
AioTry(void (*function) (void *arg), void *arg, AioMayForget may_forget,
	   ErrorData **error)
{
	ResourceOwner mine = ResourceOwnerCreate(CurrentResourceOwner, "attempt");
	int			nest_level = GetCurrentTransactionNestLevel();
	Snapshot	snapshot = active_snapshot();
	bool		in_batch = pgaio_my_backend->in_batchmode && !aio_batch_open;
	AioErrorPoint point;
	volatile bool well = true;

	Assert(CritSectionCount == 0);
	Assert(AioHeldLWLocks() == 0 && !AioHoldsPageLock());

	AioMarkErrorPoint(&point);
	CurrentResourceOwner = mine;
	PG_TRY();
	{
		function(arg);
		Assert(CurrentResourceOwner == mine);
		Assert(active_snapshot() == snapshot);
	}
	PG_CATCH();
	{
		/* our owner is released with its parent */
		CurrentResourceOwner = point.owner;
		if (comes_at_any_time(geterrcode()) || AioErrorIsOfOthers(&point) ||
			(may_forget != NULL && !may_forget(geterrcode())))
			PG_RE_THROW();

		/* nor could this be given back */
		if (GetCurrentTransactionNestLevel() != nest_level ||
			active_snapshot() != snapshot)
			PG_RE_THROW();
		if (error != NULL)
		{
			MemoryContextSwitchTo(point.memory_context);
			*error = CopyErrorData();
		}
		AioReturnToErrorPoint(&point);
		well = false;
	}
	PG_END_TRY();
	CurrentResourceOwner = point.owner;
	release_owner(mine, well);

	/* a read stream that waits for a page has begun one */
	if (in_batch && !pgaio_my_backend->in_batchmode)
		pgaio_enter_batchmode();
	return well;
}

typedef struct Asked
{
	bool		(*question) (void *arg);
	void	   *arg;
	bool		answer;
} Asked;

static void
ask(void *arg)
{
	Asked	   *asked = arg;

	asked->answer = asked->question(asked->arg);
}

/*
 * Ask something that looks up catalogs, for a statement that runs, as which
 * PostgreSQL would not look there: a function or type that it has found before,
 * or never needs, may have been dropped.  True if the answer is, or there is
 * none.  The caller has no LWLock, and no page locked.
 */
bool
AioIsTrueOrUnknown(bool (*question) (void *arg), void *arg)
{
	Asked		asked = {question, arg, true};

	/* a function that an index calls may run queries, with its page locked */
	if (AioHeldLWLocks() > 0 || AioHoldsPageLock())
		return true;
	return !AioTry(ask, &asked, NULL, NULL) || asked.answer;
}
