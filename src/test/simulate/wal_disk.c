/*-------------------------------------------------------------------------
 *
 * wal_disk.c
 *	  A disk that reorders, delays, cuts short, fails, and loses power.
 *
 * A file has what programs read, and what survives a loss of power; both are
 * changed sector by sector.  A write changes the former at some moment while it
 * is under way, from memory as that is then; the latter is what syncs, and
 * writes through files that sync, have made it when they end.  At a loss of
 * power each sector that was not synced is kept or not.  A sync that fails
 * leaves some sectors that no later one writes, and all who have the file open
 * then are told of the error when they sync next, as by Linux.
 *
 * A sector is a page: what comes back by a page that two losses of power have
 * torn, PostgreSQL has no remedy for, either.
 *
 * Files are told from their names, so that one can be renamed while somebody
 * has it open.
 *
 * What the kernel has been given outlives processes: unless somebody waits for
 * it, it is written at any later moment, when others write there.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wal_world.h"

#define SECTOR			XLOG_BLCKSZ
#define SECTORS			(SEGMENT_MAX / SECTOR)
#define INODES_MAX		256
#define OPS_MAX			64
#define FDS_MAX			128

typedef struct Sector
{
	uint32		version;		/* that programs read */
	uint32		durable;		/* that survives */
	bool		lost;			/* no sync will write it */
} Sector;

struct SimInode
{
	bool		used;
	XLogSegNo	segno;			/* its name */
	int			errors;			/* of writing back, each told to all who have
								 * it open */
	Sector		sectors[SECTORS];
	char		cached[SEGMENT_MAX];
	char		durable[SEGMENT_MAX];
};

struct SimDiskOp
{
	bool		used;
	bool		write;			/* or sync */
	bool		asynchronous;	/* the kernel does it, not a process */
	bool		orphan;			/* whoever has begun it is gone */
	bool		done;
	bool		synced;			/* a write that is durable when it is done */
	int			fd;
	SimInode   *inode;
	const char *from;
	Size		nbytes;			/* of the whole */
	Size		ntransferred;	/* that will be */
	uint32		offset;
	uint64		halfway_at;
	uint64		complete_at;
	bool		is_halfway;
	uint32		transferred;	/* sectors, by bit, counted from the first */
	int			result;
	uint32		versions[SECTORS];	/* as a sync found them */
	char		content[SEGMENT_MAX];
};

int			sim_disk_time;
int			sim_faults;
int			sim_sync_faults;
int			sim_shorts;

static SimInode inodes[INODES_MAX];
static int	ninodes;			/* those after these are unused */
static SimDiskOp ops[OPS_MAX];
static uint64 next_event;
static uint32 last_version;

static struct
{
	SimInode   *inode;			/* NULL if it is closed */
	int			sync_method;
	int			errors;			/* that it has been told of */
}			fds[FDS_MAX];

/* ------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------
 */

void
SimDiskReset(void)
{
	for (int i = 0; i < ninodes; i++)
		inodes[i].used = false;
	ninodes = 0;
	memset(fds, 0, sizeof(fds));
	for (int i = 0; i < OPS_MAX; i++)
		ops[i].used = false;
	next_event = NEVER;
	last_version = 0;
}

SimInode *
SimInodeOf(XLogSegNo segno)
{
	static SimInode *last = inodes;

	if (last->used && last->segno == segno)
		return last;
	for (int i = 0; i < ninodes; i++)
	{
		if (inodes[i].used && inodes[i].segno == segno)
			return last = &inodes[i];
	}
	return NULL;
}

XLogSegNo
SimInodeSegment(const SimInode *inode)
{
	return inode->segno;
}

/* A new file, of zeros. */
SimInode *
SimInodeMake(XLogSegNo segno)
{
	SIM_CHECK(SimInodeOf(segno) == NULL, "a segment is created twice");
	for (int i = 0; i < INODES_MAX; i++)
	{
		if (!inodes[i].used)
		{
			ninodes = Max(ninodes, i + 1);
			memset(&inodes[i], 0, sizeof(SimInode));
			inodes[i].used = true;
			inodes[i].segno = segno;
			return &inodes[i];
		}
	}
	SimFail(__FILE__, __LINE__, "there are too many segments");
}

