/*-------------------------------------------------------------------------
 *
 * execParallel.c
 *	  Tail of executor/execParallel.c: what becomes of a worker's rows, and
 *	  of what it has counted.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/node_usage.h"
#include "aio/parallel_insert.h"

/* ParallelQueryMain(): the receiver of this worker's rows */
DestReceiver *
AioParallelReceiver(dsm_segment *seg, shm_toc *toc)
{
	AioCountNodesOfWorker(toc);
	return AioInsertingReceiver(toc, ExecParallelGetReceiver(seg, toc));
}
