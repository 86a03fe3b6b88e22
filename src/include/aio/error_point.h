/*-------------------------------------------------------------------------
 *
 * error_point.h
 *	  Where execution goes on after an error that is not raised any further.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_ERROR_POINT_H
#define AIO_ERROR_POINT_H

#include "utils/resowner.h"

typedef struct AioErrorPoint
{
	MemoryContext memory_context;
	ResourceOwner owner;
	uint32		holdoff;
	uint32		cancel_holdoff;
	uint64		earlier_errors;
} AioErrorPoint;

/* Errors of rows that had been inserted, as far as the executor knew. */
extern uint64 aio_earlier_errors;

/* May this error, which has just been caught, be forgotten? */
typedef bool (*AioMayForget) (int sqlerrcode);

extern bool AioErrorIsOfWork(int sqlerrcode);
extern bool AioTry(void (*function) (void *arg), void *arg,
				   AioMayForget may_forget, ErrorData **error);
extern bool AioIsTrueOrUnknown(bool (*question) (void *arg), void *arg);
extern void AioMarkErrorPoint(AioErrorPoint *point);
extern bool AioErrorIsOfOthers(const AioErrorPoint *point);
extern void AioReturnToErrorPoint(const AioErrorPoint *point);

#endif							/* AIO_ERROR_POINT_H */
