void
run_apply_worker(void)
{
	replorigin_session_setup(originid, 0);
	position = replorigin_session_get_progress(true);
	CommitTransactionCommand();
}

char *
LogicalRepSyncTableStart(XLogRecPtr *position)
{
	*position = replorigin_session_get_progress(true);
	return NULL;
}

void
other(bool flush)
{
	remote_lsn = replorigin_session_get_progress(flush);
}
