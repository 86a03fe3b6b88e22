struct BulkWriteState;

static void smgr_bulk_flush(BulkWriteState *bulkstate);

static void
smgr_bulk_flush(BulkWriteState *bulkstate)
{
}
