static void
CopyMultiInsertBufferFlush(Info *info, Buffer *buffer)
{
	List **rechecks = NULL;
	State *cstate = miinfo->cstate;

	table_multi_insert(rri->ri_RelationDesc, slots, n, mycid);
	MemoryContextSwitchTo(old);
	rechecks = AioInsertIndexBatch(rri, slots, n, mycid, estate, cstate,
				       buffer->linenos);
	for (i = 0; i < n; i++)
	{
		if (rri->ri_NumIndices > 0)
		{
			List	   *again;

			again = rechecks != NULL ? rechecks[i] : AioInsertIndexTuples(rri, slots[i], estate);
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
			again = AioInsertIndexTuples(rri, slot, estate);
	}
}
