List *
ExecInsertIndexTuples(Info *info, Slot *slot)
{
	for (int i = 0; i < n; i++)
		satisfied = index_insert(index[i], values, slot);
	return NIL;
}

static void
insert_row(Info *info, Slot *slot)
{
	if (info->indexes)
		again = ExecInsertIndexTuples(info, slot);
}

void
ExecSimpleRelationInsert(Info *info, Slot *slot)
{
	again = ExecInsertIndexTuples(info, slot);
}

static void
RelationInvalidateRelation(Relation relation)
{
	close(relation);
	if (relation->rd_amcache)
		pfree(relation->rd_amcache);
	pfree(relation->rd_other);
}

static void
other(Relation relation)
{
	pfree(relation->rd_amcache);
}
