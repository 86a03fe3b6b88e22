/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting for several futures at once, and futures on sockets.
 *
 * A future tells by its configure() on which socket it can be waited for: a
 * foreign server's is one, and so is the io_uring in which this process's own
 * I/O completes.  One WaitEventSet has them all, with the latch.  Its notify()
 * is called when the socket is ready.
 *
 * Others are carried out by whoever waits for them (a flush), or complete where
 * no descriptor tells (an I/O worker's, another process's): they take no longer
 * than the disk does, and are waited for first, by their wait().
 *
 * Suspends:  nothing here does.
 * Errors:    those of callbacks.
 * Tests:     src/test/aio/core, src/test/aio/foreign/t/001_insert.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/io_internal.h"
#include "aio/wait.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

/* events that are taken from a set at a time */
#define EVENTS_MAX	16

/* until we look ourselves whether I/O is complete, in milliseconds */
#define RING_TIMEOUT	10

static bool
socket_poll(AioFuture *future)
{
	return ((AioSocketFuture *) future)->ready;
}

static void
socket_wait(AioFuture *future)
{
	AioWaitForAny(&future, 1, PG_WAIT_EXTENSION);
}

static pgsocket
socket_configure(AioFuture *future, uint32 *events)
{
	AioSocketFuture *waiting = (AioSocketFuture *) future;

	*events = waiting->events;
	return waiting->ready ? PGINVALID_SOCKET : waiting->socket;
}

static void
socket_notify(AioFuture *future, uint32 events)
{
	((AioSocketFuture *) future)->ready = true;
}

static const AioFutureOps socket_ops = {
	.name = "socket",
	.remote = true,
	.poll = socket_poll,
	.wait = socket_wait,
	.configure = socket_configure,
	.notify = socket_notify,
};

/*
 * Make a future of a socket's becoming ready for one of these events, which are
 * those of WaitEventSets.  It stays the caller's.  Raises nothing.
 */
void
AioSocketFutureInit(AioSocketFuture *future, pgsocket socket, uint32 events)
{
	Assert(socket != PGINVALID_SOCKET);
	Assert((events & ~WL_SOCKET_MASK) == 0 && events != 0);
	future->future.ops = &socket_ops;
	future->socket = socket;
	future->events = events;
	future->ready = false;
}

/* The socket of a future while it is waited for, and its place in the set. */
typedef struct Place
{
	pgsocket	socket;
	uint32		events;
	uint32		all_events;		/* that are waited for there, if it is first */
	int			pos;
} Place;

/* How futures can be waited for. */
typedef struct Waiting
{
	AioFuture  *const *futures;
	int			n;
	Place	   *places;			/* of each */
	bool		complete;		/* one is */
	int			nsockets;
	bool		have_disk;		/* a socket is not that of a remote one */
	AioFuture  *other;			/* the first that has none, or NULL */
} Waiting;

/* Add the socket of a future; another one may have it, too. */
static void
add_socket(WaitEventSet *set, Waiting *waiting, int i, pgsocket socket,
		   uint32 events)
{
	Place	   *place = &waiting->places[i];

	place->socket = socket;
	place->events = events;
	for (int j = 0; j < i; j++)
	{
		Place	   *same = &waiting->places[j];

		if (same->socket != socket)
			continue;

		/* it is the first with that socket, hence the one in the set */
		Assert(same->all_events != 0);
		if ((same->all_events | events) != same->all_events)
		{
			same->all_events |= events;
			ModifyWaitEvent(set, same->pos, same->all_events, NULL);
		}
		return;
	}
	place->all_events = events;
	Assert(waiting->nsockets < waiting->n);
	place->pos = AddWaitEventToSet(set, events, socket, NULL, waiting->futures[i]);
	waiting->nsockets++;
}

