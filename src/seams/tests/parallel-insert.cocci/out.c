ParallelExecutorInfo *
ExecInitParallelPlan(PlanState *planstate, EState *estate)
{
	estimate();
	AioInitializeParallelDSM(pcxt, planstate);
	return pei;
}

void
ParallelQueryMain(dsm_segment *seg, shm_toc *toc)
{
	DestReceiver *receiver;

	receiver = ExecParallelGetReceiver(seg, toc);
	receiver = AioParallelReceiver(toc, receiver);
}

void
ExecParallelFinish(ParallelExecutorInfo *pei)
{
	WaitForParallelWorkersToFinish(pei->pcxt);
	AioWorkersFinished(pei->pcxt);
}

static HeapTuple
heap_prepare_insert(Relation relation, HeapTuple tup)
{
	if (AioForbidsInsert())
		error();
	return tup;
}

void
heap_delete(Relation relation)
{
	if (IsParallelWorker())
		error();
}

Datum
toast_save_datum(Relation rel)
{
	Relation toastrel;
	CommandId mycid = AioInsertCommandId(true);
	int32 chunk_seq = 0;

	heap_insert(toastrel, mycid);
	return result;
}
