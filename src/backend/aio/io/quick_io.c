/*-------------------------------------------------------------------------
 *
 * quick_io.c
 *	  I/O that returns so soon that it does not pay to await it.
 *
 * To begin a read, go on with something else, and learn that it is complete
 * takes more of the processor than to read.  On a disk that is worth it.  Where
 * a page comes in a few microseconds (from memory, or a cache in front of the
 * disk) the time is lost.  So for each tablespace this process finds out what a
 * read takes, and reads in one go, without awaiting, while that is less than
 * aio.quick_io_time.  The same goes for writes.
 *
 * What is quick is found out by a few tries.  They come soon if one of the last
 * reads that were awaited was complete so soon that one that is not awaited may
 * be quick, and otherwise, or where other processes complete them and nothing
 * is known, after many.  A try is given up at the first reads that are slow.
 * While reads are quick their mean time is kept, over so many that what takes
 * long now and then, as another process's turn on the processor, does not
 * matter, and what is slow in between does.  Each time that it turns out wrong,
 * more reads are awaited before the next try.  So on a disk a small part of
 * the reads is not awaited, and less and less.
 *
 * A session may end after a few statements, before it has found out anything.
 * So what was found last in a tablespace is in shared memory, and unless that
 * was slow, a process begins with a try; and if it was, some do nevertheless.
 *
 * Lookups ahead of need ask, too: they leave a page that is quick, or tried, to
 * whoever needs it.
 *
 * Nothing depends on the answer but time.  It is asked for where I/O may be
 * awaited, or others could begin meanwhile, and only such I/O counts.  What is
 * synchronous in any case may be of other files, which are in memory more
 * often, or less.
 *
 * Tests: src/test/aio/index/t/012_quick_io.pl, src/test/simulate/quick_io.c,
 * bench/multi_index.py.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/quick_io.h"
#include "aio/shared_state.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"

/*
 * Tablespaces about which something is known at a time.  Each has its place
 * among the next few after the one that its OID gives it.
 */
#define PACES	64
#define PLACES	8

/* what is awaited between two tries, at least, and at most */
#define AWAITED_MIN		64
#define AWAITED_MAX		65536

/* what takes more than so many times the limit counts as that */
#define LONGEST			64

/* and at least, if none of it was complete in so many times the limit */
#define NOTICED_LATE	4
#define AWAITED_SLOW	1024

/* I/Os in a try; one of them may take longer, as may two */
#define TRIED			8
#define MUCH_LONGER		16
#define LONGER			4

/* the mean is that of about so many */
#define MEAN_OF			1024
#define FORGOTTEN_AFTER	(4 * MEAN_OF)

/* after so many a try that has failed before does not matter any more */
#define FORGIVEN_AFTER	4096

/* what each page but the first may take, in microseconds */
#define FURTHER_PAGE	2.0

/* what may take longer while buffers are touched for the first time */
#define FIRST_TOUCHES	1.5

typedef enum Phase
{
	AWAIT,						/* I/O is awaited */
	TRY,						/* some is not, to see what it takes */
	QUICK,						/* none is */
} Phase;

/*
 * What is known of reads, or of writes, in a tablespace.  Times are in
 * microseconds.
 */
typedef struct Pace
{
	Oid			tablespace;
	Phase		phase;
	uint32		n;				/* in this phase */
	uint32		awaited;		/* of them, until the next try */
	double		shortest;		/* of those awaited, or < 0 */
	double		sum;			/* of those tried */
	double		longest;		/* likewise */
	int			slow;			/* likewise: how many took long */
	double		mean;			/* of those that are quick */
} Pace;

/* aio.quick_io_time */
double		aio_quick_io_time;

/* of reads, and of writes; of no tablespace yet where that is InvalidOid */
static Pace paces[2][PACES];

/* the next one that is synchronous is so because it is quick, or tried */
static bool asked[2];

/*
 * What processes have found last, of reads and of writes.  Each is an OID, and
 * a time in nanoseconds below it.
 */
#define FINDINGS	64

/* what one I/O, or one who gives up, counts for, as a part of what is known */
#define ONE_OF		16

/* where others have found that it is slow, one of so many processes tries */
#define ONE_TRIES_OF	8

typedef struct Findings
{
	pg_atomic_uint64 found[2][FINDINGS];
} Findings;

static Findings *findings = NULL;

static Size
findings_size(void)
{
	return sizeof(Findings);
}

static void
initialize_findings(void)
{
	for (int write = 0; write < 2; write++)
	{
		for (int i = 0; i < FINDINGS; i++)
			pg_atomic_init_u64(&findings->found[write][i], 0);
	}
}

static const AioSharedState findings_state = {
	.name = "AIO quick I/O",
	.size = findings_size,
	.address = (void **) &findings,
	.initialize = initialize_findings,
};

