XLogRecPtr
GetFlushRecPtr(TimeLineID *insertTLI)
{
	Assert(XLogCtl->SharedRecoveryState == RECOVERY_STATE_DONE);

	RefreshXLogWriteResult(LogwrtResult);
	return LogwrtResult.Flush;
}

XLogRecPtr
GetXLogWriteRecPtr(void)
{
	RefreshXLogWriteResult(LogwrtResult);

	return LogwrtResult.Write;
}

bool
XLogNeedsFlush(XLogRecPtr record)
{
	RefreshXLogWriteResult(LogwrtResult);
	return record > LogwrtResult.Flush;
}
