/*-------------------------------------------------------------------------
 *
 * trim.c
 *	  Simulates how space past the end of files is given back while processes
 *	  change their lengths.
 *
 * A seed stands for some sessions, which extend a few files, into space that
 * they have allocated before or not, truncate and drop them, fail in the
 * middle, and end, so that others get their places; and for the background
 * writer.  Any of them may be interrupted at each access to what they share,
 * and at each system call, for long.
 *
 * The code that is simulated is the server's trim.c.  Invariants: setting a
 * file's length never changes it; space on which somebody counts is there;
 * what has been asked for is done, or has been taken back, when all are idle.
 * Memory is as all see it at once: that barriers are missing is not seen here.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/lwlock.h"
#include "storage/relfilelocator.h"
#include "wal_world.h"

/* what the server's file asks the file system */
static int	sim_stat(const char *path, struct stat *file);
static int	sim_fstat(int fd, struct stat *file);
static int	sim_ftruncate(int fd, off_t length);
static int	sim_close(int fd);

#define stat(path, file)		sim_stat(path, file)
#define fstat(fd, file)			sim_fstat(fd, file)
#define ftruncate(fd, length)	sim_ftruncate(fd, length)
#define close(fd)				sim_close(fd)

#include "storage/smgr/trim.c"

#define FILES_MAX		3
#define INODES_MAX		64
#define SESSIONS_MAX	4
#define FIRST_NUMBER	16384
#define DATABASE		5

/* the background writer has the first place, sessions those after it */
#define WRITER			0

/* bounds of what is generated, lower ones for a smaller case */
static int	most_files = FILES_MAX;
static int	most_sessions = SESSIONS_MAX;
static int	most_transactions = 12;

typedef struct Inode
{
	BlockNumber length;			/* in blocks, as all here */
	BlockNumber allocated;		/* not less than that */
} Inode;

/* A relation's only file, and its preallocation. */
typedef struct SimFile
{
	RelFileLocator locator;
	Inode	   *inode;			/* NULL if it has been dropped */
	SimProcess *extender;		/* who has the extension lock */
	int			nusers;			/* of the preallocation */
	BlockNumber counted_on;		/* space up to here is there, if not 0 */
	BlockNumber requested;		/* space up to here is being allocated, or 0 */
	uint64		allocated_at;	/* when that is done */
} SimFile;

int			MyProcPid;
int			MyProcNumber = -1;
int			MaxBackends;
int			sim_disk_time;

typedef union SharedMemory
{
	TrimRequests requests;
	char		bytes[4096];
} SharedMemory;

static SharedMemory shared_memory;
static SimFile files[FILES_MAX];
static int	nfiles;
static Inode inodes[INODES_MAX];
static int	ninodes;
static PGPROC procs[PROCESSES_MAX];
static LWLock preallocation_lock;
static int	pid;				/* the last one */
static int	nworking;
static int	chance_of_errors;

/* of each session: the files whose preallocations it uses */
static SimFile *uses[PROCESSES_MAX][FILES_MAX];

static inline int
number_of(const SimProcess *process)
{
	return process - sim_processes;
}

/* ------------------------------------------------------------------------
 * What the file needs of a server
 * ------------------------------------------------------------------------
 */

void
AioShareState(const AioSharedState *part)
{
	SIM_CHECK(part->size() <= sizeof(shared_memory), "shared memory is of another size");
	*part->address = &shared_memory;
	part->initialize();
}

bool		(*aio_background_work) (void);

void
AioWakeBackgroundWriter(void)
{
	SetLatch(&sim_processes[WRITER].latch);
}

PGPROC *
GetPGProcByNumber(int number)
{
	SimPoint();
	return &procs[number];
}

/* As preallocate.c does. */
static void
want_trim(SimFile *file)
{
	bool		asked;

	LWLockAcquire(&preallocation_lock, LW_EXCLUSIVE);
	asked = file->nusers == 0 && AioAskForTrim(&file->locator, MAIN_FORKNUM);
	LWLockRelease(&preallocation_lock);
	if (asked)
		AioWakeBackgroundWriter();
}

