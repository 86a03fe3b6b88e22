static void
CopyMultiInsertBufferFlush(Info *info, Buffer *buffer)
{
	State *cstate = miinfo->cstate;

	table_multi_insert(rri->ri_RelationDesc, slots, n, mycid);
	MemoryContextSwitchTo(old);
	for (i = 0; i < n; i++)
	{
		if (rri->ri_NumIndices > 0)
		{
			List	   *again;

			again = ExecInsertIndexTuples(rri, slots[i], estate);
			list_free(again);
		}
	}
}

void
CopyFrom(State *cstate)
{
	while (more())
	{
		if (single)
			again = ExecInsertIndexTuples(rri, slot, estate);
	}
}
