/*-------------------------------------------------------------------------
 *
 * write_disk.c
 *	  A disk that takes its time, fails and loses power, and what the server
 *	  has synced there.
 *
 * Reads and writes are complete in any order.  The memory that is written is
 * read when that is, so it must stay as it is until then.  A write that fails
 * may have written some of its pages, or none.
 *
 * Of each page the disk has the version that a sync has made durable, and those
 * that were written later: after a loss of power any of them may be there, and
 * nobody knows which.  Pages are not torn: full-page images are not simulated.
 *
 * A crash of processes leaves the kernel what is in flight.  The server waits
 * for that before it starts again.
 *
 * Invariants: no page is written before its WAL, or in the middle of a change;
 * no two writes of a page are in flight, nor a read and a write.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_world.h"

#define VERSIONS_MAX	24		/* of a page, that may be there */
#define IOS_MAX			128
#define REQUESTS_MAX	64

struct SimIO
{
	bool		used;
	bool		write;
	bool		done;
	bool		orphan;			/* its process is gone, and its memory */
	int			first;			/* page */
	int			npages;
	char	   *pages[MAX_IO_COMBINE_LIMIT];
	SimPage		copies[MAX_IO_COMBINE_LIMIT];	/* of what is written */
	uint64		done_at;
	const void *wakes;
	int			result;
};

/* What may be there after a loss of power; the last one is read. */
typedef struct Versions
{
	int			n;
	SimPage		pages[VERSIONS_MAX];	/* the first one is durable */
} Versions;

int			sim_data_faults;
int			sim_sync_room;

static Versions versions[PAGES_MAX];
static SimIO ios[IOS_MAX];
static int	nios;				/* that have been used */
static uint64 next_event;		/* or later */

/* a request for each segment, in shared memory */
static int	requests[REQUESTS_MAX];
static int	nrequests;

/* the checkpointer's: the cycle in which a sync was first requested, or 0 */
static uint32 pending[FILES_MAX * SEGMENTS_MAX];
static uint32 cycle;

uint32
SimChecksum(const SimPage *page)
{
	return (page->number + 1) * 2654435761U ^ page->body * 40503 ^
		(uint32) page->lsn * 69069 ^ page->hints;
}

void
PageSetChecksumInplace(Page page, BlockNumber block)
{
	SimPage    *contents = (SimPage *) page;

	SIM_CHECK(contents->number % BLOCKS_MAX == block, "a page is written in the place of another one");
	contents->checksum = SimChecksum(contents);
}

/* What the disk has, as far as the kernel knows. */
const SimPage *
SimOnDisk(int page)
{
	return &versions[page].pages[versions[page].n - 1];
}

/* Would something as new as this be there, whatever happens? */
bool
SimIsDurable(int page, XLogRecPtr lsn)
{
	for (int i = 0; i < versions[page].n; i++)
	{
		if (versions[page].pages[i].lsn < lsn)
			return false;
	}
	return true;
}

void
SimMakeDurable(int page, const SimPage *contents)
{
	versions[page].n = 1;
	versions[page].pages[0] = *contents;
}

static void
add_version(int page, const SimPage *contents)
{
	Versions   *all = &versions[page];

	/* that there are so many is not known */
	if (all->n == VERSIONS_MAX)
	{
		memmove(&all->pages[1], &all->pages[2], (VERSIONS_MAX - 2) * sizeof(SimPage));
		all->n--;
	}
	all->pages[all->n++] = *contents;
}

/* ------------------------------------------------------------------------
 * I/O
 * ------------------------------------------------------------------------
 */

/* Is a write of it in flight? */
bool
SimIsWritten(int page)
{
	for (int i = 0; i < nios; i++)
	{
		if (ios[i].used && ios[i].write && !ios[i].done &&
			page >= ios[i].first && page < ios[i].first + ios[i].npages)
			return true;
	}
	return false;
}

static void
check_exclusive(const SimIO *io)
{
	for (int i = 0; i < nios; i++)
	{
		const SimIO *other = &ios[i];

		if (!other->used || other->done || other == io ||
			other->first >= io->first + io->npages ||
			io->first >= other->first + other->npages)
			continue;
		SIM_CHECK(!io->write || !other->write, "two writes of a page are in flight");
		SIM_CHECK(io->write == other->write, "a page is read while it is being written");
	}
}

static void
check_write(const SimIO *io, int i)
{
	const SimPage *page = &io->copies[i];
	int			number = io->first + i;

	SIM_CHECK(page->number == number, "a page is written in the place of another one");
	SIM_CHECK(page->checksum == SimChecksum(page), "a page is written with a wrong checksum");
	if (SimIsUnlogged(number))
		return;
	SIM_CHECK(SimMayWrite(page->lsn), "a page is written before its WAL");
	SIM_CHECK(page->body == SimBodyOf(page->lsn), "a page is written in the middle of a change");
}

