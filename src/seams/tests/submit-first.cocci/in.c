static void
LWLockQueueSelf(LWLock *lock, LWLockMode mode)
{
	int i;

	lock->queue = i;
	sleep(lock);
}

int
WaitEventSetWait(WaitEventSet *set, uint32 events)
{
	int n = 0;

	pgstat_report_wait_start(events);
	pgstat_report_wait_end();
	return n;
}

void
pgaio_wref_wait(PgAioWaitRef *ref)
{
	PgAioHandle *ioh;

	ioh = find(ref);
	pgaio_io_wait(ioh, ref->generation);
}

void
pgaio_enter_batchmode(void)
{
	if (in_batch)
		fail();
	in_batch = true;
}

bool
ConditionVariableTimedSleep(ConditionVariable *cv, long timeout)
{
	long cur_timeout = -1;

	if (cv_sleep_target != cv)
		return false;
	return true;
}

static void
pgaio_io_reclaim(PgAioHandle *ioh)
{
	HOLD_INTERRUPTS();
	ioh->generation++;
	RESUME_INTERRUPTS();
}
