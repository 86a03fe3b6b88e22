static void pgaio_io_wait(PgAioHandle *ioh, uint64 ref_generation);

static void
pgaio_io_wait(PgAioHandle *ioh, uint64 ref_generation)
{
	look();
}

void
pgaio_wref_wait(PgAioWaitRef *iow)
{
	pgaio_io_wait(ioh, ref_generation);
}

/*
 * Copy FROM.
 */
uint64
CopyFrom(CopyFromState cstate)
{
	return 0;
}

void
standard_ExecutorRun(QueryDesc *queryDesc, ScanDirection direction,
					 uint64 count)
{
}

void
ExecutorFinish(QueryDesc *queryDesc)
{
	standard_ExecutorFinish(queryDesc);
}

void
standard_ExecutorFinish(QueryDesc *queryDesc)
{
}

uint64
CopyFromFile(CopyFromState cstate)
{
	return CopyFrom(cstate);
}

void
process_pending_request(AsyncRequest *areq)
{
	fetch_more_data(areq);
}
