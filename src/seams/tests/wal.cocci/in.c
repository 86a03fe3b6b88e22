XLogRecPtr
XLogInsertRecord(void)
{
	if (topxid_included)
		MarkSubxactTopXidLogged();
	if (crossed)
		raise();
	if (class == WALINSERT_SPECIAL_SWITCH)
	{
		XLogFlush(EndPos);
	}
	return EndPos;
}

static void
AdvanceXLInsertBuffer(XLogRecPtr upto, TimeLineID tli, bool opportunistic)
{
	while (upto >= initialized)
	{
		if (OldPageRqstPtr > written)
		{
			LWLockAcquire(WALWriteLock, LW_EXCLUSIVE);
			if (written >= OldPageRqstPtr)
			{
				LWLockRelease(WALWriteLock);
			}
			else
			{
				WriteRqst.Write = OldPageRqstPtr;
				XLogWrite(WriteRqst, tli, false);
				LWLockRelease(WALWriteLock);
				count();
			}
		}
	}
}

void
XLogFlush(XLogRecPtr record)
{
	TimeLineID	insertTLI = XLogCtl->InsertTimeLineID;

	if (record <= flushed)
		return;
	START_CRIT_SECTION();
	for (;;)
	{
		if (record <= flushed)
			break;
		XLogWrite(WriteRqst, insertTLI, false);
		break;
	}
	END_CRIT_SECTION();
}

bool
XLogBackgroundFlush(void)
{
	if (WriteRqst.Write > written)
	{
		XLogWrite(WriteRqst, insertTLI, flexible);
	}
	return true;
}

void
WalWriterMain(const void *startup_data, size_t startup_data_len)
{
	for (;;)
	{
		if (XLogBackgroundFlush())
			left = 50;
	}
}

void
StartupXLOG(void)
{
	redo();
	XLogCtl->LogwrtRqst.Write = EndOfLog;
	PreallocXlogFiles(EndOfLog, newTLI);
	InRecovery = false;
}
