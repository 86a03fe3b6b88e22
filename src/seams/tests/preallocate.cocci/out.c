static void
ExtendBufferedRelShared(Relation rel)
{
	if (!(flags & EB_SKIP_EXTENSION_LOCK))
		AioLockForExtension(bmr.rel, fork, extend_by);
	if (extend_by == 0)
	{
		AioBeforeExtensionUnlock();
		UnlockRelationForExtension(bmr.rel, ExclusiveLock);
		return;
	}
	smgrzeroextend(bmr.smgr, fork, first_block, extend_by, false);
	AioBeforeExtensionUnlock();
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
		ret = AioFallocate(reln, forknum, curblocknum, v->mdfd_vfd,
				   seekpos, amount,
				   WAIT_EVENT_DATA_FILE_EXTEND);
	else
		ret = AioFileZero(reln, forknum, curblocknum, v->mdfd_vfd,
				  seekpos, amount,
				  WAIT_EVENT_DATA_FILE_EXTEND);
}

void
mdextend(SMgrRelation reln, ForkNumber forknum, BlockNumber blocknum)
{
	MdfdVec *v;

	v = _mdfd_getseg(reln, forknum, blocknum, skipFsync, EXTENSION_CREATE);
	if ((nbytes = AioFileExtend(reln, forknum, v->mdfd_vfd, buffer, BLCKSZ, seekpos, WAIT_EVENT_DATA_FILE_EXTEND)) != BLCKSZ)
		fail();
}

void
ForgetDatabaseSyncRequests(Oid dbid)
{
	FileTag tag;

	rlocator.dbOid = dbid;
	AioSettleTrimsOf(dbid);
	RegisterSyncRequest(&tag, SYNC_FILTER_REQUEST, true);
}

void
mdtruncate(SMgrRelation reln, ForkNumber forknum)
{
	int curopensegs;

	if (nblocks > curnblk)
		return;
	AioBeginCut(&reln->smgr_rlocator.locator, forknum);
	curopensegs = reln->md_num_open_segs[forknum];
	while (curopensegs > 0)
	{
		if (cut(curopensegs))
			break;
		curopensegs--;
	}
	AioEndFileChange();
}

void
mdunlink(RelFileLocatorBackend rlocator, ForkNumber forknum, bool isRedo)
{
	AioBeginCut(&rlocator.locator, forknum);
	if (forknum == InvalidForkNumber)
	{
		for (forknum = 0; forknum <= MAX_FORKNUM; forknum++)
			mdunlinkfork(rlocator, forknum, isRedo);
	}
	else
		mdunlinkfork(rlocator, forknum, isRedo);
	AioEndFileChange();
}

static void
movedb(const char *dbname, const char *tblspcname)
{
	AioSettleTrimsOf(db_id);
	copydir(src_dbpath, dst_dbpath, false);
}

void
XLogDropDatabase(Oid dbid)
{
	AioGiveBackInRecovery(true);
	AioSettleTrimsOf(dbid);
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
		AioWhileIdle();
	}
}

static bool
vacuum_rel(Oid relid)
{
	if (full)
		cluster_rel(rel);
	else
	{
		table_relation_vacuum(rel, params, bstrategy);
		AioTableVacuumed(rel);
	}
}

void
ShutdownXLOG(int code, Datum arg)
{
	WalSndInitStopping();
	WalSndWaitStopping();
	AioTrimWanted();
	if (recovering)
		CreateRestartPoint(flags);
}
