static void
heapam_relation_copy_for_cluster(Relation OldHeap, Relation OldIndex)
{
	for (;;)
	{
		if (indexScan != NULL)
		{
			if (!AioClusterNextSlot(indexScan, ForwardScanDirection, slot))
				break;
		}
		else if (!table_scan_getnextslot(tableScan, ForwardScanDirection, slot))
			break;
	}
}
