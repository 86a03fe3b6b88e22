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

	AioBeforeBlock();
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
