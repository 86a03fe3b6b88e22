static TupleTableSlot *
ExecAppend(PlanState *pstate)
{
	if (!node->as_begun)
	{
		if (!node->choose_next_subplan(node))
			return NULL;
		node->as_begun = true;
		AioAppendBegun(node);
	}
	for (;;)
	{
		subnode = node->appendplans[node->as_whichplan];
		result = ExecProcNode(subnode);
		if (AioAppendShouldPoll(node))
			ExecAppendAsyncEventWait(node);
		if (!TupIsNull(result))
			return result;
		if (node->as_nasyncremain > 0)
			ExecAppendAsyncEventWait(node);
	}
}

static void
ExecAppendAsyncEventWait(AppendState *node)
{
	int			nevents = node->as_nasyncplans + 2+ AioForeignStreams();
	int			noccurred;

	node->as_eventset = CreateWaitEventSet(CurrentResourceOwner, nevents);
	noccurred = AioWaitForAppend(node->as_eventset, timeout, occurred_event, nevents, WAIT_EVENT_APPEND_READY);
}

static TupleTableSlot *
ExecMergeAppend(PlanState *pstate)
{
	if (!node->ms_initialized)
	{
		AioMergeAppendBegins(node);
		i = -1;
		while ((i = bms_next_member(node->ms_valid_subplans, i)) >= 0)
			node->ms_slots[i] = ExecProcNode(node->mergeplans[i]);
		node->ms_initialized = true;
	}
	return result;
}
