/*-------------------------------------------------------------------------
 *
 * walreceiver.h
 *	  WAL is received while what was received before is synced.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_WALRECEIVER_H
#define AIO_WALRECEIVER_H

#include "access/xlogdefs.h"
#include "storage/latch.h"

extern XLogRecPtr AioSyncReceivedWal(bool dying, TimeLineID tli);
extern void AioFlushReceivedWal(TimeLineID tli, bool end_of_wal);
extern void AioReceivedWalMessage(TimeLineID tli);
extern int	AioWaitForReceivedWal(TimeLineID tli, Latch *latch, int wake_events,
								  pgsocket sock, long timeout,
								  uint32 wait_event_info);

#endif							/* AIO_WALRECEIVER_H */
