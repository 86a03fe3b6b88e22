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
#include "aio/executor_partition.h"
#include "aio/index_policy.h"

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

/* Can a partition key be had without running anybody's code, or an error? */
static bool
key_can_be_had(PartitionKey key)
{
	if (key->partexprs != NIL)
		return false;
	for (int i = 0; i < key->partnatts; i++)
	{
		/* no type that is passed by value consists of others */
		if (AioFunctionIsUserCode(key->partsupfunc[i].fn_oid) ||
			(!key->parttypbyval[i] && AioComparingRunsUserCode(key->parttypid[i])))
			return false;
	}
	return true;
}

/*
 * The partition to which a row of the statement's table will go, if rows have
 * gone there before; otherwise NULL, also if the partition key is computed.
 */
ResultRelInfo *
AioFindOpenPartition(ModifyTableState *mtstate, TupleTableSlot *row)
{
	PartitionTupleRouting *routing = mtstate->mt_partition_tuple_routing;
	PartitionDispatch dispatch = routing->partition_dispatch_info[0];

	for (;;)
	{
		Datum		values[PARTITION_MAX_KEYS];
		bool		isnull[PARTITION_MAX_KEYS];
		int			i;

		if (dispatch->partdesc->nparts == 0 || !key_can_be_had(dispatch->key))
			return NULL;
		FormPartitionKeyDatum(dispatch, row, mtstate->ps.state, values, isnull);
		i = get_partition_for_tuple(dispatch, values, isnull);
		if (i < 0 || dispatch->indexes[i] < 0)
			return NULL;
		if (dispatch->partdesc->is_leaf[i])
			return routing->partitions[dispatch->indexes[i]];
		dispatch = routing->partition_dispatch_info[dispatch->indexes[i]];
		if (dispatch->tupslot != NULL)
			row = execute_attr_map_slot(dispatch->tupmap, row, dispatch->tupslot);
	}
}

/* The partitions that rows have gone to. */
ResultRelInfo **
AioOpenPartitions(const PartitionTupleRouting *routing, int *n)
{
	*n = routing->num_partitions;
	return routing->partitions;
}
