/*-------------------------------------------------------------------------
 *
 * wal_world.h
 *	  The world of several simulators: processes, a clock and locks
 *	  (wal_world.c); and for that of the pipeline of WAL a disk (wal_disk.c),
 *	  and what xlog.c does around the pipeline (wal_server.c).
 *
 * Processes are coroutines that share one memory.  Another one may go on
 * wherever SimPoint() is called: at each access to an atomic variable, each
 * lock, each system call.  All of them stop where the server crashes, and
 * whether the disk keeps its power then is the caller's choice.
 *
 * What a process has of static variables is the program's to know: it defines
 * SimLocalsInit(), SimLocalsSave() and SimLocalsRestore(), which are called for
 * sim_me when a process is made, stops, and goes on.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_WAL_WORLD_H
#define SIMULATE_WAL_WORLD_H

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "context.h"
#include "server.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#define PROCESSES_MAX	12
#define SEGMENT_MAX		1024	/* bytes */
#define NEVER			PG_UINT64_MAX
#define HELD_MAX		8		/* LWLocks, by a process */

/* Variables of the pipeline, of each process (wal_included.c). */
typedef struct SimPipelineLocals
{
	struct
	{
		int			fd;
		XLogSegNo	segno;
		TimeLineID	tli;
		int			sync_method;
	}			files[2];
	XLogSegNo	prepared;
	XLogRecPtr	write_at;
	int			sync_method;
	int			syncs;
	int			write_ahead;
} SimPipelineLocals;

typedef struct SimProcess
{
	char		name[16];
	void		(*body) (void);
	AioContext	context;
	bool		ended;
	int64		priority;
	const void *waits_for;		/* until SimWake() of it, or */
	uint64		wake_at;		/* until then; NULL and 0 if it may run */
	bool		notices_death;	/* of the postmaster, where it waits */
	SimPipelineLocals locals;	/* if the program is of the pipeline */
	uint32		crit_sections;
	uint32		holdoff;		/* of interrupts */
	slock_t    *spinlock;		/* that it holds */
	LWLock	   *lwlocks[HELD_MAX];	/* likewise */
	int			nlwlocks;
	int			external_fds;	/* that it has reserved */
	Latch		latch;
	bool		wakes_senders;	/* when it has left its critical section */
	bool		owes_wakeup;	/* it has flushed, and they do not know */

	/* xlog.c */
	bool		inserting;
	XLogRecPtr	inserting_at;	/* all before it is inserted; 0 is unknown */
	XLogRecPtr	written;		/* as far as it knows */
	XLogRecPtr	flushed;
} SimProcess;

/* How a life of the server ends. */
typedef enum SimEnd
{
	SIM_FINISHED,				/* whoever was to end has ended */
	SIM_CRASHED,
} SimEnd;

/* wal_world.c */
extern SimProcess *sim_me;
extern SimProcess sim_processes[PROCESSES_MAX];
extern int	sim_nprocesses;
extern uint64 sim_now;
extern uint64 sim_steps;
extern uint64 sim_crash_at;		/* step */
extern bool sim_panicked;
extern bool sim_postmaster_dead;
extern int	sim_switches;		/* chances in a thousand, at each point */
extern bool sim_by_priority;	/* who was interrupted lets the others go
								 * first */

extern void SimPoint(void);
extern void SimTell(const char *format,...) pg_attribute_printf(1, 2);
extern SimProcess *SimProcessMake(const char *name, int number, void (*body) (void));
extern void SimWait(const void *what, uint64 until, bool notices_death);
extern void SimWake(const void *what);
extern SimEnd SimRun(bool (*finished) (void));
extern void SimWorldReset(void);
extern void SimCrash(void);
extern bool SimLatchWait(uint64 timeout);

/* each program's own */
extern void SimLocalsInit(void);
extern void SimLocalsSave(void);
extern void SimLocalsRestore(void);

/* wal_included.c */
extern void SimPipelineCheckIdle(void);

/* wal_disk.c */
typedef struct SimInode SimInode;
typedef struct SimDiskOp SimDiskOp;

extern int	sim_disk_time;		/* of an operation, at most; microseconds */
extern int	sim_faults;			/* errors: chances in a thousand */
extern int	sim_sync_faults;
extern int	sim_shorts;			/* short writes, likewise */

extern void SimDiskReset(void);
extern SimInode *SimInodeOf(XLogSegNo segno);
extern XLogSegNo SimInodeSegment(const SimInode *inode);
extern SimInode *SimInodeMake(XLogSegNo segno);
extern void SimInodeRename(XLogSegNo from, XLogSegNo to);
extern void SimInodeRemove(XLogSegNo segno);
extern XLogSegNo SimFirstSegment(void);
extern XLogSegNo SimLastSegment(void);
extern int	SimFileOpen(SimInode *inode, int sync_method);
extern void SimFileClose(int fd);
extern SimInode *SimFileInode(int fd);
extern int	SimFileSyncMethod(int fd);
extern SimDiskOp *SimDiskWrite(int fd, const char *from, Size nbytes,
							   uint32 offset, bool asynchronous);
extern int	SimDiskWriteNow(int fd, const char *from, Size nbytes,
							uint32 offset);
extern int	SimDiskSync(int fd);
extern bool SimDiskDone(SimDiskOp *op, int *result);
extern void SimDiskForget(SimDiskOp *op);
extern uint64 SimDiskNextEvent(void);
extern void SimDiskFire(void);
extern void SimDiskCrash(bool power_lost);
extern void SimDiskSettle(void);
extern void SimDiskRecover(void);
extern int	SimDiskRead(int fd, char *to, Size nbytes, uint32 offset);
extern bool SimDiskReads(const char *from, const void *exempt);
extern char SimDiskByte(XLogRecPtr ptr, bool durable);

/* wal_server.c */
extern XLogRecPtr sim_write_result;
extern XLogRecPtr sim_flush_result;
extern bool sim_with_workers;	/* io_method=worker */
extern int	sim_one_size;		/* of all records, or 0 */

/* parameters as they are configured now; processes come to know of it later */
extern int	sim_method;			/* wal_sync_method */
extern int	sim_syncs;			/* aio.wal_syncs */
extern int	sim_write_ahead;	/* aio.wal_write_ahead */

extern void SimServerStart(XLogRecPtr end);
extern XLogRecPtr SimInsert(Size size);
extern XLogRecPtr SimSwitchSegment(void);
extern void SimCheckpoint(void);
extern void SimWorker(void);
extern XLogRecPtr SimInsertEnd(void);
extern XLogRecPtr SimRecover(void);
extern void SimEraseWal(void);
extern void SimCheckKept(bool durable);
extern void SimCheckFinished(void);
extern void SimReloadConfiguration(void);
extern void SimServerReset(XLogRecPtr start);

#endif							/* SIMULATE_WAL_WORLD_H */
