/*-------------------------------------------------------------------------
 *
 * backup_share.c
 *	  What the connections of one base backup know of each other: the files
 *	  that are still to be sent, and who has failed.
 *
 * One of them, the leader, has begun the backup (BASE_BACKUP with SHARED).  It
 * notes the files that it finds, puts the list into dynamic shared memory, and
 * gives its client a key.  With that, others join (BASE_BACKUP with SHARE).
 * Each takes the next files of the list, the leader, too, and sends them.
 * Files are in the order of their tablespaces, and in each the large ones come
 * first, so that all connections are done at about the same time.
 *
 * The leader does not go on before all connections that it was promised have
 * come and ended.  Who leaves before that, for whatever reason, has failed,
 * and then all the others fail when they take the next file, or wait.
 *
 * The segment belongs to the resource owner of the base backup, so it goes
 * with that, as do the files in which those who have joined leave their part
 * of the manifest.  A process is part of one shared backup at a time.
 *
 * The key has a secret, as handles of segments can be guessed.  Who has the
 * key may have the files, but also has to have the right to take a backup.
 *
 * Nothing here suspends.  All functions but AioShareFileName() may raise
 * errors.
 *
 * Tests: src/test/aio/backup/t/003_jobs.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "backup/basebackup.h"
#include "backup_internal.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#define SHARE_MAGIC		UINT64CONST(0x61696f2d73686172)
#define SECRET_LENGTH	16

/* Who has this can join; the client gets it as hexadecimal digits. */
typedef struct ShareKey
{
	dsm_handle	handle;
	uint8		secret[SECRET_LENGTH];
} ShareKey;

#define KEY_DIGITS		(2 * sizeof(ShareKey))

/* A tablespace of the backup. */
typedef struct SharedTablespace
{
	Oid			oid;
	bool		is_main;		/* the data directory, which has no path */
	Size		path;			/* offset in the names */
} SharedTablespace;

typedef struct BackupShare
{
	uint64		magic;
	uint8		secret[SECRET_LENGTH];

	/* these do not change */
	AioShareTerms terms;
	int			nconnections;
	int			ntablespaces;
	uint32		nfiles;
	ProcNumber	leader;
	Size		tablespaces;	/* offsets in the segment */
	Size		files;
	Size		names;

	pg_atomic_uint32 next;		/* file that nobody has taken yet */
	SharedFileSet fileset;		/* parts of the manifest */

	slock_t		mutex;			/* of what follows */
	int			njoined;
	int			nended;
	int64		checksum_failures;	/* of those who have ended */
	bool		failed;
} BackupShare;

/* Files that the leader has found, while it looks. */
static int	connections_wanted = 0; /* 0 if the backup is not shared */
static AioSharedFile *found;
static uint32 nfound;
static uint32 found_limit;
static StringInfoData found_names;

/* The shared backup of which this process is a part, or NULL. */
static dsm_segment *segment = NULL;
static BackupShare *share = NULL;

/*
 * The process is about to exit.  The files go with the segment, which has to
 * be while they can be counted.
 */
static void
at_exit(int code, Datum arg)
{
	if (share != NULL)
		dsm_detach(segment);
}

/*
 * A base backup begins, in which this many connections are going to take
 * part, including this one; 0 if it is not shared, or this one joins it.
 */
void
AioSharePrepare(int nconnections)
{
	static bool registered = false;

	/* later, upstream has a callback that has to be the latest */
	if (!registered)
		before_shmem_exit(at_exit, (Datum) 0);
	registered = true;

	connections_wanted = nconnections;
	if (nconnections == 0)
		return;
	nfound = 0;
	found_limit = 1024;
	found = palloc_array(AioSharedFile, found_limit);
	initStringInfo(&found_names);
}

/* Is the base backup of which this process is the leader shared? */
bool
AioShareIsPrepared(void)
{
	return connections_wanted > 0;
}

/* The leader has found a file.  '*file' has all that is known but its path. */
void
AioShareNote(const AioSharedFile *file, const char *path)
{
	if (found_names.len > MaxAllocSize / 2 || nfound > PG_UINT32_MAX / 2)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many files for several connections"),
				 errhint("Take the base backup by one connection.")));
	if (nfound == found_limit)
		found = repalloc_huge(found, (Size) (found_limit *= 2) * sizeof(AioSharedFile));
	found[nfound] = *file;
	found[nfound++].path = found_names.len;
	appendBinaryStringInfo(&found_names, path, strlen(path) + 1);
}

