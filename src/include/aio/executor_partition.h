/*-------------------------------------------------------------------------
 *
 * executor_partition.h
 *	  Which partition a row belongs to.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_EXECUTOR_PARTITION_H
#define AIO_EXECUTOR_PARTITION_H

#include "executor/execPartition.h"
#include "nodes/execnodes.h"

/* execPartition_internals.c */
extern Oid	AioFindPartition(Relation rel, Datum *values, bool *isnull);
extern ResultRelInfo *AioFindOpenPartition(ModifyTableState *mtstate,
										   TupleTableSlot *row);
extern ResultRelInfo **AioOpenPartitions(const PartitionTupleRouting *routing,
										 int *n);

#endif							/* AIO_EXECUTOR_PARTITION_H */