RelPathStr
relpathperm(RelFileLocator locator, ForkNumber forknum)
{
	RelPathStr	path;

	snprintf(path.str, sizeof(path.str), "%u", locator.relNumber);
	return path;
}

void
SimLocalsInit(void)
{
}

void
SimLocalsSave(void)
{
}

void
SimLocalsRestore(void)
{
	MyProcNumber = number_of(sim_me);
	MyProcPid = procs[MyProcNumber].pid;
}

/* ------------------------------------------------------------------------
 * Disk
 * ------------------------------------------------------------------------
 */

/* The disk may take its time, and others go on. */
static void
take_time(void)
{
	SimPoint();
	if (SimChance(&sim_world, 300))
		pg_usleep(SimUpTo(&sim_world, sim_disk_time));
}

static int
describe(const Inode *inode, struct stat *file)
{
	file->st_size = (off_t) inode->length * BLCKSZ;
	return 0;
}

static int
sim_stat(const char *path, struct stat *file)
{
	take_time();
	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].inode != NULL &&
			strcmp(path, relpathperm(files[i].locator, MAIN_FORKNUM).str) == 0)
			return describe(files[i].inode, file);
	}
	errno = ENOENT;
	return -1;
}

int
BasicOpenFile(const char *name, int flags)
{
	take_time();
	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].inode != NULL &&
			strcmp(name, relpathperm(files[i].locator, MAIN_FORKNUM).str) == 0)
			return files[i].inode - inodes;
	}
	errno = ENOENT;
	return -1;
}

static int
sim_fstat(int fd, struct stat *file)
{
	take_time();
	return describe(&inodes[fd], file);
}

static int
sim_ftruncate(int fd, off_t length)
{
	take_time();
	SIM_CHECK(length >= (off_t) inodes[fd].length * BLCKSZ, "what has been written is cut off");
	SIM_CHECK(length <= (off_t) inodes[fd].length * BLCKSZ, "a file that has been cut grows again");
	inodes[fd].allocated = inodes[fd].length;
	SimTell("trims %d", fd);
	return 0;
}

static int
sim_close(int fd)
{
	return 0;
}

/* Space has been allocated. */
uint64
SimDiskNextEvent(void)
{
	uint64		next = NEVER;

	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].requested != 0)
			next = Min(next, files[i].allocated_at);
	}
	return next;
}

void
SimDiskFire(void)
{
	for (int i = 0; i < nfiles; i++)
	{
		SimFile    *file = &files[i];

		if (file->requested == 0 || file->allocated_at > sim_now)
			continue;
		if (file->inode != NULL)
			file->inode->allocated = Max(file->inode->allocated, file->requested);
		/* otherwise it is lost, and nobody counts on it */
		if (file->counted_on != PG_UINT32_MAX)
			file->counted_on = file->requested;
		else
			file->counted_on = 0;
		file->requested = 0;
		SimWake(file);
	}
}

/* ------------------------------------------------------------------------
 * Sessions
 * ------------------------------------------------------------------------
 */

static void
lock_extension(SimFile *file)
{
	SimPoint();
	while (file->extender != NULL)
		SimWait(file, NEVER, false);
	file->extender = sim_me;
}

static void
unlock_extension(SimFile *file)
{
	file->extender = NULL;
	SimWake(file);
	SimPoint();
}

static void
wait_for_request(SimFile *file)
{
	while (file->requested != 0)
		SimWait(file, NEVER, false);
}

/* What was allocated may be gone: nobody counts on it. */
static void
forget_space(SimFile *file)
{
	AioTakeBackTrims(&file->locator, MAIN_FORKNUM);
	file->counted_on = file->requested != 0 ? PG_UINT32_MAX : 0;
}

