static void
LWLockQueueSelf(LWLock *lock, LWLockMode mode)
{
	int i;

	AioBeforeBlock();
	lock->queue = i;
	sleep(lock);
}

int
WaitEventSetWait(WaitEventSet *set, uint32 events)
{
	int n = 0;

	AioBeforeSleep();
	pgstat_report_wait_start(events);
	pgstat_report_wait_end();
	return n;
}

void
pgaio_wref_wait(PgAioWaitRef *ref)
{
	PgAioHandle *ioh;

	ioh = find(ref);
	AioBeforeBlock();
	pgaio_io_wait(ioh, ref->generation);
}

void
pgaio_enter_batchmode(void)
{
	AioBeforeBlock();
	if (in_batch)
		fail();
	in_batch = true;
}

bool
ConditionVariableTimedSleep(ConditionVariable *cv, long timeout)
{
	long cur_timeout = -1;

	AioBeforeConditionVariable();
	if (cv_sleep_target != cv)
		return false;
	return true;
}

static void
pgaio_io_reclaim(PgAioHandle *ioh)
{
	HOLD_INTERRUPTS();
	AioBeginReclaim();
	ioh->generation++;
	AioEndReclaim();
	RESUME_INTERRUPTS();
}
