uint64
DoCopyTo(CopyToState cstate)
{
	if (cstate->rel)
	{
		while (AioCopyNextSlot(scandesc, ForwardScanDirection, slot, cstate->attnumlist))
		{
			CopyOneRowTo(cstate, slot);
		}
	}
}
