uint64
DoCopyTo(CopyToState cstate)
{
	if (cstate->rel)
	{
		while (table_scan_getnextslot(scandesc, ForwardScanDirection, slot))
		{
			CopyOneRowTo(cstate, slot);
		}
	}
}
