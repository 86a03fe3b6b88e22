/*-------------------------------------------------------------------------
 *
 * server.h
 *	  What upstream's files call, or tell, that needs nothing but a declaration.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_SERVER_H
#define AIO_SERVER_H

#include "utils/relcache.h"

extern void AioInitialize(void);
extern void AioInitializeLast(void);
extern void AioRetireAmCache(Relation rel);
extern bool AioRelcacheIsBuilding(void);
extern char *AioUringSetupHint(int err, char *hint);
pg_noreturn extern void AioExitWithoutPostmaster(void);

#endif							/* AIO_SERVER_H */
