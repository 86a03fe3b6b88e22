/*-------------------------------------------------------------------------
 *
 * quick_io.h
 *	  I/O that returns so soon that it does not pay to await it.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_QUICK_IO_H
#define AIO_QUICK_IO_H

#include "aio/usage.h"

/*
 * aio.quick_io_time, in milliseconds.  What tests find awaited must not depend
 * on the speed of a machine.
 */
#ifdef USE_ASSERT_CHECKING
#define AIO_QUICK_IO_TIME	0
#else
#define AIO_QUICK_IO_TIME	0.015
#endif
extern PGDLLIMPORT double aio_quick_io_time;

extern void AioQuickIoInitialize(void);
extern bool AioIsQuick(AioFutureKind kind, Oid tablespace);
extern bool AioWillBeQuick(Oid tablespace);
extern bool AioReadIsQuick(Oid tablespace);
extern void AioNoteTime(AioFutureKind kind, PgAioHandle *ioh,
						instr_time started);

#endif							/* AIO_QUICK_IO_H */
