# Our tail of bulk_write.c: write a new relation without waiting.
#
# What: an #include before its first function that calls us, because it needs the types that are private to the file.
# Without it: the pages that are pending could not be looked at.
# Could disappear: when upstream's bulk writes are asynchronous.
#
# target: src/backend/storage/smgr/bulk_write.c tails+1

/^static void smgr_bulk_flush\(BulkWriteState \*bulkstate\);$/a\
\
#include "../../aio/tails/bulk_write.c"
