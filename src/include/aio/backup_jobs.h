/*-------------------------------------------------------------------------
 *
 * backup_jobs.h
 *	  Several connections of pg_basebackup receive one base backup.
 *
 * Only for pg_basebackup.  src/fe_utils/pg_basebackup_internals.c says more.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BACKUP_JOBS_H
#define AIO_BACKUP_JOBS_H

struct PQExpBufferData;
struct pg_result;

extern void AioParseJobs(const char *argument);
extern void AioCheckJobs(void);
extern void AioShareCommand(struct PQExpBufferData *buf, bool compressed,
							char *algorithm, char *detail);
extern void AioCheckStart(const struct pg_result *res);
extern void AioReceiveChunk(size_t r, char *copybuf, void *callback_data);
extern void AioReportEnd(int tablespacenum, bool force, bool finished);
extern void AioFinishJobs(void);

#endif							/* AIO_BACKUP_JOBS_H */
