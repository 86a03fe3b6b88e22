/*-------------------------------------------------------------------------
 *
 * basebackup_internals.c
 *	  Included at the end of backup/basebackup.c: what has not been read ahead
 *	  is read as ever, and several connections send one base backup.
 *
 * The leader of a shared base backup sends everything that upstream does, in
 * upstream's order, but for files that are sent as they are: those it notes.
 * When it has come to pg_control, it ends the archive, tells the client the
 * key with which other connections can join, and sends noted files as the
 * others do (backup_share.c).  When all have been sent, it begins the archive
 * of the data directory again, and upstream goes on with pg_control, WAL and
 * the manifest, which has the entries of all.
 *
 * Files at the top of the data directory are not noted.  The client alters
 * one of them, and looks for it in the first archive.
 *
 * An archive may come several times, from the same connection or another, so
 * the client has to unpack them.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/backup_share.h"
#include "backup_internal.h"
#include "libpq/libpq.h"
#include "libpq/pqformat.h"

/* What a connection takes of a shared backup at once, to read it ahead. */
#define QUEUE_FILES		32
#define QUEUE_BYTES		(8 * 1024 * 1024)

/* SHARED and SHARE of the command that is carried out, or 0 and NULL */
static int	share_connections = 0;
static const char *share_key = NULL;

/*
 * In place of basebackup_read_file(), where less than was asked for will do.
 * Arguments, result and errors are that function's.
 */
ssize_t
AioBackupRead(int fd, char *buf, size_t nbytes, off_t offset, const char *path)
{
	ssize_t		taken = AioBackupTake(fd, path, buf, nbytes, offset);

	if (taken > 0)
		return taken;
	return basebackup_read_file(fd, buf, nbytes, offset, path, true);
}

/*
 * SendBaseBackup(): take our options out of those of the command.  SHARED has
 * the number of connections that are going to send the backup, SHARE the key
 * of the backup to join.
 */
List *
AioBackupOptions(List *options)
{
	List	   *others = NIL;

	share_connections = 0;
	share_key = NULL;
	foreach_node(DefElem, option, options)
	{
		bool		is_shared = strcmp(option->defname, "shared") == 0;

		if (!is_shared && strcmp(option->defname, "share") != 0)
		{
			others = lappend(others, option);
			continue;
		}
		if (share_connections != 0 || share_key != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_SYNTAX_ERROR),
					 errmsg("conflicting or redundant options")));
		if (!is_shared)
			share_key = defGetString(option);
		else
		{
			share_connections = defGetInt32(option);
			if (share_connections < 2 || share_connections > MAX_BACKENDS)
				ereport(ERROR,
						(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						 errmsg("%d is outside the valid range for parameter \"%s\" (%d .. %d)",
								share_connections, "SHARED", 2, MAX_BACKENDS)));
		}
	}
	return others;
}

/*
 * sendDir(): in place of sendFile(), whose arguments these are.  If the backup
 * is shared, any connection may send the file later.
 */
bool
AioBackupSendFile(bbsink *sink, const char *readfilename,
				  const char *tarfilename, struct stat *statbuf,
				  bool missing_ok, Oid dboid, Oid spcoid,
				  RelFileNumber relfilenumber, unsigned segno,
				  backup_manifest_info *manifest,
				  unsigned num_incremental_blocks,
				  BlockNumber *incremental_blocks,
				  unsigned truncation_block_length)
{
	AioSharedFile file = {0};

	if (!AioShareIsPrepared() || incremental_blocks != NULL ||
		strchr(tarfilename, '/') == NULL)
		return sendFile(sink, readfilename, tarfilename, statbuf, missing_ok,
						dboid, spcoid, relfilenumber, segno, manifest,
						num_incremental_blocks, incremental_blocks,
						truncation_block_length);

	file.size = statbuf->st_size;
	file.tablespace = sink->bbs_state->tablespace_num;
	file.dboid = dboid;
	file.spcoid = spcoid;
	file.relfilenumber = relfilenumber;
	file.segno = segno;
	file.name = strlen(readfilename) - strlen(tarfilename);
	Assert(strcmp(readfilename + file.name, tarfilename) == 0);
	AioShareNote(&file, readfilename);
	return true;
}