/* While libraries are preloaded. */
void
AioQuickIoInitialize(void)
{
	AioShareState(&findings_state);
}

/* pages that this process has read since it may read any without awaiting */
static uint64 pages_read = 0;

/*
 * What is quick takes less, in microseconds.  A process that reads into a
 * buffer that it has never touched has page faults, which take nearly as long
 * as a quick read, and are not saved by awaiting it.  It has touched most
 * buffers when it has read as many pages, and forgotten what that took when it
 * has read some more.
 */
static inline double
limit(void)
{
	double		time = aio_quick_io_time * 1000;

	return pages_read < (uint64) NBuffers + FORGOTTEN_AFTER ?
		time * FIRST_TOUCHES : time;
}

/*
 * Where what is known of a tablespace is, or is to be put.  Two processes that
 * choose the same place forget one of two findings, and make it again.
 */
static pg_atomic_uint64 *
finding_of(bool write, Oid tablespace)
{
	pg_atomic_uint64 *free_one = NULL;

	for (int i = 0; i < PLACES; i++)
	{
		pg_atomic_uint64 *finding = &findings->found[write][(tablespace + i) % FINDINGS];
		Oid			found = pg_atomic_read_u64(finding) >> 32;

		if (found == tablespace)
			return finding;
		if (found == InvalidOid && free_one == NULL)
			free_one = finding;
	}
	return free_one ? free_one : &findings->found[write][tablespace % FINDINGS];
}

/* What others have found last, in microseconds, or < 0. */
static double
found_by_others(bool write, Oid tablespace)
{
	uint64		found = 0;

	if (findings != NULL)
		found = pg_atomic_read_u64(finding_of(write, tablespace));
	return found >> 32 == tablespace ? (uint32) found / 1000.0 : -1;
}

/*
 * Does a process begin with a try?  It does if what others have found last was
 * quick enough for it, or if they have found nothing.  If it was slow, a few
 * try nevertheless, as the storage may have become quick, and sessions that are
 * short never come to another try.
 */
static bool
begins_with_try(bool write, Oid tablespace)
{
	return findings != NULL &&
		(found_by_others(write, tablespace) < limit() ||
		 pg_prng_uint32(&pg_global_prng_state) % ONE_TRIES_OF == 0);
}

/* Tell them what it takes, in microseconds. */
static void
tell_others(const Pace *pace, double time)
{
	bool		write = pace >= paces[true];

	if (findings != NULL)
		pg_atomic_write_u64(finding_of(write, pace->tablespace),
							(uint64) pace->tablespace << 32 |
							(uint32) Min(time * 1000, (double) PG_UINT32_MAX));
}

/*
 * One I/O of a try took so many microseconds.  Sessions that end before their
 * tries do find out together.
 */
static void
tell_of_one(const Pace *pace, double time)
{
	double		found = found_by_others(pace >= paces[true], pace->tablespace);

	if (found >= 0)
		tell_others(pace, found + (Min(time, limit() * LONGER) - found) / ONE_OF);
}

static void
enter(Pace *pace, Phase phase)
{
	pace->phase = phase;
	pace->n = 0;
	pace->shortest = -1;
	pace->sum = pace->longest = 0;
	pace->slow = 0;
}

/* It does not pay, for now: it has taken so many microseconds. */
static void
give_up(Pace *pace, double time)
{
	double		found = found_by_others(pace >= paces[true], pace->tablespace);

	/*
	 * A process may have been disturbed: only a few that give up, one after
	 * the other, turn it over.
	 */
	time = Min(Max(time, limit()), limit() * LONGER);
	if (found >= 0 && found < limit())
		time = found + (limit() * LONGER - found) / ONE_OF;
	tell_others(pace, time);
	pace->awaited = Min(pace->awaited * 2, AWAITED_MAX);
	enter(pace, AWAIT);
}

/*
 * What is known of reads or writes in a tablespace, or NULL; and then, if place
 * is not, where it is to be put: if none is free, in place of another one.
 */
static Pace *
find_pace(bool write, Oid tablespace, Pace **place)
{
	Pace	   *free_one = NULL;

	for (int i = 0; i < PLACES; i++)
	{
		Pace	   *pace = &paces[write][(tablespace + i) % PACES];

		if (pace->tablespace == tablespace)
			return pace;
		if (pace->tablespace == InvalidOid && free_one == NULL)
			free_one = pace;
	}
	if (place != NULL)
		*place = free_one ? free_one : &paces[write][tablespace % PACES];
	return NULL;
}

