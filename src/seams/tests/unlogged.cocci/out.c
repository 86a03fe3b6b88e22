void
StartupXLOG(void)
{
	if (InRecovery)
	{
		ResetUnloggedRelations(UNLOGGED_RELATION_CLEANUP);
		redo();
	}
	if (InRecovery)
	{
		ResetUnloggedRelations(UNLOGGED_RELATION_CLEANUP);
		ResetUnloggedRelations(UNLOGGED_RELATION_INIT);
	}
}
