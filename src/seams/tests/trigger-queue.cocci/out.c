static bool
afterTriggerInvokeEvents(AfterTriggerEventList *events, CommandId firing_id, EState *estate)
{
	for_each_event(event, chunk)
	{
		AfterTriggerShared evtshared = GetTriggerSharedData(event);

		if (evtshared->ats_firing_id == firing_id)
		{
			AioTriggerEventDue(estate, chunk, event, firing_id, evtshared->ats_tgoid);
			AfterTriggerExecute(estate, event, rInfo, slot1, slot2);
		}
	}
	AioTriggerEventsFired(estate);
	MemoryContextDelete(per_tuple_context);
	return true;
}
