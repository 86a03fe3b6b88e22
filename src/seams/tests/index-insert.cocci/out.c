List *
ExecInsertIndexTuples(Info *info, Slot *slot)
{
	for (int i = 0; i < n; i++)
		satisfied = AioIndexInsert(index[i], values, slot);
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
