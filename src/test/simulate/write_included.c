/*-------------------------------------------------------------------------
 *
 * write_included.c
 *	  The server's write_behind.c, and what each process has of its variables.
 *
 * The file is included, not linked, since its variables are static.  write.c is
 * included by write_aio.c, and bufmgr_internals.c and freelist_internals.c by
 * write_buffers.c, as upstream's files include the latter.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "storage/buffer/write_behind.c"

#include "write_world.h"

/* writes that a process tracks, at most, and the one it is about to start */
#define PLACES	(HANDLES_MAX + 1)

typedef struct BehindLocals
{
	TrackedWrite writes[PLACES];
	int			first;
	int			tracked;
	int			in_flight;
	int			npages;
	bool		looked;
	bool		counted;
	int			passed_over;
	XLogRecPtr	passed_over_upto;
	bool		lack_wal;
	bool		take_oldest;
	bool		write_failed;
	bool		waiting;
	bool		reclaiming;
	bool		write_back_due;
	bool		flushing;
	uint64		nsleeps;
} BehindLocals;

static BehindLocals behind[PROCESSES_MAX];

void
SimBehindInit(void)
{
	memset(&behind[SimMe()], 0, sizeof(BehindLocals));
}

/* Only these of the writes are anything. */
static void
copy_writes(BehindLocals *locals, bool save)
{
	int			n = locals->tracked + 1;

	SIM_CHECK(n <= PLACES, "more writes are tracked than permitted");
	for (int i = 0; i < n; i++)
	{
		TrackedWrite *one = &writes[(locals->first + i) % AIO_WRITE_BEHIND_LIMIT];

		if (save)
			locals->writes[i] = *one;
		else
			*one = locals->writes[i];
	}
}

void
SimBehindSave(void)
{
	BehindLocals *locals = &behind[SimMe()];

	locals->first = first;
	locals->tracked = aio_writes_tracked;
	locals->in_flight = aio_writes_in_flight;
	locals->npages = npages;
	locals->looked = looked;
	locals->counted = counted;
	locals->passed_over = passed_over;
	locals->passed_over_upto = passed_over_upto;
	locals->lack_wal = aio_victims_lack_wal;
	locals->take_oldest = take_oldest;
	locals->write_failed = write_failed;
	locals->waiting = waiting;
	locals->reclaiming = aio_reclaiming;
	locals->write_back_due = write_back_due;
	locals->flushing = flushing;
	locals->nsleeps = aio_nsleeps;
	copy_writes(locals, true);
}

void
SimBehindRestore(void)
{
	BehindLocals *locals = &behind[SimMe()];

	first = locals->first;
	aio_writes_tracked = locals->tracked;
	aio_writes_in_flight = locals->in_flight;
	npages = locals->npages;
	looked = locals->looked;
	counted = locals->counted;
	passed_over = locals->passed_over;
	passed_over_upto = locals->passed_over_upto;
	aio_victims_lack_wal = locals->lack_wal;
	take_oldest = locals->take_oldest;
	write_failed = locals->write_failed;
	waiting = locals->waiting;
	aio_reclaiming = locals->reclaiming;
	write_back_due = locals->write_back_due;
	flushing = locals->flushing;
	aio_nsleeps = locals->nsleeps;
	copy_writes(locals, false);
}

/* Is this a sleep in which waiting for writes would go round in circles? */
bool
SimMaySleepWithWrites(void)
{
	return waiting || aio_reclaiming;
}
