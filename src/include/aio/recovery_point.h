/*-------------------------------------------------------------------------
 *
 * recovery_point.h
 *	  The minimum recovery point is noted in pg_control ahead of need.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_RECOVERY_POINT_H
#define AIO_RECOVERY_POINT_H

#include "storage/buf_internals.h"

/* recovery_point.c */
extern void AioRecoveryPointInitialize(void);
extern bool (*aio_background_work) (void);
extern void AioWakeBackgroundWriter(void);
extern void AioRequestRecoveryPoint(void);
extern bool AioBackgroundWriterCycle(WritebackContext *wb_context);

#endif							/* AIO_RECOVERY_POINT_H */
