/*-------------------------------------------------------------------------
 *
 * pg_basebackup_internals.c
 *	  Included at the end of bin/pg_basebackup/pg_basebackup.c: several
 *	  connections receive one base backup (--jobs).
 *
 * The first connection begins the backup, as ever, and says that it will be
 * shared.  It receives directories, files at the top of the data directory
 * and what is sent incrementally; then the server sends a key.  From here on
 * there is a child process for each of the other connections, which joins the
 * backup by the key and unpacks what it receives into the same directories.
 * The server makes one manifest of it, and sends it to the first connection.
 *
 * A child syncs the files that it has written, and then tells its parent which
 * these are, so that they are not synced again.  It exits with status 0 if all
 * it has received is on disk.  If it cannot, it says why, and the parent ends
 * with an error, too, when the server tells something, as it does each second
 * while it sends or waits for others.  When the parent ends before the backup
 * is complete, it ends its children first, because it is going to remove what
 * they write.
 *
 * A child has nothing to clear up: neither directories, nor the process that
 * receives WAL, nor the connection of its parent.
 *
 * Tests: src/test/aio/backup/t/003_jobs.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "fe_utils/string_utils.h"

/* A child process. */
typedef struct Job
{
	pid_t		pid;			/* or 0 when it has been waited for */
	int			synced;			/* it tells which files are synced by this */
} Job;

/*
 * How many connections there are, which of them is this process's, and whose
 * child it is, if it is one.
 */
static int	njobs = 1;
static int	my_job = 0;
static pid_t parent;

/* children, from 1 on; NULL before there are any */
static Job *jobs = NULL;

/* bytes that each connection has received, shared by all processes */
static volatile uint64 *bytes_received;

static volatile sig_atomic_t job_has_failed = false;

/* how the server compresses what it sends, or NULL */
static char *server_compression = NULL;
static char *server_compression_detail = NULL;

/* main(): --jobs */
void
AioParseJobs(const char *argument)
{
	if (!option_parse_int(argument, "-j/--jobs", 1, 1024, &njobs))
		exit(1);
}

/* main(): all options are known. */
void
AioCheckJobs(void)
{
	if (njobs == 1)
		return;
	if (format != 'p' || backup_target != NULL)
	{
		pg_log_error("several jobs are possible only in plain format");
		pg_log_error_hint("Try \"%s --help\" for more information.", progname);
		exit(1);
	}
	if (maxrate > 0 && maxrate / njobs < MAX_RATE_LOWER)
		pg_fatal("transfer rate of %d kB/s is too low for %d jobs, each of which needs %d kB/s",
				 maxrate, njobs, MAX_RATE_LOWER);
	maxrate /= njobs;
}

static void
refuse_server(void)
{
	pg_log_error("server does not support parallel base backups");
	pg_log_error_hint("Use --jobs=1.");
	exit(1);
}

/* BaseBackup(): the command that begins the backup is complete but for this. */
void
AioShareCommand(PQExpBuffer buf, bool compressed, char *algorithm,
				char *detail)
{
	if (njobs == 1)
		return;
	if (PQserverVersion(conn) < 150000)
		refuse_server();
	if (compressed)
	{
		server_compression = algorithm;
		server_compression_detail = detail;
	}
	AppendIntegerCommandOption(buf, true, "SHARED", njobs);
}

/* BaseBackup(): this is the first answer to it. */
void
AioCheckStart(const PGresult *res)
{
	const char *sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);

	/* the name of an option that is not known is in any language */
	if (njobs > 1 && PQresultStatus(res) == PGRES_FATAL_ERROR &&
		sqlstate != NULL && strcmp(sqlstate, "42601") == 0 &&
		message != NULL && strstr(message, "shared") != NULL)
		refuse_server();
}

/*
 * Look for children that have ended, which can be waited for all the same.  May
 * be called by a handler of a signal.
 */