/* Add the sockets of futures to a set that has room for them. */
static void
add_sockets(WaitEventSet *set, Waiting *waiting, AioFuture *const *futures,
			int n)
{
	memset(waiting, 0, sizeof(Waiting));
	waiting->futures = futures;
	waiting->n = n;
	waiting->places = palloc(n * sizeof(Place));
	for (int i = 0; i < n; i++)
	{
		const AioFutureOps *ops = futures[i]->ops;
		uint32		events;
		pgsocket	socket = PGINVALID_SOCKET;

		if (ops->configure != NULL)
			socket = ops->configure(futures[i], &events);
		waiting->places[i].socket = PGINVALID_SOCKET;
		if (ops->poll(futures[i]))
			waiting->complete = true;
		else if (socket != PGINVALID_SOCKET)
		{
			add_socket(set, waiting, i, socket, events);
			waiting->have_disk |= !ops->remote;
		}
		else if (waiting->other == NULL && ops->wait != NULL)
			waiting->other = futures[i];
	}
}

/* A socket is ready: tell all who wait for that. */
static void
notify(const Waiting *waiting, pgsocket socket, uint32 events)
{
	for (int i = 0; i < waiting->n; i++)
	{
		AioFuture  *future = waiting->futures[i];

		if (waiting->places[i].socket == socket &&
			(waiting->places[i].events & events) != 0 &&
			!future->ops->poll(future))
			future->ops->notify(future, events);
	}
}

/*
 * WaitEventSetWait(), for the caller's own events and for futures, which are
 * notified of theirs.  Returns how many of the caller's have occurred.
 */
static int
wait_and_notify(WaitEventSet *set, long timeout, WaitEvent *events,
				int nevents, const Waiting *waiting, uint32 wait_event_info)
{
	int			noccurred;
	int			nothers = 0;

	noccurred = WaitEventSetWait(set, timeout, events, nevents, wait_event_info);
	for (int i = 0; i < noccurred; i++)
	{
		bool		ours = false;

		for (int j = 0; j < waiting->n && !ours; j++)
			ours = events[i].user_data == waiting->futures[j];
		if (ours)
			notify(waiting, events[i].fd, events[i].events);
		else
			events[nothers++] = events[i];
	}
	return nothers;
}

/*
 * WaitEventSetWait() for a set of the caller's that has the latch, and for
 * these futures, for which it has room.  Those that cannot be waited for by a
 * socket are left out.  Returns the number of the caller's events.
 */
int
AioWaitEventSetWait(WaitEventSet *set, long timeout, WaitEvent *events,
					int nevents, AioFuture *const *futures, int n,
					uint32 wait_event_info)
{
	Waiting		waiting;

	add_sockets(set, &waiting, futures, n);
	nevents = wait_and_notify(set, waiting.complete ? 0 : timeout, events,
							  nevents, &waiting, wait_event_info);
	pfree(waiting.places);
	return nevents;
}

/*
 * Wait until one of these futures may have become complete; returning early is
 * allowed.  Processes interrupts.  No LWLock may be held.  Returns false if
 * nobody can wait for any of them.
 */
bool
AioWaitForAny(AioFuture *const *futures, int n, uint32 wait_event_info)
{
	WaitEventSet *set;
	Waiting		waiting;
	bool		possible;

	Assert(AioHeldLWLocks() == 0);
	CHECK_FOR_INTERRUPTS();
	set = CreateWaitEventSet(CurrentResourceOwner, n + 2);
	/* in single-user mode there is no postmaster */
	if (IsUnderPostmaster)
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	add_sockets(set, &waiting, futures, n);
	possible = waiting.complete || waiting.other != NULL || waiting.nsockets > 0;
	if (waiting.complete || !possible)
		 /* nothing to wait for */ ;
	else if (waiting.other != NULL)
		waiting.other->ops->wait(waiting.other);
	else
	{
		WaitEvent	events[EVENTS_MAX];

		/* somebody else may have emptied our ring since we looked at it */
		if (wait_and_notify(set, waiting.have_disk ? RING_TIMEOUT : -1, events,
							EVENTS_MAX, &waiting, wait_event_info) > 0)
			ResetLatch(MyLatch);
	}
	pfree(waiting.places);
	FreeWaitEventSet(set);
	CHECK_FOR_INTERRUPTS();
	return possible;
}
