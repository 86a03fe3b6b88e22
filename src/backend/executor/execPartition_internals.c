/*-------------------------------------------------------------------------
 *
 * execPartition_internals.c
 *	  Included at the end of executor/execPartition.c: which partition a row
 *	  belongs to, without anything that it is inserted into.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/ri.h"

/*
 * The partition of a partitioned table, which is open and locked, to which rows
 * with these values of its partition key belong; InvalidOid if there is none.
 * Calls the support functions of the partition key.
 */
Oid
AioFindPartition(Relation rel, Datum *values, bool *isnull)
{
	PartitionDispatchData dispatch = {
		.reldesc = rel,
		.key = RelationGetPartitionKey(rel),
		.partdesc = RelationGetPartitionDesc(rel, true),
	};
	int			i;

	if (dispatch.partdesc->nparts == 0)
		return InvalidOid;
	i = get_partition_for_tuple(&dispatch, values, isnull);
	return i < 0 ? InvalidOid : dispatch.partdesc->oids[i];
}