static void
check_children(void)
{
	siginfo_t	info;

	/* it may be waited for by now, and then is nobody's child any more */
	info.si_pid = 0;
	if (bgchild > 0 &&
		(waitid(P_PID, bgchild, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		 info.si_pid == bgchild))
		bgchild_exited = true;
	for (int i = 1; i < njobs; i++)
	{
		info.si_pid = 0;
		if (jobs[i].pid > 0 &&
			waitid(P_PID, jobs[i].pid, &info,
				   WEXITED | WNOHANG | WNOWAIT) == 0 &&
			info.si_pid == jobs[i].pid &&
			(info.si_code != CLD_EXITED || info.si_status != 0))
			job_has_failed = true;
	}
}

/* In place of upstream's handler, for which any child is the only one. */
static void
handle_end_of_child(SIGNAL_ARGS)
{
	check_children();
}

/*
 * The program ends.  If it has children, what they have written is going to be
 * removed.
 */
static void
kill_jobs_atexit(void)
{
	for (int i = 1; i < njobs; i++)
	{
		if (jobs[i].pid > 0)
			kill(jobs[i].pid, SIGKILL);
	}
	for (int i = 1; i < njobs; i++)
	{
		if (jobs[i].pid > 0)
			(void) waitpid(jobs[i].pid, NULL, 0);
	}
}

/* In a child: get the next result, which must have this status. */
static void
expect_result(ExecStatusType status, const char *failed)
{
	PGresult   *res = PQgetResult(conn);

	if (PQresultStatus(res) != status)
		pg_fatal("%s: %s", failed, PQerrorMessage(conn));
	PQclear(res);
}

/*
 * In a child: the backup is of the server that the parent is connected to,
 * whatever others its options, a service and the environment name.  So one
 * string has all that the connection was made with, which leaves them nothing
 * to add, but the server alone in place of lists.
 */
static void
connect_to_same_server(void)
{
	PQconninfoOption *options = PQconninfo(conn);
	PQExpBuffer buf = createPQExpBuffer();

	if (options == NULL)
		pg_fatal("out of memory");
	for (PQconninfoOption *option = options; option->keyword != NULL; option++)
	{
		const char *value = option->val;

		if (strcmp(option->keyword, "host") == 0)
			value = PQhost(conn);
		else if (strcmp(option->keyword, "hostaddr") == 0)
			value = PQhostaddr(conn);
		else if (strcmp(option->keyword, "port") == 0)
			value = PQport(conn);
		else if (strncmp(option->keyword, "service", 7) == 0)
			continue;			/* what it says is among the others */
		if (value == NULL || value[0] == '\0')
			continue;
		appendPQExpBuffer(buf, "%s=", option->keyword);
		appendConnStrVal(buf, value);
		appendPQExpBufferChar(buf, ' ');
	}
	if (PQExpBufferDataBroken(*buf))
		pg_fatal("out of memory");
	PQconninfoFree(options);

	connection_string = buf->data;
	dbhost = dbuser = dbport = NULL;
	unsetenv("PGHOSTADDR");		/* a socket has none */
	unsetenv("PGSERVICE");
}

/* Forget what belongs to the parent. */
static void
become_child(int job)
{
	pqsignal(SIGCHLD, SIG_DFL);
#ifdef __linux__
	/* whoever ends the parent may want to write there, too */
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	if (getppid() != parent)
		_exit(1);
	my_job = job;
	for (int i = 1; i < njobs; i++)
		jobs[i].pid = 0;
	bgchild = -1;
	in_log_streamer = true;		/* then directories are not removed */
	showprogress = false;
	dbgetpassword = -1;			/* several cannot ask for one at once */

	connect_to_same_server();

	/* a child that is older must notice that its parent does not read */
	for (int i = 1; i < job; i++)
		close(jobs[i].synced);

	/* it is not told that the connection ends, which it does not */
	close(PQsocket(conn));
	conn = NULL;
	AioForkStreams();
}

/* The child: receive what one connection gets. */
static void
run_job(char *key, int synced, pg_compress_specification *compress)
{
	PQExpBufferData buf;
	char	   *command;

	conn = GetConnection();
	if (!conn)
		exit(1);				/* it has said why */

	initPQExpBuffer(&buf);
	AppendStringCommandOption(&buf, true, "SHARE", key);
	AppendStringCommandOption(&buf, true, "TARGET", "client");
	if (maxrate > 0)
		AppendIntegerCommandOption(&buf, true, "MAX_RATE", maxrate);
	if (server_compression != NULL)
		AppendStringCommandOption(&buf, true, "COMPRESSION",
								  server_compression);
	if (server_compression_detail != NULL)
		AppendStringCommandOption(&buf, true, "COMPRESSION_DETAIL",
								  server_compression_detail);
	command = psprintf("BASE_BACKUP (%s)", buf.data);
	if (PQsendQuery(conn, command) == 0)
		pg_fatal("could not send replication command \"%s\": %s",
				 "BASE_BACKUP", PQerrorMessage(conn));
	expect_result(PGRES_TUPLES_OK, _("could not join base backup"));
	expect_result(PGRES_TUPLES_OK, _("could not get backup header"));
	ReceiveArchiveStream(conn, compress);
	expect_result(PGRES_TUPLES_OK, _("backup failed"));
	expect_result(PGRES_COMMAND_OK, _("final receive failed"));
	PQfinish(conn);
	conn = NULL;

	AioFinishStreams();
	if (!AioSendSynced(synced))
		pg_fatal("could not write to pipe: %m");
	_exit(0);
}

/* The server is about to share out files: start the other connections. */
static void
start_jobs(char *key, pg_compress_specification *compress)
{
	if (verbose)
		pg_log_info("starting %d more connections", njobs - 1);
	bytes_received = mmap(NULL, njobs * sizeof(uint64),
						  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
						  -1, 0);
	if (bytes_received == MAP_FAILED)
		pg_fatal("could not allocate shared memory: %m");
	jobs = pg_malloc0(njobs * sizeof(Job));
	parent = getpid();
	AioShareStreams(njobs);
	/* children take over neither files nor their descriptors */
	AioFinishStreams();
	AioReserveDescriptors(njobs);
	pqsignal(SIGCHLD, handle_end_of_child);
	atexit(kill_jobs_atexit);

	for (int i = 1; i < njobs; i++)
	{
		int			ends[2];
		pid_t		pid;

		if (pipe(ends) < 0)
			pg_fatal("could not create pipe for background process: %m");
		pid = fork();
		if (pid < 0)
			pg_fatal("could not create background process: %m");
		if (pid == 0)
		{
			close(ends[0]);
			become_child(i);
			run_job(key, ends[1], compress);
		}
		close(ends[1]);
		jobs[i].synced = ends[0];
		jobs[i].pid = pid;
	}

	/* one may have failed before its process was known */
	check_children();
}

static uint64
sum_bytes_received(void)
{
	uint64		sum = 0;

	for (int i = 0; i < njobs; i++)
		sum += bytes_received[i];
	return sum;
}

/*
 * A message of the server tells how much this connection has received: have it
 * tell how much all have.
 */
static void
sum_up_progress(char *message)
{
	uint64		bytes;

	memcpy(&bytes, message, sizeof(bytes));
	bytes_received[my_job] = pg_ntoh64(bytes);
	bytes = pg_hton64(sum_bytes_received());
	memcpy(message, &bytes, sizeof(bytes));
}

/*
 * ReceiveArchiveStream(): in place of ReceiveArchiveStreamChunk(), whose
 * arguments these are, for each message of the server.
 */
void
AioReceiveChunk(size_t r, char *copybuf, void *callback_data)
{
	ArchiveStreamState *state = callback_data;
	char		type = r > 0 ? copybuf[0] : '\0';

	if (job_has_failed)
		pg_fatal("another connection of this base backup has failed");
	if (my_job > 0 && getppid() != parent)
		pg_fatal("parent process has ended");

	if (type == 'k' && njobs > 1 && jobs == NULL)
	{
		size_t		cursor = 1;
		char	   *key = GetCopyDataString(r, copybuf, &cursor);

		GetCopyDataEnd(r, copybuf, cursor);

		/* all directories have to be there, and no file is open */
		if (state->streamer != NULL)
		{
			astreamer_finalize(state->streamer);
			astreamer_free(state->streamer);
			state->streamer = NULL;
		}

		/* the archive into which recovery's settings go has come */
		writerecoveryconf = false;
		start_jobs(key, state->compress);
		return;
	}
	if (jobs != NULL && type == 'n')
	{
		/* parts of tablespaces that have been counted */
		state->tablespacenum = tablespacecount - 1;
	}
	else if (jobs != NULL && type == 'p' && r == 1 + sizeof(uint64))
		sum_up_progress(copybuf + 1);
	ReceiveArchiveStreamChunk(r, copybuf, callback_data);
}

/*
 * BaseBackup(): in place of the last progress_report(), whose arguments these
 * are.  It comes later if other connections may still be receiving.
 */
void
AioReportEnd(int tablespacenum, bool force, bool finished)
{
	if (jobs == NULL)
		progress_report(tablespacenum, force, finished);
}

/*
 * BaseBackup(): the backup has ended in the server, without an error.  Wait for
 * the others, which are about to have received all, too.
 */
void
AioFinishJobs(void)
{
	if (njobs == 1)
		return;
	if (jobs == NULL)
		pg_fatal("server has not shared the base backup");
	for (int i = 1; i < njobs; i++)
	{
		int			status;

		if (job_has_failed)
			pg_fatal("another connection of this base backup has failed");

		/* to the end of the pipe, which is that of the process */
		if (!AioReceiveSynced(jobs[i].synced))
			pg_fatal("could not read from pipe: %m");
		if (waitpid(jobs[i].pid, &status, 0) != jobs[i].pid)
			pg_fatal("could not wait for child process: %m");
		jobs[i].pid = 0;
		if (status != 0)
			pg_fatal("another connection of this base backup has failed: %s",
					 wait_result_to_str(status));
	}
	if (showprogress)
	{
		totaldone = sum_bytes_received();
		progress_report(tablespacecount, true, true);
	}
}