SimIO *
SimIOStart(bool write, int file, BlockNumber block, int npages, char **pages,
		   const void *wakes)
{
	SimIO	   *io = ios;

	while (io < ios + nios && io->used)
		io++;
	SIM_CHECK(io < ios + IOS_MAX, "too much I/O is in flight");
	nios = Max(nios, io - ios + 1);
	SIM_CHECK(npages > 0 && block % RELSEG_SIZE + npages <= RELSEG_SIZE, "I/O crosses the end of a segment");
	memset(io, 0, offsetof(SimIO, copies));
	io->used = true;
	io->write = write;
	io->first = file * BLOCKS_MAX + block;
	io->npages = npages;
	io->wakes = wakes;
	io->done_at = sim_now + 1 + SimUpTo(&sim_world, SimChance(&sim_world, 100) ? 10 * sim_disk_time : sim_disk_time);
	next_event = Min(next_event, io->done_at);
	memcpy(io->pages, pages, npages * sizeof(char *));
	check_exclusive(io);
	for (int i = 0; i < npages && write; i++)
	{
		memcpy(&io->copies[i], pages[i], sizeof(SimPage));
		check_write(io, i);
	}
	return io;
}

bool
SimIODone(SimIO *io, int *result)
{
	*result = io->result;
	return io->done;
}

void
SimIOForget(SimIO *io)
{
	SIM_CHECK(io->done, "somebody forgets I/O that is not complete");
	io->used = false;
}

static void
carry_out(SimIO *io)
{
	bool		fails = SimChance(&sim_world, sim_data_faults);
	int			kind = SimUpTo(&sim_world, 2);
	int			nwritten = fails && kind > 0 ? SimUpTo(&sim_world, io->npages - 1) : io->npages;

	for (int i = 0; i < io->npages && io->write; i++)
	{
		/* of what is lost parts may have been written */
		if (i >= nwritten || (fails && kind == 0 && SimChance(&sim_world, 500)))
			continue;
		SIM_CHECK(io->orphan || memcmp(&io->copies[i], io->pages[i], sizeof(SimPage)) == 0,
				  "memory changes while it is being written");
		add_version(io->first + i, &io->copies[i]);
	}
	for (int i = 0; i < io->npages && !io->write && !fails; i++)
		memcpy(io->pages[i], SimOnDisk(io->first + i), sizeof(SimPage));
	io->result = nwritten * BLCKSZ;
	if (fails && (kind == 0 || !io->write))
		io->result = -EIO;
	else if (fails && nwritten == 0)
		io->result = -ENOSPC;
	io->done = true;
	SimTell("the disk has %s %d of %d pages at %d: %d", io->write ? "written" : "read",
			nwritten, io->npages, io->first, io->result);
	if (io->wakes != NULL)
		SimWake(io->wakes);
	SimWake(io);
	if (io->orphan)
		io->used = false;
}

/* For wal_world.c. */
uint64
SimDiskNextEvent(void)
{
	return next_event;
}

void
SimDiskFire(void)
{
	next_event = NEVER;
	for (int i = 0; i < nios; i++)
	{
		if (!ios[i].used || ios[i].done)
			continue;
		if (ios[i].done_at <= sim_now)
			carry_out(&ios[i]);
		else
			next_event = Min(next_event, ios[i].done_at);
	}
	while (nios > 0 && !ios[nios - 1].used)
		nios--;
}

/* A write that is waited for; returns how many bytes, or a negative errno. */
int
SimWriteNow(int file, BlockNumber block, int npages, char **pages)
{
	SimIO	   *io = SimIOStart(true, file, block, npages, pages, NULL);
	int			result;

	while (!SimIODone(io, &result))
		SimWait(io, NEVER, false);
	SimIOForget(io);
	return result;
}

/* ------------------------------------------------------------------------
 * Syncs
 * ------------------------------------------------------------------------
 */

