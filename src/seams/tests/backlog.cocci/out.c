uint64
CopyFrom(CopyFromState c)
{
	EState *estate = make();
	ErrorContextCallback callback;

	rows(estate);
	AioRowsInserted(estate);
	error_context_stack = callback.previous;
	ExecASInsertTriggers(estate, c->target, c->capture);
	return 0;
}

static TupleTableSlot *
ExecModifyTable(PlanState *node)
{
	EState *estate = node->state;

	while (more(node))
		insert(estate);
	AioRowsInserted(estate);
	fireASTriggers(node);
	return NULL;
}

void
standard_ExecutorRun(QueryDesc *queryDesc)
{
	EState *estate;

	check(queryDesc);
	estate = queryDesc->estate;
	AioBeforeQuery(estate->es_snapshot);
	ExecutePlan(queryDesc, estate);
}

void
other(QueryDesc *queryDesc)
{
	EState *estate;

	estate = queryDesc->estate;
	fireASTriggers(estate);
}

void
standard_ExecutorFinish(QueryDesc *queryDesc)
{
	EState *estate = queryDesc->state;

	ExecPostprocessPlan(estate);
	AioRowsInserted(estate);
	triggers(estate);
}

uint64
DoCopy(CopyFromState c)
{
	return CopyFrom(c);
}

static TupleTableSlot *
ExecInsert(ModifyTableContext *context, ResultRelInfo *resultRelInfo, TupleTableSlot *row, bool canSetTag)
{
	ModifyTableState *mtstate = context->mtstate;

	if (special)
		table_tuple_insert_speculative(rel, row, cid, 0, NULL, token);
	else
	{
		if (AioKeepBack(mtstate, resultRelInfo, row, canSetTag))
			return NULL;
		table_tuple_insert(rel, row, cid, 0, NULL);
	}
	return row;
}

static void
apply_dispatch(Message s)
{
	char action = next_byte(s);

	AioBeforeMessage(action);
	saved_command = apply_error_callback_arg.command;
	handle(action);
}

void
BeginInternalSubTransaction(const char *name)
{
	bool save = ExitOnAnyError;

	AioBeforeSubtransaction();
	ExitOnAnyError = true;
	push();
}

void
CheckTableNotInUse(Relation rel, const char *stmt)
{
	int expected_refcnt;

	AioBeforeDDL();
	expected_refcnt = rel->rd_isnailed ? 2 : 1;
	compare(rel, expected_refcnt);
}

void
InitResultRelInfo(ResultRelInfo *resultRelInfo, Relation resultRelationDesc)
{
	clear(resultRelInfo);
	AioBeforeRow(resultRelationDesc);
	resultRelInfo->ri_RelationDesc = resultRelationDesc;
	resultRelInfo->ri_NumIndices = 0;
}

/* not these */
void
other_subtransaction(Relation rel)
{
	ExitOnAnyError = true;
	expected_refcnt = rel->rd_isnailed ? 2 : 1;
	saved_command = apply_error_callback_arg.command;
}

static HeapTuple
ExecCallTriggerFunc(TriggerData *trigdata, int tgindx, FmgrInfo *finfo)
{
	AioBeforeTrigger(trigdata);
	finfo += tgindx;
	return call(finfo, trigdata);
}