void
SimInodeRename(XLogSegNo from, XLogSegNo to)
{
	SimInode   *inode = SimInodeOf(from);

	SIM_CHECK(inode != NULL && SimInodeOf(to) == NULL, "a segment is renamed wrongly");
	inode->segno = to;
}

/* Whoever has it open keeps it. */
void
SimInodeRemove(XLogSegNo segno)
{
	SimInodeOf(segno)->segno = PG_UINT64_MAX;
}

XLogSegNo
SimFirstSegment(void)
{
	XLogSegNo	first = PG_UINT64_MAX;

	for (int i = 0; i < ninodes; i++)
	{
		if (inodes[i].used)
			first = Min(first, inodes[i].segno);
	}
	return first;
}

XLogSegNo
SimLastSegment(void)
{
	XLogSegNo	last = 0;

	for (int i = 0; i < ninodes; i++)
	{
		if (inodes[i].used && inodes[i].segno != PG_UINT64_MAX)
			last = Max(last, inodes[i].segno);
	}
	return last;
}

int
SimFileOpen(SimInode *inode, int sync_method)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
	{
		if (fds[fd].inode == NULL)
		{
			fds[fd].inode = inode;
			fds[fd].sync_method = sync_method;
			fds[fd].errors = inode->errors;
			return fd;
		}
	}
	SimFail(__FILE__, __LINE__, "files are not closed");
}

void
SimFileClose(int fd)
{
	SIM_CHECK(SimFileInode(fd) != NULL, "a file is closed twice");
	fds[fd].inode = NULL;
}

SimInode *
SimFileInode(int fd)
{
	SIM_CHECK(fd >= 3 && fd < FDS_MAX, "what is used is no file");
	return fds[fd].inode;
}

int
SimFileSyncMethod(int fd)
{
	return fds[fd].sync_method;
}

/* ------------------------------------------------------------------------
 * Operations
 * ------------------------------------------------------------------------
 */

static SimDiskOp *
begin(int fd, bool write)
{
	SimDiskOp  *op = ops;

	while (op->used)
	{
		op++;
		SIM_CHECK(op < ops + OPS_MAX, "too many operations are in flight");
	}
	op->used = true;
	op->write = write;
	op->asynchronous = false;
	op->orphan = false;
	op->done = false;
	op->fd = fd;
	op->inode = SimFileInode(fd);
	SIM_CHECK(op->inode != NULL, "a file is used that is closed");
	op->is_halfway = false;
	op->halfway_at = sim_now + SimUpTo(&sim_world, sim_disk_time);
	op->complete_at = op->halfway_at + SimUpTo(&sim_world, sim_disk_time);
	next_event = Min(next_event, op->halfway_at);
	return op;
}

/* What becomes of a write: its result, and how much of it is done. */
static void
choose_result(SimDiskOp *op, bool asynchronous)
{
	static const int harmless[] = {EINTR, EAGAIN, ECANCELED};

	op->result = op->ntransferred = op->nbytes;
	if (SimChance(&sim_world, sim_shorts) && op->nbytes > 1)
		op->result = op->ntransferred = 1 + SimUpTo(&sim_world, op->nbytes - 2);
	else if (SimChance(&sim_world, sim_shorts))
	{
		op->result = asynchronous ? -harmless[SimUpTo(&sim_world, 2)] : -EINTR;
		op->ntransferred = 0;
	}
	else if (SimChance(&sim_world, sim_faults))
	{
		op->result = -EIO;
		op->ntransferred = SimUpTo(&sim_world, op->nbytes);
	}
}

/* No two writes of the same page are in flight, or the older one may win. */
static void
check_overlap(const SimDiskOp *op)
{
	for (int i = 0; i < OPS_MAX; i++)
	{
		const SimDiskOp *other = &ops[i];

		if (other != op && other->used && !other->done && other->write &&
			!other->orphan &&
			other->inode == op->inode)
			SIM_CHECK(other->offset + other->nbytes <= op->offset ||
					  op->offset + op->nbytes <= other->offset,
					  "two writes of one page are in flight");
	}
}