/* What has been written before is durable after it. */
void
SimSyncSegment(int file, int segment)
{
	int			first = file * BLOCKS_MAX + segment * RELSEG_SIZE;
	SimPage		before[RELSEG_SIZE];

	SimPoint();
	for (int i = 0; i < RELSEG_SIZE; i++)
		before[i] = *SimOnDisk(first + i);
	if (sim_me != NULL)
		pg_usleep(SimUpTo(&sim_world, 3 * sim_disk_time));
	for (int i = 0; i < RELSEG_SIZE; i++)
	{
		Versions   *all = &versions[first + i];
		int			found = all->n - 1;

		while (found > 0 && memcmp(&all->pages[found], &before[i], sizeof(SimPage)) != 0)
			found--;
		memmove(all->pages, &all->pages[found], (all->n - found) * sizeof(SimPage));
		all->n -= found;
	}
	SimTell("has synced segment %d of file %d", segment, file);
}

/* An older request stays as old as it is. */
static void
remember(int segment)
{
	if (pending[segment] == 0)
		pending[segment] = cycle;
}

/* The queue, which may be full; the checkpointer has its own list. */
bool
RegisterSyncRequest(const FileTag *tag, int type, bool retry_on_error)
{
	int			segment = (tag->rlocator.relNumber - FIRST_NUMBER) * SEGMENTS_MAX + tag->segno;

	SIM_CHECK(!retry_on_error && tag->segno < SEGMENTS_MAX, "a sync of no file is requested");
	SimPoint();
	SimTell("requests a sync of segment %d of file %d", (int) tag->segno, segment / SEGMENTS_MAX);
	if (AmCheckpointerProcess())
	{
		remember(segment);
		return true;
	}
	for (int i = 0; i < nrequests; i++)
	{
		if (requests[i] == segment)
			return true;
	}
	if (nrequests >= sim_sync_room)
	{
		SimTell("the queue of sync requests is full");
		return false;
	}
	requests[nrequests++] = segment;
	return true;
}

void
SimAbsorbSyncRequests(void)
{
	SimPoint();
	if (nrequests > 0)
		SimTell("absorbs %d requests", nrequests);
	for (int i = 0; i < nrequests; i++)
		remember(requests[i]);
	nrequests = 0;
}

/* Sync what was requested before, and not what is meanwhile. */
void
SimProcessSyncRequests(void)
{
	SimAbsorbSyncRequests();
	cycle++;
	for (int i = 0; i < (int) lengthof(pending); i++)
	{
		if (SimChance(&sim_world, 300))
			SimAbsorbSyncRequests();
		if (pending[i] == 0 || pending[i] == cycle)
			continue;
		SimSyncSegment(i / SEGMENTS_MAX, i % SEGMENTS_MAX);
		pending[i] = 0;
	}
}

/* A server that starts after a crash syncs all that is there. */
void
SimSyncAll(void)
{
	for (int page = 0; page < PAGES_MAX; page++)
		SimMakeDurable(page, SimOnDisk(page));
}

/* ------------------------------------------------------------------------
 * Start and crash
 * ------------------------------------------------------------------------
 */

void
SimDataReset(void)
{
	for (int page = 0; page < PAGES_MAX; page++)
	{
		SimPage		contents = {.number = page};

		contents.checksum = SimChecksum(&contents);
		SimMakeDurable(page, &contents);
	}
	nios = 0;
	next_event = NEVER;
	nrequests = 0;
	cycle = 1;
	memset(ios, 0, sizeof(ios));
	memset(pending, 0, sizeof(pending));
}

/* Processes are gone.  If power is, too, nothing is in flight any more. */
void
SimDataCrash(bool power_lost)
{
	for (int i = 0; i < nios; i++)
	{
		SimIO	   *io = &ios[i];

		io->used = io->used && io->write && !io->done;
		io->orphan = true;
		io->wakes = NULL;
		for (int j = 0; io->used && power_lost && j < io->npages; j++)
		{
			if (SimChance(&sim_world, 500))
				add_version(io->first + j, &io->copies[j]);
		}
		if (power_lost)
			io->used = false;
	}
	for (int page = 0; page < PAGES_MAX && power_lost; page++)
	{
		Versions   *all = &versions[page];

		all->pages[0] = all->pages[SimUpTo(&sim_world, all->n - 1)];
		all->n = 1;
	}
	nrequests = 0;
	cycle = 1;
	memset(pending, 0, sizeof(pending));
}

/* The kernel carries out what it still has, in any order. */
void
SimDataSettle(void)
{
	for (int n = 0; n < nios; n++)
	{
		int			from = SimUpTo(&sim_world, nios - 1);

		for (int i = 0; i < nios; i++)
		{
			SimIO	   *io = &ios[(from + i) % nios];

			if (!io->used || io->done)
				continue;
			carry_out(io);
			break;
		}
	}
	nios = 0;
	next_event = NEVER;
}

bool
SimDataIdle(void)
{
	for (int i = 0; i < nios; i++)
	{
		if (ios[i].used)
			return false;
	}
	return true;
}
