List *
AioExecInsertIndexTuples(Info *info, Slot *slot, AioInsertBatch *batch)
{
	for (int i = 0; i < n; i++)
		satisfied = AioIndexInsert(batch, i, index[i], values, slot);
	return NIL;
}

static void
insert_row(Info *info, Slot *slot)
{
	if (info->indexes)
		again = AioInsertIndexTuples(info, slot);
}

void
ExecSimpleRelationInsert(Info *info, Slot *slot)
{
	again = AioApplyIndexTuples(info, slot);
}

static void
RelationInvalidateRelation(Relation relation)
{
	close(relation);
	if (relation->rd_amcache)
		AioRetireAmCache(relation);
	pfree(relation->rd_other);
}

static void
other(Relation relation)
{
	pfree(relation->rd_amcache);
}
