void
PrepareForIncrementalBackup(IncrementalBackupInfo *ib, BackupState *backup_state)
{
	List	   *required_wslist = NIL;
	ListCell   *lc;

	AioSortWalSummaries(required_wslist);
	ib->brtab = CreateEmptyBlockRefTable();
	foreach(lc, required_wslist)
		read(lfirst(lc));
}

void
other(IncrementalBackupInfo *ib)
{
	ib->brtab = CreateEmptyBlockRefTable();
}
