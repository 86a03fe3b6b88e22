static void pgaio_io_wait(PgAioHandle *ioh, uint64 ref_generation);

static void
upstream_pgaio_io_wait(PgAioHandle *ioh, uint64 ref_generation)
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
upstream_CopyFrom(CopyFromState cstate)
{
	return 0;
}

void
upstream_standard_ExecutorRun(QueryDesc *queryDesc, ScanDirection direction,
					 uint64 count)
{
}

void
ExecutorFinish(QueryDesc *queryDesc)
{
	standard_ExecutorFinish(queryDesc);
}

void
upstream_standard_ExecutorFinish(QueryDesc *queryDesc)
{
}

uint64
CopyFromFile(CopyFromState cstate)
{
	return CopyFrom(cstate);
}

void
upstream_process_pending_request(AsyncRequest *areq)
{
	fetch_more_data(areq);
}