/* Begin to write. */
SimDiskOp *
SimDiskWrite(int fd, const char *from, Size nbytes, uint32 offset,
			 bool asynchronous)
{
	SimDiskOp  *op = begin(fd, true);

	SIM_CHECK(nbytes > 0 && offset + nbytes <= (Size) wal_segment_size,
			  "a write goes beyond its segment");
	op->asynchronous = asynchronous;
	op->from = from;
	op->nbytes = nbytes;
	op->offset = offset;
	op->transferred = 0;
	op->synced = fds[fd].sync_method == WAL_SYNC_METHOD_OPEN ||
		fds[fd].sync_method == WAL_SYNC_METHOD_OPEN_DSYNC;
	choose_result(op, asynchronous);
	check_overlap(op);
	return op;
}

static void
put_sector(SimDiskOp *op, int n, Size from, Size to)
{
	Sector	   *sector = &op->inode->sectors[n];

	memcpy(op->inode->cached + from, op->from + (from - op->offset), to - from);
	sector->version = ++last_version;
	sector->lost = false;
}

/* Transfer what is not yet, or by chance, some of it. */
static void
transfer(SimDiskOp *op, bool some)
{
	int			first = op->offset / SECTOR;
	Size		end = op->offset + op->ntransferred;

	for (int n = first; n * (Size) SECTOR < end; n++)
	{
		if ((op->transferred & 1u << (n - first)) != 0 ||
			(some && SimChance(&sim_world, 500)))
			continue;
		op->transferred |= 1u << (n - first);
		put_sector(op, n, Max(op->offset, n * (Size) SECTOR),
				   Min(end, (n + 1) * (Size) SECTOR));
	}
}

static void
make_durable(SimInode *inode, int n, const char *content, uint32 version)
{
	Sector	   *sector = &inode->sectors[n];

	if (sector->lost || sector->durable >= version)
		return;
	memcpy(inode->durable + n * SECTOR, content + n * SECTOR, SECTOR);
	sector->durable = version;
}

/* The kernel could not write back these sectors, and will not try again. */
static void
lose_some(SimInode *inode, int from, int to)
{
	for (int n = from; n < to; n++)
	{
		Sector	   *sector = &inode->sectors[n];

		if (sector->version != sector->durable)
			sector->lost = SimChance(&sim_world, 500);
	}
	inode->errors++;
}

/* Whoever syncs is told of errors since this file was opened, once. */
static void
tell_errors(SimDiskOp *op)
{
	if (fds[op->fd].errors != op->inode->errors)
		op->result = -EIO;
	fds[op->fd].errors = op->inode->errors;
}

static void
end_write(SimDiskOp *op)
{
	int			first = op->offset / SECTOR;
	int			end = (op->offset + op->ntransferred + SECTOR - 1) / SECTOR;

	transfer(op, false);
	if (!op->synced || op->ntransferred == 0 || op->orphan)
		return;
	if (op->result < 0)
		lose_some(op->inode, first, end);
	tell_errors(op);
	for (int n = first; op->result >= 0 && n < end; n++)
		make_durable(op->inode, n, op->inode->cached, op->inode->sectors[n].version);
}

static void
end_sync(SimDiskOp *op)
{
	if (op->result < 0)
		lose_some(op->inode, 0, wal_segment_size / SECTOR);
	tell_errors(op);
	for (int n = 0; op->result >= 0 && n < wal_segment_size / SECTOR; n++)
		make_durable(op->inode, n, op->content, op->versions[n]);
}

static void
go_on(SimDiskOp *op)
{
	if (!op->is_halfway)
	{
		op->is_halfway = true;
		if (op->write)
			transfer(op, true);
		return;
	}
	if (op->write)
		end_write(op);
	else
		end_sync(op);
	op->done = true;
	if (op->orphan)
		op->used = false;
	SimWake(op);
}

uint64
SimDiskNextEvent(void)
{
	return next_event;
}

static uint64
event_of(const SimDiskOp *op)
{
	if (!op->used || op->done)
		return NEVER;
	return op->is_halfway ? op->complete_at : op->halfway_at;
}

/* All that is due happens. */
void
SimDiskFire(void)
{
	next_event = NEVER;
	for (int i = 0; i < OPS_MAX; i++)
	{
		if (event_of(&ops[i]) <= sim_now)
			go_on(&ops[i]);
		next_event = Min(next_event, event_of(&ops[i]));
	}
}

bool
SimDiskDone(SimDiskOp *op, int *result)
{
	*result = op->result;
	return op->done;
}

void
SimDiskForget(SimDiskOp *op)
{
	op->used = false;
}

