static void
validateForeignKeyConstraint(char *conname, Relation rel, Oid constraintOid)
{
	TableScanDesc scan;
	Snapshot	snapshot;
	MemoryContext oldcxt;

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = table_beginscan(rel, snapshot, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		check(slot);
	table_endscan(scan);
}

static void
other(Relation rel)
{
	scan = table_beginscan(rel, snapshot, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
		check(slot);
	table_endscan(scan);
}
