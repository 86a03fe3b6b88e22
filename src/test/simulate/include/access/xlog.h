/*-------------------------------------------------------------------------
 *
 * xlog.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_XLOG_H
#define SIMULATE_XLOG_H

#include "access/xlogdefs.h"

enum
{
	WAL_SYNC_METHOD_FSYNC,
	WAL_SYNC_METHOD_FDATASYNC,
	WAL_SYNC_METHOD_OPEN,
	WAL_SYNC_METHOD_OPEN_DSYNC,
};

extern int	wal_segment_size;
extern int	wal_sync_method;
extern int	CommitDelay;
extern int	CommitSiblings;

typedef struct CheckpointStatsData
{
	int			ckpt_bufs_written;
} CheckpointStatsData;

extern CheckpointStatsData CheckpointStats;
extern bool InRecovery;

extern bool RecoveryInProgress(void);
extern bool XLogInsertAllowed(void);
extern bool XLogNeedsFlush(XLogRecPtr upto);
extern XLogRecPtr GetXLogInsertRecPtr(void);
extern void XLogFlush(XLogRecPtr upto);
extern bool XLogBackgroundFlush(void);
extern void XLogSetAsyncXactLSN(XLogRecPtr upto);
extern int	XLogFileInit(XLogSegNo segno, TimeLineID tli);
extern void issue_xlog_fsync(int fd, XLogSegNo segno, TimeLineID tli);

#endif							/* SIMULATE_XLOG_H */
