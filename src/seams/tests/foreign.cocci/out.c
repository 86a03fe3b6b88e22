static void
ExecBatchInsert(ModifyTableState *mtstate, ResultRelInfo *rri, TupleTableSlot **slots,
				TupleTableSlot **planSlots, int numSlots, EState *estate, bool canSetTag)
{
	rslots = AioForeignBatchInsert(canSetTag ? &estate->es_processed : NULL, NULL,
								   estate, rri, slots, planSlots, &numInserted);
	if (canSetTag && numInserted > 0)
		estate->es_processed += numInserted;
}

static void
CopyMultiInsertBufferFlush(CopyMultiInsertInfo *miinfo, int64 *processed)
{
	while (sent < nused)
	{
		rslots = AioForeignBatchInsert((uint64 *) processed, &cstate->relname_only,
									   estate, rri, &slots[sent], NULL, &inserted);
		*processed += inserted;
	}
}
