struct BulkWriteState;

static void smgr_bulk_flush(BulkWriteState *bulkstate);

#include "../../aio/tails/bulk_write.c"

static void
smgr_bulk_flush(BulkWriteState *bulkstate)
{
}