/* For qsort(). */
static int
compare_files(const void *a, const void *b)
{
	const AioSharedFile *left = a;
	const AioSharedFile *right = b;

	if (left->tablespace != right->tablespace)
		return left->tablespace < right->tablespace ? -1 : 1;
	if (left->size != right->size)
		return left->size > right->size ? -1 : 1;
	return left->path < right->path ? -1 : left->path > right->path;
}

static void
wake_leader(void)
{
	SetLatch(&GetPGProcByNumber(share->leader)->procLatch);
}

/* Without its leader, nobody can join, also if the memory is used again. */
static void
end_joining(void)
{
	if (share->leader == MyProcNumber)
		share->magic = 0;
}

/* This process leaves before it has ended its part. */
static void
note_failure(dsm_segment *seg, Datum arg)
{
	SpinLockAcquire(&share->mutex);
	share->failed = true;
	SpinLockRelease(&share->mutex);
	end_joining();
	wake_leader();
	share = NULL;
	segment = NULL;
}

/* This process is a part of the shared backup from now on. */
static void
take_part(void)
{
	on_dsm_detach(segment, note_failure, (Datum) 0);
}

/*
 * The leader has found all files: share them out.  The result is the key, for
 * those who are to join.
 */
char *
AioShareCreate(const AioShareTerms *terms, List *tablespaces)
{
	int			ntablespaces = list_length(tablespaces);
	SharedTablespace *shared_tablespaces;
	Size		at_tablespaces = MAXALIGN(sizeof(BackupShare));
	Size		at_files;
	Size		at_names;
	ShareKey	key;
	char	   *digits;
	BackupShare *new;

	Assert(share == NULL);
	shared_tablespaces = palloc0_array(SharedTablespace, ntablespaces);
	for (int i = 0; i < ntablespaces; i++)
	{
		const tablespaceinfo *info = list_nth(tablespaces, i);

		shared_tablespaces[i].oid = info->oid;
		shared_tablespaces[i].is_main = info->path == NULL;
		shared_tablespaces[i].path = found_names.len;
		if (info->path != NULL)
			appendBinaryStringInfo(&found_names, info->path,
								   strlen(info->path) + 1);
	}
	qsort(found, nfound, sizeof(AioSharedFile), compare_files);

	at_files = at_tablespaces +
		MAXALIGN(ntablespaces * sizeof(SharedTablespace));
	at_names = at_files + MAXALIGN((Size) nfound * sizeof(AioSharedFile));
	segment = dsm_create(at_names + found_names.len, 0);
	new = dsm_segment_address(segment);
	MemSet(new, 0, sizeof(BackupShare));
	memset(&key, 0, sizeof(key));
	key.handle = dsm_segment_handle(segment);
	if (!pg_strong_random(key.secret, SECRET_LENGTH))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate a key for a base backup")));
	memcpy(new->secret, key.secret, SECRET_LENGTH);
	new->terms = *terms;
	new->nconnections = connections_wanted;
	new->ntablespaces = ntablespaces;
	new->nfiles = nfound;
	new->leader = MyProcNumber;
	new->tablespaces = at_tablespaces;
	new->files = at_files;
	new->names = at_names;
	memcpy((char *) new + at_tablespaces, shared_tablespaces,
		   ntablespaces * sizeof(SharedTablespace));
	memcpy((char *) new + at_files, found,
		   (Size) nfound * sizeof(AioSharedFile));
	memcpy((char *) new + at_names, found_names.data, found_names.len);
	pg_atomic_init_u32(&new->next, 0);
	SpinLockInit(&new->mutex);

	/* a walsender has no temporary tablespaces, and must say so */
	if (!TempTablespacesAreSet())
		SetTempTablespaces(NULL, 0);
	SharedFileSetInit(&new->fileset, segment);
	take_part();
	share = new;
	new->magic = SHARE_MAGIC;

	/* they are all in shared memory now */
	pfree(shared_tablespaces);
	pfree(found);
	pfree(found_names.data);
	found = NULL;

	digits = palloc(KEY_DIGITS + 1);
	digits[hex_encode((const char *) &key, sizeof(key), digits)] = '\0';
	return digits;
}

/*
 * Join the shared backup to which this key belongs.  Returns a number that no
 * other connection has, from 1 on.
 */
