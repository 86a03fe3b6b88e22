static void
PostmasterStateMachine(void)
{
	if (pmState == PM_WAIT_DEAD_END)
	{
		if (CountChildren(btmask_all_except(B_LOGGER)) == 0)
		{
			UpdatePMState(PM_NO_CHILDREN);
		}
	}
}

static void
other(void)
{
	if (CountChildren(btmask_all_except(B_LOGGER)) == 0)
		DetermineSleepTime(),
		other();
}

static int
ServerLoop(void)
{
	for (;;)
	{
		nevents = WaitEventSetWait(pm_wait_set,
								   DetermineSleepTime(),
								   events);
	}
}

void
AioShmemInit(void)
{
	bool		found;

	pgaio_ctl = (PgAioCtl *)
		ShmemInitStruct("AioCtl", AioCtlShmemSize(), &found);
}