/* Begin the archive of a tablespace, which may have been sent in part. */
static void
begin_archive(bbsink *sink, int tablespace)
{
	bbsink_state *state = sink->bbs_state;
	tablespaceinfo *info = list_nth(state->tablespaces, tablespace);
	char		name[MAXPGPATH];

	if (info->path == NULL)
		strlcpy(name, "base.tar", sizeof(name));
	else
		snprintf(name, sizeof(name), "%u.tar", info->oid);
	state->tablespace_num = tablespace;
	bbsink_begin_archive(sink, name);
}

static void
end_archive(bbsink *sink)
{
	memset(sink->bbs_buffer, 0, 2 * TAR_BLOCK_SIZE);
	bbsink_archive_contents(sink, 2 * TAR_BLOCK_SIZE);

	/* or the view of progress would count tablespaces up and down */
	sink->bbs_state->tablespace_num = list_length(sink->bbs_state->tablespaces);
	bbsink_end_archive(sink);
}

/*
 * As sendDir() does for each file: a standby that is promoted ends the backup,
 * which would fail in the end, too.
 */
static void
check_promotion(void)
{
	if (RecoveryInProgress() != backup_started_in_recovery)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the standby was promoted during online backup"),
				 errhint("Take another base backup.")));
}

/*
 * Take files of the shared backup, and send them, until there are none.  An
 * archive is not open before, nor after that.
 */
static void
send_shared_files(bbsink *sink, backup_manifest_info *manifest)
{
	const AioSharedFile *queue[QUEUE_FILES];
	int			first = 0;
	int			nqueued = 0;
	int64		queued_bytes = 0;
	int			tablespace = -1;

	for (;;)
	{
		const AioSharedFile *file;
		const char *path;
		struct stat status;

		/* the first will be sent, the others are read ahead meanwhile */
		while (nqueued < QUEUE_FILES &&
			   (file = AioShareTake(nqueued == 0 ? PG_INT64_MAX :
									QUEUE_BYTES - queued_bytes)) != NULL)
		{
			queue[(first + nqueued++) % QUEUE_FILES] = file;
			queued_bytes += file->size;
			AioBackupExpect(AioShareFileName(file));
		}
		if (nqueued == 0)
			break;
		file = queue[first];
		first = (first + 1) % QUEUE_FILES;
		nqueued--;
		queued_bytes -= file->size;

		CHECK_FOR_INTERRUPTS();
		check_promotion();
		path = AioShareFileName(file);
		if (lstat(path, &status) != 0)
		{
			/* it went away after it was found, which is no error */
			if (errno != ENOENT)
				ereport(ERROR,
						(errcode_for_file_access(),
						 errmsg("could not stat file or directory \"%s\": %m",
								path)));
			continue;
		}
		if (!S_ISREG(status.st_mode))
			continue;
		if (file->tablespace != tablespace)
		{
			if (tablespace >= 0)
				end_archive(sink);
			tablespace = file->tablespace;
			begin_archive(sink, tablespace);
		}
		sendFile(sink, path, path + file->name, &status, true, file->dboid,
				 file->spcoid, file->relfilenumber, file->segno, manifest,
				 0, NULL, 0);
	}
	if (tablespace >= 0)
		end_archive(sink);
}

/* Tell the client the key with which others can join. */
static void
send_key(const char *key)
{
	StringInfoData buf;

	pq_beginmessage(&buf, PqMsg_CopyData);
	pq_sendbyte(&buf, 'k');
	pq_sendstring(&buf, key);
	pq_endmessage(&buf);
	pq_flush();
}

/*
 * Tell the client how far we are, which is no news while others are awaited.
 * But if there is no client any more, this is how it is noticed.
 */