/* mdextend(), and what is above it; returns false if that has failed */
static bool
extend(SimFile *file)
{
	BlockNumber length;
	bool		failed;

	lock_extension(file);
	if (file->inode == NULL)
	{
		unlock_extension(file);
		return true;
	}
	length = file->inode->length;
	SimPoint();
	AioBeginFileChange(&file->locator, MAIN_FORKNUM, false);
	take_time();
	failed = SimChance(&sim_world, chance_of_errors);
	if (!failed)
	{
		SIM_CHECK(length == file->inode->length, "a file has another length than whoever extends it was told");
		SIM_CHECK(file->counted_on == 0 || file->counted_on == PG_UINT32_MAX ||
				  file->inode->allocated >= file->counted_on,
				  "space that somebody counts on has been given back");
		file->inode->length++;
		file->inode->allocated = Max(file->inode->allocated, file->inode->length);
		SIM_CHECK(file->inode->length < RELSEG_SIZE, "a file is too long");
		SimTell("extends %d to %u", (int) (file - files), file->inode->length);
		AioEndFileChange();
	}
	unlock_extension(file);
	return !failed;
}

/* Use the file's preallocation, and ask for space; nobody cuts it then. */
static void
allocate(SimFile *file)
{
	int			me = number_of(sim_me);

	lock_extension(file);
	LWLockAcquire(&preallocation_lock, LW_EXCLUSIVE);
	if (uses[me][file - files] == NULL)
	{
		file->nusers++;
		uses[me][file - files] = file;
	}
	LWLockRelease(&preallocation_lock);
	AioTakeBackTrims(&file->locator, MAIN_FORKNUM);
	SimPoint();
	if (file->requested == 0 && file->inode != NULL)
	{
		file->requested = file->inode->length + 4;
		file->allocated_at = sim_now + SimUpTo(&sim_world, sim_disk_time);
	}
	unlock_extension(file);
}

/* The session has been idle for a while, or ends. */
static void
detach(void)
{
	int			me = number_of(sim_me);

	for (int i = 0; i < nfiles; i++)
	{
		SimFile    *file = uses[me][i];
		bool		unused;

		if (file == NULL)
			continue;
		wait_for_request(file);
		LWLockAcquire(&preallocation_lock, LW_EXCLUSIVE);
		file->nusers--;
		unused = file->nusers == 0;
		if (unused && file->requested == 0)
			file->counted_on = 0;
		LWLockRelease(&preallocation_lock);
		uses[me][i] = NULL;
		if (unused)
			want_trim(file);
	}
}

/* mdtruncate(), by who keeps others from extending the file */
static void
truncate_file(SimFile *file)
{
	lock_extension(file);
	if (file->inode != NULL)
	{
		AioBeginFileChange(&file->locator, MAIN_FORKNUM, true);
		forget_space(file);
		take_time();
		file->inode->length = SimUpTo(&sim_world, file->inode->length);
		file->inode->allocated = file->inode->length;
		SimTell("cuts %d to %u", (int) (file - files), file->inode->length);
		AioEndFileChange();
	}
	unlock_extension(file);
}

/* mdunlink(), and another file of this number later */
static void
drop_file(SimFile *file)
{
	lock_extension(file);
	if (file->inode != NULL)
	{
		AioBeginFileChange(&file->locator, MAIN_FORKNUM, true);
		forget_space(file);
		take_time();
		file->inode->length = file->inode->allocated = 0;
		take_time();
		file->inode = NULL;
		AioEndFileChange();
		SimTell("drops %d", (int) (file - files));
	}
	else if (ninodes < INODES_MAX)
	{
		file->inode = &inodes[ninodes++];
		SimTell("makes %d", (int) (file - files));
	}
	unlock_extension(file);
}

static void
transaction(void)
{
	for (int i = SimUpTo(&sim_world, 3); i >= 0; i--)
	{
		SimFile    *file = &files[SimUpTo(&sim_world, nfiles - 1)];
		int			kind = SimUpTo(&sim_world, 99);

		if (file->inode != NULL && file->inode->length > RELSEG_SIZE / 2)
			kind = 80;
		if (kind < 50)
		{
			if (!extend(file))
				break;
		}
		else if (kind < 70)
			allocate(file);
		else if (kind < 80)
		{
			/* VACUUM */
			want_trim(file);
		}
		else if (kind < 92)
			truncate_file(file);
		else
			drop_file(file);
		/* of a client that thinks */
		if (SimChance(&sim_world, 200))
			pg_usleep(SimUpTo(&sim_world, 3 * sim_disk_time));
	}
	/* an error may have ended a change */
	AioEndFileChange();
}

