/*-------------------------------------------------------------------------
 *
 * quick_io.c
 *	  Simulates how processes find out whether I/O is quick.
 *
 * A seed stands for a few epochs of a server.  In each, every tablespace is on
 * storage that is quick, or slow; sessions, some of a few reads and some of
 * thousands, a few at a time, ask whether to await each, and do.  Now and then
 * one loses the processor in the middle.  In the next epoch storage may have
 * become another one, under sessions that go on or for new ones.
 *
 * The code that is simulated is the server's quick_io.c.  Invariants, of what
 * comes in the second half of an epoch: where storage is quick, hardly any I/O
 * is awaited; where it is slow, nearly all is, and sessions that end after a
 * few have not tried what others know; and this is so in each tablespace,
 * whatever others are like.  A session under which storage has changed notices
 * before long.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/quick_io.h"
#include "aio/shared_state.h"
#include "miscadmin.h"
#include "server.h"

/* the variables of the file are those of one process */
#include "aio/io/quick_io.c"

#define TABLESPACES_MAX	4
#define SESSIONS_MAX	4

/* bounds of what is generated, lower ones for a smaller case */
static int	most_epochs = 3;
static int	most_sessions = SESSIONS_MAX;
static int	most_tablespaces = TABLESPACES_MAX;

/* I/Os in an epoch, for each tablespace and session at a time, and sessions */
#define EPOCH			6000
#define EPOCH_SESSIONS	60

/* of I/Os, how many are disturbed: one of so many */
#define DISTURBED_OF	1000

/* what is permitted, in the second half of an epoch */
#define QUICK_AWAITED	0.08	/* of quick I/O, awaited, */
#define DISTURBED		6		/* by so many sessions whose try has been, and */
#define UNTRIED			100		/* by so many until one tries that cannot know */
#define SLOW_TRIED		0.03	/* of slow I/O, not awaited, */
#define SESSION_TRIES	0.5		/* and for each session */
#define FEW				200

/* a session that goes on notices that I/O is not quick any more in so many */
#define NOTICED_AFTER	1200

typedef struct Storage
{
	Oid			tablespace;
	AioFutureKind kind;
	bool		quick;
	int			shortest;		/* in microseconds, the first page */
	int			longest;
	bool		by_others;		/* other processes complete what is awaited */

	/* in the second half of this epoch */
	uint64		awaited;
	uint64		tried;			/* or known to be quick: not awaited */
	uint64		sessions;
} Storage;

typedef struct Session
{
	bool		in_use;
	int			left;			/* I/Os until it ends */
	uint64		touched;		/* buffers, so far */
	bool		used[TABLESPACES_MAX];	/* in the second half of this epoch */
	int			in_a_row[TABLESPACES_MAX];	/* not awaited, though slow */

	/* its variables */
	Pace		paces[2][PACES];
	bool		asked[2];
	uint64		pages_read;
} Session;

int			NBuffers;
int			MyProcNumber = 1;

static Findings shared;
static Storage storages[TABLESPACES_MAX];
static int	nstorages;
static Session sessions[SESSIONS_MAX];
static uint64 now;
static bool second_half;

/* ------------------------------------------------------------------------
 * What the file needs of a server
 * ------------------------------------------------------------------------
 */

uint64
SimClock(void)
{
	return now;
}

void
SimPoint(void)
{
}

void
AioShareState(const AioSharedState *part)
{
	SIM_CHECK(part->size() == sizeof(shared), "shared memory is of another size");
	*part->address = &shared;
	part->initialize();
}

int
pgaio_io_get_iovec_length(PgAioHandle *ioh, struct iovec **iov)
{
	*iov = &ioh->iov;
	return 1;
}

/* ------------------------------------------------------------------------
 * Sessions
 * ------------------------------------------------------------------------
 */

/* The processor goes from one to another one. */
static void
switch_to(Session *session)
{
	static Session *current = NULL;

	if (session == current)
		return;
	if (current != NULL)
	{
		memcpy(current->paces, paces, sizeof(paces));
		memcpy(current->asked, asked, sizeof(asked));
		current->pages_read = pages_read;
	}
	current = session;
	memcpy(paces, current->paces, sizeof(paces));
	memcpy(asked, current->asked, sizeof(asked));
	pages_read = current->pages_read;
}

