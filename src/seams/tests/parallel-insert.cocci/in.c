ParallelExecutorInfo *
ExecInitParallelPlan(PlanState *planstate, EState *estate)
{
	estimate();
	InitializeParallelDSM(pcxt);
	return pei;
}

void
ParallelQueryMain(dsm_segment *seg, shm_toc *toc)
{
	DestReceiver *receiver;

	receiver = ExecParallelGetReceiver(seg, toc);
}

void
ExecParallelFinish(ParallelExecutorInfo *pei)
{
	WaitForParallelWorkersToFinish(pei->pcxt);
}

static HeapTuple
heap_prepare_insert(Relation relation, HeapTuple tup)
{
	if (IsParallelWorker())
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
	CommandId mycid = GetCurrentCommandId(true);
	int32 chunk_seq = 0;

	heap_insert(toastrel, mycid);
	return result;
}
