/*-------------------------------------------------------------------------
 *
 * backup_pace.c
 *	  A base backup whose rate is limited sends at an even pace.
 *
 * Upstream sends what is allowed in an eighth of a second at full speed, and
 * pauses for the rest of it.  While it reads 12 MB for a rate of 100 MB/s,
 * others wait for the disk and the processor.  Here, the walsender pauses
 * whenever it is a little ahead of the time.  It makes up for what it could
 * not send, but for no more than that eighth of a second, as upstream does.
 *
 * Nothing here suspends.
 *
 * Tests: src/test/aio/backup/t/006_pace.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/backup.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* a pause that is shorter costs more than it is good for; microseconds */
#define SHORTEST_PAUSE	2000

/*
 * Called before another 'nbytes' are sent, at a rate of 'rate_bytes' in
 * 'rate_time', which is in microseconds: wait until they are due.  '*due' is
 * when those before were, and at first when the backup begins.
 *
 * Returns false if this is left to upstream: without aio.backup_buffers.  May
 * raise an error, as interrupts are processed.
 */
bool
AioBackupPace(TimestampTz *due, uint64 rate_bytes, TimeOffset rate_time,
			  size_t nbytes)
{
	TimeOffset	cost = (nbytes * rate_time + rate_bytes - 1) / rate_bytes;
	TimestampTz now;

	if (aio_backup_buffers == 0)
		return false;
	now = GetCurrentTimestamp();
	*due = Max(*due, now - rate_time) + cost;
	for (;;)
	{
		int			events;

		/* a clock that is set back does not stop the backup */
		*due = Min(*due, now + rate_time + cost);
		if (*due - now < SHORTEST_PAUSE)
			break;
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						   (*due - now) / 1000, WAIT_EVENT_BASE_BACKUP_THROTTLE);
		CHECK_FOR_INTERRUPTS();
		if (events & WL_TIMEOUT)
			break;
		now = GetCurrentTimestamp();
	}
	return true;
}