/* Microseconds that an I/O takes the storage, of so many pages. */
static int
time_of(const Storage *storage, int npages)
{
	int			time = storage->shortest +
		SimUpTo(&sim_world, storage->longest - storage->shortest);

	return time + SimUpTo(&sim_world, 2 * (npages - 1));
}

/* One I/O of a session, awaited or not. */
static void
do_io(Session *session, int place)
{
	Storage    *storage = &storages[place];
	bool		write = storage->kind == AIO_KIND_WRITE;
	int			npages = SimChance(&sim_world, 400) ? 1 + SimUpTo(&sim_world, 15) : 1;
	PgAioHandle ioh = {.owner_procno = MyProcNumber};
	instr_time	started;
	bool		quick;

	/* who could search ahead asks first, and whoever reads then does not */
	if (!write && SimChance(&sim_world, 300))
		quick = AioReadIsQuick(storage->tablespace);
	else
		quick = AioIsQuick(storage->kind, storage->tablespace);

	ioh.target_data.smgr.rlocator.spcOid = storage->tablespace;
	ioh.flags = quick ? PGAIO_HF_SYNCHRONOUS : 0;
	ioh.iov.iov_len = npages * BLCKSZ;
	INSTR_TIME_SET_CURRENT(started);
	now += time_of(storage, npages);
	if (session->touched < (uint64) NBuffers)
	{
		/* as long as a quick read takes, if it is the slowest of these */
		now += SimUpTo(&sim_world, aio_quick_io_time * 1000 * 3 / 4);
		session->touched += npages;
	}
	if (SimUpTo(&sim_world, DISTURBED_OF - 1) == 0)
		now += 1000 + SimUpTo(&sim_world, 4000);

	/* the process does something else, and looks when it is done with that */
	if (!quick)
		now += SimUpTo(&sim_world, 40);
	if (quick || !storage->by_others)
		AioNoteTime(storage->kind, &ioh, started);

	if (!storage->quick)
	{
		session->in_a_row[place] = quick ? session->in_a_row[place] + 1 : 0;
		SIM_CHECK(session->in_a_row[place] <= NOTICED_AFTER,
				  "a session does not notice that I/O has become slow");
	}
	if (!second_half)
		return;
	if (quick)
		storage->tried++;
	else
		storage->awaited++;
	if (!session->used[place])
		storage->sessions++;
	session->used[place] = true;
}

static void
begin_session(Session *session, int usual)
{
	memset(session, 0, sizeof(Session));
	session->in_use = true;
	session->left = 1 + SimUpTo(&sim_world, 2 * usual);
}

/* ------------------------------------------------------------------------
 * Epochs
 * ------------------------------------------------------------------------
 */

static void
choose_storage(Storage *storage)
{
	int			limit = aio_quick_io_time * 1000;

	storage->quick = SimChance(&sim_world, 500);
	storage->by_others = SimChance(&sim_world, 300);
	if (storage->quick)
	{
		storage->shortest = limit * (20 + SimUpTo(&sim_world, 45)) / 100;
		storage->longest = storage->shortest + limit / 5;
	}
	else
	{
		/* so that no try of it can be taken for a quick one */
		storage->shortest = limit * (7 + SimUpTo(&sim_world, 40));
		storage->longest = storage->shortest * 2;
	}
	SimNote("tablespace %u: %s, %d to %d us%s", storage->tablespace,
			storage->quick ? "quick" : "slow", storage->shortest,
			storage->longest, storage->by_others ? ", by others" : "");
}

static void
check(const Storage *storage, int usual)
{
	uint64		total = storage->awaited + storage->tried;

	SimNote("tablespace %u: %" PRIu64 " awaited, %" PRIu64 " not, by %" PRIu64 " sessions",
			storage->tablespace, storage->awaited, storage->tried, storage->sessions);
	if (storage->quick)
		SIM_CHECK(storage->awaited <= QUICK_AWAITED * total + FEW +
				  (DISTURBED + (storage->by_others ? UNTRIED : 0)) *
				  2 * (uint64) usual / nstorages,
				  "I/O that is quick is awaited");
	else
		SIM_CHECK(storage->tried <= SLOW_TRIED * total +
				  SESSION_TRIES * storage->sessions + FEW,
				  "I/O that is slow is not awaited");
}

