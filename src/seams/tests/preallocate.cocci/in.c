static void
ExtendBufferedRelShared(Relation rel)
{
	if (!(flags & EB_SKIP_EXTENSION_LOCK))
		LockRelationForExtension(bmr.rel, ExclusiveLock);
	if (extend_by == 0)
	{
		UnlockRelationForExtension(bmr.rel, ExclusiveLock);
		return;
	}
	smgrzeroextend(bmr.smgr, fork, first_block, extend_by, false);
	UnlockRelationForExtension(bmr.rel, ExclusiveLock);
}

static void
ExtendBufferedRelTo(Relation rel)
{
	LockRelationForExtension(rel, ExclusiveLock);
}

void
mdzeroextend(SMgrRelation reln, ForkNumber forknum, BlockNumber blocknum, int nblocks, bool skipFsync)
{
	int ret;

	if (nblocks > 8)
		ret = FileFallocate(v->mdfd_vfd, seekpos, amount, WAIT_EVENT_DATA_FILE_EXTEND);
	else
		ret = FileZero(v->mdfd_vfd, seekpos, amount, WAIT_EVENT_DATA_FILE_EXTEND);
}

void
mdextend(SMgrRelation reln, ForkNumber forknum, BlockNumber blocknum)
{
	MdfdVec *v;

	v = _mdfd_getseg(reln, forknum, blocknum, skipFsync, EXTENSION_CREATE);
	if ((nbytes = FileWrite(v->mdfd_vfd, buffer, BLCKSZ, seekpos, WAIT_EVENT_DATA_FILE_EXTEND)) != BLCKSZ)
		fail();
}

void
ForgetDatabaseSyncRequests(Oid dbid)
{
	FileTag tag;

	rlocator.dbOid = dbid;
	RegisterSyncRequest(&tag, SYNC_FILTER_REQUEST, true);
}

void
mdtruncate(SMgrRelation reln, ForkNumber forknum)
{
	int curopensegs;

	if (nblocks > curnblk)
		return;
	curopensegs = reln->md_num_open_segs[forknum];
	while (curopensegs > 0)
	{
		if (cut(curopensegs))
			break;
		curopensegs--;
	}
}

void
mdunlink(RelFileLocatorBackend rlocator, ForkNumber forknum, bool isRedo)
{
	if (forknum == InvalidForkNumber)
	{
		for (forknum = 0; forknum <= MAX_FORKNUM; forknum++)
			mdunlinkfork(rlocator, forknum, isRedo);
	}
	else
		mdunlinkfork(rlocator, forknum, isRedo);
}

static void
movedb(const char *dbname, const char *tblspcname)
{
	copydir(src_dbpath, dst_dbpath, false);
}

void
XLogDropDatabase(Oid dbid)
{
	smgrdestroyall();

	forget_invalid_pages_db(dbid);
}

void
ProcessClientReadInterrupt(bool blocked)
{
	if (DoingCommandRead)
	{
		if (notifyInterruptPending)
			ProcessNotifyInterrupt(true);
	}
}

static bool
vacuum_rel(Oid relid)
{
	if (full)
		cluster_rel(rel);
	else
		table_relation_vacuum(rel, params, bstrategy);
}

void
ShutdownXLOG(int code, Datum arg)
{
	WalSndInitStopping();
	WalSndWaitStopping();
	if (recovering)
		CreateRestartPoint(flags);
}