int
AioShareJoin(const char *digits, AioShareTerms *terms)
{
	ShareKey	key;
	BackupShare *other = NULL;
	int			number = 0;
	bool		failed = false;

	Assert(share == NULL);
	if (strlen(digits) != KEY_DIGITS ||
		hex_decode(digits, KEY_DIGITS, (char *) &key) != sizeof(key))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid key of a shared base backup")));

	/* what has this handle may be somebody else's */
	segment = dsm_attach(key.handle);
	if (segment != NULL &&
		dsm_segment_map_length(segment) >= sizeof(BackupShare))
		other = dsm_segment_address(segment);
	if (other == NULL || other->magic != SHARE_MAGIC ||
		timingsafe_bcmp(other->secret, key.secret, SECRET_LENGTH) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there is no shared base backup with this key"),
				 errhint("All connections of a base backup have to reach the same server.")));

	/* whatever fails after this process is counted, the others must know */
	take_part();
	share = other;
	SpinLockAcquire(&share->mutex);
	failed = share->failed;
	if (!failed && share->njoined < share->nconnections - 1)
		number = ++share->njoined;
	SpinLockRelease(&share->mutex);
	if (failed)
		AioShareFail();
	if (number == 0)
	{
		/* it is not the others' failure that this one is too many */
		cancel_on_dsm_detach(segment, note_failure, (Datum) 0);
		share = NULL;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("all connections of this base backup have joined it already")));
	}
	SharedFileSetAttach(&share->fileset, segment);
	*terms = share->terms;
	return number;
}

/* The tablespaces of the shared backup, as tablespaceinfo. */
List *
AioShareTablespaces(void)
{
	const SharedTablespace *shared = (const SharedTablespace *)
		((const char *) share + share->tablespaces);
	List	   *tablespaces = NIL;

	for (int i = 0; i < share->ntablespaces; i++)
	{
		tablespaceinfo *info = palloc0_object(tablespaceinfo);

		info->oid = shared[i].oid;
		if (!shared[i].is_main)
			info->path = pstrdup((const char *) share + share->names +
								 shared[i].path);
		info->size = -1;
		tablespaces = lappend(tablespaces, info);
	}
	return tablespaces;
}

/* Where the parts of the manifest are. */
FileSet *
AioShareFileSet(void)
{
	return &share->fileset.fs;
}

/* The path of a file that has been taken. */
const char *
AioShareFileName(const AioSharedFile *file)
{
	return (const char *) share + share->names + file->path;
}

/* Somebody else has failed. */
void
AioShareFail(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("another connection of this base backup has failed")));
}

static void
check_failure(void)
{
	bool		failed;

	SpinLockAcquire(&share->mutex);
	failed = share->failed;
	SpinLockRelease(&share->mutex);
	if (failed)
		AioShareFail();
}

/*
 * Take the next file.  NULL if there is none, or it has more than 'room'
 * bytes.
 */
const AioSharedFile *
AioShareTake(int64 room)
{
	const AioSharedFile *files = (const AioSharedFile *)
		((const char *) share + share->files);
	uint32		next = pg_atomic_read_u32(&share->next);

	check_failure();
	do
	{
		if (next == share->nfiles || files[next].size > room)
			return NULL;
	}
	while (!pg_atomic_compare_exchange_u32(&share->next, &next, next + 1));
	return &files[next];
}

/*
 * The leader has sent what it has taken: wait until all others have ended, or
 * for a second, in which case the result is false.  '*checksum_failures' is
 * what they have found.
 */
bool
AioShareWait(int64 *checksum_failures)
{
	static uint32 wait_event = 0;
	bool		complete;

	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("AioBackupShare");
	check_failure();
	SpinLockAcquire(&share->mutex);
	complete = share->nended == share->nconnections - 1;
	*checksum_failures = share->checksum_failures;
	SpinLockRelease(&share->mutex);
	if (complete)
		return true;
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 1000, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return false;
}

/*
 * This process has done its part.  Nothing that belongs to the shared backup
 * may be looked at from now on.
 */
void
AioShareEnd(int64 checksum_failures)
{
	dsm_segment *mine = segment;

	HOLD_INTERRUPTS();
	cancel_on_dsm_detach(segment, note_failure, (Datum) 0);
	SpinLockAcquire(&share->mutex);
	share->nended++;
	share->checksum_failures += checksum_failures;
	SpinLockRelease(&share->mutex);
	end_joining();
	wake_leader();
	share = NULL;
	segment = NULL;
	RESUME_INTERRUPTS();
	dsm_detach(mine);
}