static Pace *
get_pace(AioFutureKind kind, Oid tablespace)
{
	bool		write = kind == AIO_KIND_WRITE;
	Pace	   *place = NULL;
	Pace	   *pace = find_pace(write, tablespace, &place);

	Assert(kind == AIO_KIND_READ || kind == AIO_KIND_WRITE);
	Assert(OidIsValid(tablespace));
	if (unlikely(pace == NULL))
	{
		pace = place;
		pace->tablespace = tablespace;
		pace->awaited = AWAITED_MIN;
		pace->mean = 0;
		enter(pace, begins_with_try(write, tablespace) ? TRY : AWAIT);
	}
	return pace;
}

/*
 * A read, or a write, that could be awaited is about to begin: is it better not
 * to await it?  Neither suspends nor raises.
 */
bool
AioIsQuick(AioFutureKind kind, Oid tablespace)
{
	Pace	   *pace;

	if (aio_quick_io_time <= 0)
		return false;
	pace = get_pace(kind, tablespace);
	if (pace->phase == AWAIT)
	{
		pace->n++;
		if (pace->n < pace->awaited)
			return false;
		if (pace->n < AWAITED_SLOW &&
			(pace->shortest < 0 || pace->shortest >= limit() * NOTICED_LATE))
			return false;
		enter(pace, TRY);
	}
	asked[kind == AIO_KIND_WRITE] = true;
	return true;
}

/*
 * Somebody is going to need a page soon, which could be read ahead: is it
 * better to leave it to him?  A read that is tried begins later, so no other
 * page is left until it is complete.  Neither suspends nor raises.
 */
bool
AioWillBeQuick(Oid tablespace)
{
	if (aio_quick_io_time > 0 && asked[false] &&
		get_pace(AIO_KIND_READ, tablespace)->phase == TRY)
		return false;
	return AioIsQuick(AIO_KIND_READ, tablespace);
}

/*
 * Somebody waits for a page, and could search for others meanwhile: has he
 * better not?  A search in vain takes longer than a read that is quick.  His
 * read is measured, then, as nobody else may ask.  Who could search for pages
 * of several tablespaces asks about all of them, or each time about the one
 * that he waits for: what is always in memory in one of them is never measured.
 * Neither suspends nor raises.
 */
bool
AioReadIsQuick(Oid tablespace)
{
	if (aio_quick_io_time <= 0 ||
		get_pace(AIO_KIND_READ, tablespace)->phase == AWAIT)
		return false;
	asked[false] = true;
	return true;
}

static void
note_tried(Pace *pace, double time)
{
	pace->n++;
	pace->sum += time;
	pace->longest = Max(pace->longest, time);
	if (time >= limit() * LONGER)
		pace->slow++;
	if (pace->slow >= 2 || time >= limit() * MUCH_LONGER ||
		pace->sum - pace->longest >= limit() * (TRIED - 1))
		give_up(pace, pace->sum / pace->n);
	else if (pace->n == TRIED)
	{
		pace->mean = (pace->sum - pace->longest) / (TRIED - 1);
		tell_others(pace, pace->mean);
		enter(pace, QUICK);
	}
	else
		tell_of_one(pace, time);
}

static void
note_quick(Pace *pace, double time)
{
	pace->n++;
	time = Min(time, limit() * LONGEST);
	pace->mean += (time - pace->mean) / MEAN_OF;
	if (pace->mean >= limit())
		give_up(pace, pace->mean);
	else if (pace->n == FORGIVEN_AFTER)
		pace->awaited = AWAITED_MIN;
}

/*
 * A read or a write that this process has begun is complete, and this process
 * has noticed.  Called in critical sections.
 */
void
AioNoteTime(AioFutureKind kind, PgAioHandle *ioh, instr_time started)
{
	struct iovec *iov;
	int			iovcnt;
	Size		bytes = 0;
	Oid			tablespace = ioh->target_data.smgr.rlocator.spcOid;
	bool		synchronous = (ioh->flags & PGAIO_HF_SYNCHRONOUS) != 0;
	bool		write = kind == AIO_KIND_WRITE;
	instr_time	now;
	double		time;
	Pace	   *pace;

	Assert(ioh->owner_procno == MyProcNumber);
	if (aio_quick_io_time <= 0)
		return;
	iovcnt = pgaio_io_get_iovec_length(ioh, &iov);
	for (int i = 0; i < iovcnt; i++)
		bytes += iov[i].iov_len;
	if (!write)
		pages_read += bytes / BLCKSZ;

	pace = find_pace(write, tablespace, NULL);
	if (pace == NULL ||
		synchronous != (pace->phase != AWAIT) ||
		(synchronous && !asked[write]))
		return;
	if (synchronous)
		asked[write] = false;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, started);
	time = INSTR_TIME_GET_DOUBLE(now) * 1000000 - FURTHER_PAGE * (bytes / BLCKSZ - 1.0);
	time = Max(time, 0);

	if (!synchronous)
		pace->shortest = pace->shortest < 0 ? time : Min(pace->shortest, time);
	else if (pace->phase == TRY)
		note_tried(pace, time);
	else
		note_quick(pace, time);
}