/* All sessions come and go while storage is as it is. */
static void
epoch(int nsessions)
{
	int			usual = SimChance(&sim_world, 500) ? 5 + SimUpTo(&sim_world, 40) :
		200 + SimUpTo(&sim_world, 3000);
	bool		go_on = SimChance(&sim_world, 500);
	Session    *session = NULL;
	int			nios = Max(EPOCH * nstorages * nsessions, EPOCH_SESSIONS * usual);

	SimNote("sessions of about %d, %s", usual, go_on ? "and those that there are" : "new ones");
	for (int i = 0; i < nstorages; i++)
	{
		choose_storage(&storages[i]);
		storages[i].awaited = storages[i].tried = storages[i].sessions = 0;
	}
	for (int i = 0; i < nsessions; i++)
	{
		if (!go_on)
			sessions[i].in_use = false;
		memset(sessions[i].used, 0, sizeof(sessions[i].used));
		memset(sessions[i].in_a_row, 0, sizeof(sessions[i].in_a_row));
	}

	second_half = false;
	for (int i = 0; i < nios; i++)
	{
		if (session == NULL || SimChance(&sim_world, 100))
			session = &sessions[SimUpTo(&sim_world, nsessions - 1)];
		if (i == nios / 2)
		{
			/* who has found out otherwise may wait for long to try again */
			for (int j = 0; j < nsessions; j++)
				sessions[j].in_use = false;
			second_half = true;
		}
		if (!session->in_use)
		{
			/* nothing of the one before is left in the process */
			switch_to(session == &sessions[0] ? &sessions[1] : &sessions[0]);
			begin_session(session, usual);
		}
		switch_to(session);
		do_io(session, SimUpTo(&sim_world, nstorages - 1));
		if (--session->left == 0)
			session->in_use = false;
	}
	for (int i = 0; i < nstorages; i++)
		check(&storages[i], usual);
}

static void
simulate(uint64 seed)
{
	int			nsessions;

	pg_prng_seed(&sim_world, seed);
	pg_prng_seed(&pg_global_prng_state, seed + 1);
	memset(sessions, 0, sizeof(sessions));
	now = 0;
	AioQuickIoInitialize();
	aio_quick_io_time = (8 + SimUpTo(&sim_world, 40)) / 1000.0;
	NBuffers = 16 << SimUpTo(&sim_world, 10);
	nstorages = 1 + SimUpTo(&sim_world, most_tablespaces - 1);
	nsessions = 1 + SimUpTo(&sim_world, most_sessions - 1);
	for (int i = 0; i < nstorages; i++)
	{
		/* some in the same place of what is known */
		storages[i].tablespace = SimChance(&sim_world, 500) ? 1663 + i : 1663 + i * PACES;
		storages[i].kind = SimChance(&sim_world, 700) ? AIO_KIND_READ : AIO_KIND_WRITE;
		/* or reads and writes of one */
		if (i % 2 == 1 && SimChance(&sim_world, 300))
		{
			storages[i].tablespace = storages[i - 1].tablespace;
			storages[i].kind = storages[i - 1].kind == AIO_KIND_READ ?
				AIO_KIND_WRITE : AIO_KIND_READ;
		}
	}
	SimNote("limit %.0f us, %d buffers, %d sessions at a time",
			aio_quick_io_time * 1000, NBuffers, nsessions);
	for (int i = SimUpTo(&sim_world, most_epochs - 1); i >= 0; i--)
		epoch(nsessions);
}

int
main(int argc, char **argv)
{
	static const SimBound bounds[] = {
		{"epochs", &most_epochs},
		{"sessions", &most_sessions},
		{"tablespaces", &most_tablespaces},
	};

	return SimMain(argc, argv, bounds, lengthof(bounds), simulate);
}
