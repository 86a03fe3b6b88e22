static void
ExecBatchInsert(ModifyTableState *mtstate, ResultRelInfo *rri, TupleTableSlot **slots,
				TupleTableSlot **planSlots, int numSlots, EState *estate, bool canSetTag)
{
	rslots = AioForeignBatchInsert(estate, rri, slots, planSlots,
				       &numInserted,
				       canSetTag ? &estate->es_processed : NULL,
				       NULL);
	if (canSetTag && numInserted > 0)
		estate->es_processed += numInserted;
}

static void
CopyMultiInsertBufferFlush(CopyMultiInsertInfo *miinfo, int64 *processed)
{
	while (sent < nused)
	{
		rslots = AioForeignBatchInsert(estate, rri, &slots[sent],
					       NULL, &inserted,
					       (uint64 *)processed,
					       &cstate->relname_only);
		*processed += inserted;
	}
}
