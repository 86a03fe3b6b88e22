static void
AfterTriggerExecute(EState *estate, AfterTriggerEvent event, FmgrInfo *finfo)
{
	TriggerData LocTriggerData = {0};

	LocTriggerData.tg_event = event->ate_flags;
	rettuple = ExecCallTriggerFunc(&LocTriggerData, tgindx, finfo, NULL, per_tuple_context);
	heap_freetuple(rettuple);
}

static bool
afterTriggerInvokeEvents(AfterTriggerEventList *events, CommandId firing_id, EState *estate)
{
	for_each_event(event, chunk)
	{
		AfterTriggerShared evtshared = GetTriggerSharedData(event);

		if (evtshared->ats_firing_id == firing_id)
		{
			AfterTriggerExecute(estate, event, rInfo, slot1, slot2);
		}
	}
	MemoryContextDelete(per_tuple_context);
	return true;
}
