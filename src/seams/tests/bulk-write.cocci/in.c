static void
smgr_bulk_flush(BulkWriteState *bulkstate)
{
	if (bulkstate->use_wal)
		log(bulkstate);
	write(bulkstate);
}

void
smgr_bulk_finish(BulkWriteState *bulkstate)
{
	smgr_bulk_flush(bulkstate);
	sync(bulkstate);
}

void
smgr_bulk_write(BulkWriteState *bulkstate)
{
	smgr_bulk_flush(bulkstate);
}