/* A process begins, in this place. */
static void
begin_process(void)
{
	MyProcPid = procs[number_of(sim_me)].pid = ++pid;
}

static void
session(void)
{
	PGPROC	   *proc = &procs[number_of(sim_me)];

	begin_process();
	for (int i = SimUpTo(&sim_world, most_transactions - 1); i >= 0; i--)
	{
		transaction();
		if (SimChance(&sim_world, 300))
		{
			pg_usleep(SimUpTo(&sim_world, 2 * sim_disk_time));
			detach();
		}

		/* it ends in the middle, and another one gets its place */
		if (SimChance(&sim_world, 100))
		{
			(void) extend(&files[SimUpTo(&sim_world, nfiles - 1)]);
			detach();
			SimPoint();
			proc->pid = 0;
			pg_usleep(SimUpTo(&sim_world, 3 * sim_disk_time));
			begin_process();
		}
	}
	detach();
	/* some end, and some stay idle */
	if (SimChance(&sim_world, 500))
		proc->pid = 0;
	nworking--;
}

/* What it has left for later it looks at in the next cycle. */
static void
background_writer(void)
{
	begin_process();
	for (;;)
	{
		bool		any;

		MyLatch->is_set = false;
		any = aio_background_work();
		SimLatchWait(any ? (uint64) sim_disk_time : NEVER);
	}
}

/* ------------------------------------------------------------------------
 * All of one seed
 * ------------------------------------------------------------------------
 */

/* All have ended, and the background writer has nothing to do. */
static bool
all_is_done(void)
{
	const SimProcess *writer = &sim_processes[WRITER];

	return nworking == 0 && writer->waits_for == &writer->latch &&
		writer->wake_at == NEVER && !writer->latch.is_set;
}

static void
simulate(uint64 seed)
{
	pg_prng_seed(&sim_world, seed);
	pg_prng_uint64(&sim_world);
	sim_now = 1;
	sim_steps = 0;
	sim_crash_at = NEVER;
	sim_switches = SimChance(&sim_world, 500) ? 30 + SimUpTo(&sim_world, 300) : 5 + SimUpTo(&sim_world, 30);
	sim_by_priority = SimChance(&sim_world, 400);
	sim_disk_time = SimChance(&sim_world, 500) ? 3000 : 1 + SimUpTo(&sim_world, 300);
	chance_of_errors = SimChance(&sim_world, 500) ? SimUpTo(&sim_world, 200) : 0;
	SimWorldReset();
	memset(files, 0, sizeof(files));
	memset(inodes, 0, sizeof(inodes));
	memset(procs, 0, sizeof(procs));
	memset(uses, 0, sizeof(uses));
	memset(&preallocation_lock, 0, sizeof(preallocation_lock));
	ninodes = 0;
	pid = 0;
	nfiles = 1 + SimUpTo(&sim_world, most_files - 1);
	for (int i = 0; i < nfiles; i++)
	{
		files[i].locator.dbOid = DATABASE;
		files[i].locator.relNumber = FIRST_NUMBER + i;
		files[i].inode = &inodes[ninodes++];
	}
	nworking = 1 + SimUpTo(&sim_world, most_sessions - 1);
	MaxBackends = 1 + nworking;
	AioShareTrims();
	SimProcessMake("writer", 0, background_writer);
	for (int i = 1; i <= nworking; i++)
		SimProcessMake("session", i, session);
	SimRun(all_is_done);
	SIM_CHECK(trims->nactive.value == 0, "what has been asked for is not done");
}

int
main(int argc, char **argv)
{
	static const SimBound bounds[] = {
		{"files", &most_files},
		{"sessions", &most_sessions},
		{"transactions", &most_transactions},
	};

	return SimMain(argc, argv, bounds, lengthof(bounds), simulate);
}