static void
send_progress(const bbsink_state *state)
{
	StringInfoData buf;

	pq_beginmessage(&buf, PqMsg_CopyData);
	pq_sendbyte(&buf, 'p');
	pq_sendint64(&buf, state->bytes_done);
	pq_endmessage(&buf);
	pq_flush_if_writable();
	CHECK_FOR_INTERRUPTS();
}

/*
 * perform_base_backup(): all but pg_control and WAL has been found.  If the
 * backup is shared, send what has been noted, with the other connections.
 */
void
AioBackupShareOut(bbsink *sink, backup_manifest_info *manifest)
{
	bbsink_state *state = sink->bbs_state;
	AioShareTerms terms;
	int64		failures;

	if (!AioShareIsPrepared())
		return;
	end_archive(sink);

	terms.startptr = state->startptr;
	terms.starttli = state->starttli;
	terms.in_recovery = backup_started_in_recovery;
	terms.verify_checksums = !noverify_checksums;
	terms.with_manifest = manifest->buffile != NULL;
	terms.force_encode = manifest->force_encode;
	terms.checksum_type = manifest->checksum_type;
	send_key(AioShareCreate(&terms, state->tablespaces));

	send_shared_files(sink, manifest);
	while (!AioShareWait(&failures))
	{
		check_promotion();
		send_progress(state);
	}
	total_checksum_failures += failures;
	for (int number = 1; number < share_connections; number++)
		AioAppendManifest(manifest, AioShareFileSet(), number);
	AioShareEnd(0);

	begin_archive(sink, list_length(state->tablespaces) - 1);
}

/* Join a shared backup. */
static void
perform_share(bbsink *sink)
{
	bbsink_state state = {0};
	backup_manifest_info manifest;
	AioShareTerms terms;
	int			number;

	Assert(AuxProcessResourceOwner != NULL);
	CurrentResourceOwner = AuxProcessResourceOwner;

	number = AioShareJoin(share_key, &terms);
	state.tablespaces = AioShareTablespaces();
	state.startptr = terms.startptr;
	state.starttli = terms.starttli;
	backup_started_in_recovery = terms.in_recovery;
	noverify_checksums = !terms.verify_checksums;
	total_checksum_failures = 0;
	InitializeBackupManifest(&manifest,
							 !terms.with_manifest ? MANIFEST_OPTION_NO :
							 terms.force_encode ? MANIFEST_OPTION_FORCE_ENCODE :
							 MANIFEST_OPTION_YES,
							 terms.checksum_type);
	AioManifestToFileSet(&manifest, AioShareFileSet(), number);

	bbsink_begin_backup(sink, &state, SINK_BUFFER_LENGTH);
	send_shared_files(sink, &manifest);
	AioExportManifest(&manifest);

	/* if there were failures, the leader's backup ends with an error */
	AioShareEnd(total_checksum_failures);
	state.tablespace_num = list_length(state.tablespaces);
	bbsink_end_backup(sink, state.startptr, state.starttli);

	FreeBackupManifest(&manifest);
	ReleaseAuxProcessResources(true);
}

/*
 * SendBaseBackup(): in place of perform_base_backup().
 */
void
AioPerformBaseBackup(void *options, bbsink *sink, IncrementalBackupInfo *ib)
{
	basebackup_options *opt = options;

	if ((share_connections > 0 || share_key != NULL) && !opt->send_to_client)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a base backup can be shared only if it is sent to the client")));
	if (share_key != NULL &&
		(opt->includewal || opt->incremental || opt->nowait ||
		 opt->manifest != MANIFEST_OPTION_NO))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("options of a shared base backup are those with which it has begun")));
	AioSharePrepare(share_connections);
	if (share_key != NULL)
	{
		bool		before = noverify_checksums;

		/* this session has not asked for it */
		PG_TRY();
		{
			perform_share(sink);
		}
		PG_FINALLY();
		{
			noverify_checksums = before;
		}
		PG_END_TRY();
	}
	else
		perform_base_backup(opt, sink, ib);
}