static int
wait_for(SimDiskOp *op)
{
	while (!op->done)
		SimWait(op, NEVER, false);
	op->used = false;
	return op->result;
}

/* Write, and wait; returns bytes, or an error that is negative. */
int
SimDiskWriteNow(int fd, const char *from, Size nbytes, uint32 offset)
{
	SimPoint();
	return wait_for(SimDiskWrite(fd, from, nbytes, offset, false));
}

int
SimDiskSync(int fd)
{
	SimDiskOp  *op;

	SimPoint();
	op = begin(fd, false);
	op->result = SimChance(&sim_world, sim_sync_faults) ? -EIO : 0;
	memcpy(op->content, op->inode->cached, wal_segment_size);
	for (int n = 0; n < wal_segment_size / SECTOR; n++)
		op->versions[n] = op->inode->sectors[n].version;
	return wait_for(op);
}

int
SimDiskRead(int fd, char *to, Size nbytes, uint32 offset)
{
	SimPoint();
	memcpy(to, SimFileInode(fd)->cached + offset, nbytes);
	return nbytes;
}

/* Is memory of this page being written? */
bool
SimDiskReads(const char *page, const void *exempt)
{
	for (int i = 0; i < OPS_MAX; i++)
	{
		const SimDiskOp *op = &ops[i];

		if (op->used && op->write && !op->done && op != exempt && !op->orphan &&
			op->from < page + XLOG_BLCKSZ && page < op->from + op->nbytes)
			return true;
	}
	return false;
}

/* ------------------------------------------------------------------------
 * Crashes
 * ------------------------------------------------------------------------
 */

/* What a process wrote itself ends with it; the kernel may drop what it has. */
static void
survive(SimDiskOp *op, bool power_lost)
{
	if (op->done || !op->write)
	{
		op->used = false;
		return;
	}
	if (power_lost || !op->asynchronous || SimChance(&sim_world, 300))
	{
		transfer(op, true);
		op->used = false;
		return;
	}
	if (op->orphan)
		return;

	/* memory that is shared with nobody any more */
	memcpy(op->content, op->from, op->nbytes);
	op->from = op->content;
	op->orphan = true;
}

/*
 * All processes are gone.  What they were writing is written in part, or will
 * be; without power, what was not synced is kept in part.
 */
void
SimDiskCrash(bool power_lost)
{
	for (int i = 0; i < OPS_MAX; i++)
	{
		if (ops[i].used)
			survive(&ops[i], power_lost);
	}
	next_event = NEVER;
	for (int i = 0; i < OPS_MAX; i++)
		next_event = Min(next_event, event_of(&ops[i]));
	memset(fds, 0, sizeof(fds));
	for (int i = 0; power_lost && i < ninodes; i++)
	{
		for (int n = 0; n < wal_segment_size / SECTOR; n++)
		{
			Sector	   *sector = &inodes[i].sectors[n];

			if (SimChance(&sim_world, 500))
				make_durable(&inodes[i], n, inodes[i].cached, sector->version);
			memcpy(inodes[i].cached + n * SECTOR, inodes[i].durable + n * SECTOR, SECTOR);
		}
	}
}

/* Wait for what the kernel has been given by processes that are gone. */
void
SimDiskSettle(void)
{
	for (int i = 0; i < OPS_MAX; i++)
	{
		while (ops[i].used)
			go_on(&ops[i]);
	}
	next_event = NEVER;
}

/* Recovery begins: it syncs all that it finds. */
void
SimDiskRecover(void)
{
	for (int i = 0; i < ninodes; i++)
	{
		SimInode   *inode = &inodes[i];

		if (inode->segno == PG_UINT64_MAX)
			inode->used = false;
		for (int n = 0; inode->used && n < wal_segment_size / SECTOR; n++)
		{
			Sector	   *sector = &inode->sectors[n];

			memcpy(inode->durable + n * SECTOR, inode->cached + n * SECTOR, SECTOR);
			sector->version = sector->durable = ++last_version;
			sector->lost = false;
		}
	}
}

char
SimDiskByte(XLogRecPtr ptr, bool durable)
{
	SimInode   *inode = SimInodeOf(ptr / wal_segment_size);
	uint32		offset = ptr % wal_segment_size;

	SIM_CHECK(inode != NULL, "a segment is gone that is needed");
	return durable ? inode->durable[offset] : inode->cached[offset];
}
