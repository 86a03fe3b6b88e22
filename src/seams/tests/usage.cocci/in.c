void
pgaio_io_process_completion(PgAioHandle *ioh, int result)
{
	ioh->result = result;
	pgaio_io_call_complete_shared(ioh);
	if (ioh->owner_procno == MyProcNumber)
		pgaio_io_reclaim(ioh);
}

static void
pgaio_io_reclaim(PgAioHandle *ioh)
{
	HOLD_INTERRUPTS();
	ioh->generation++;
	RESUME_INTERRUPTS();
}

void
pgaio_submit_staged(void)
{
	int did_submit;

	if (pgaio_my_backend->num_staged_ios == 0)
		return;
	START_CRIT_SECTION();
	did_submit = pgaio_method_ops->submit(pgaio_my_backend->num_staged_ios,
		pgaio_my_backend->staged_ios);
	END_CRIT_SECTION();
}

void
pgaio_io_perform_synchronously(PgAioHandle *ioh)
{
	ssize_t result = 0;

	START_CRIT_SECTION();
	result = work();
	END_CRIT_SECTION();
}

void
pgstat_flush_io(bool nowait)
{
	(void) pgstat_io_flush_cb(nowait);
}

Instrumentation *
InstrAlloc(int n, int instrument_options, bool async_mode)
{
	Instrumentation *instr;

	instr = make(n);
	if (instrument_options & 1)
	{
		int i;

		for (i = 0; i < n; i++)
			instr[i].async_mode = async_mode;
	}
	return instr;
}

void
InstrStartNode(Instrumentation *instr)
{
	if (instr->need_timer)
		start();
}

void
InstrStopNode(Instrumentation *instr, double nTuples)
{
	double save_tuplecount = instr->tuplecount;
	instr_time endtime;

	instr->tuplecount += nTuples;
	if (instr->need_timer)
		stop();
}

void
ExecParallelCleanup(ParallelExecutorInfo *pei)
{
	if (pei->instrumentation)
		ExecParallelRetrieveInstrumentation(pei->planstate, pei->instrumentation);
	finish(pei);
}

void
ParallelQueryMain(dsm_segment *seg, shm_toc *toc)
{
	start(toc);
	InstrStartParallelQuery();
	if (instrumentation != NULL)
		ExecParallelReportInstrumentation(queryDesc->planstate, instrumentation);
	end(toc);
}
