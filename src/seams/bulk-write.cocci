// A new relation is written without waiting for each page.
//
// What: smgr_bulk_flush() offers us the pages that it has logged; smgr_bulk_finish() waits for them before it has them synced.
// Without it: building an index extends its file page by page, and waits for each.
// Could disappear: when upstream's bulk writes are asynchronous.
//
// target: src/backend/storage/smgr/bulk_write.c AioBulkFlush+1 AioBulkFinish+1 bulkstate+2 if+1 return+1
//   in smgr_bulk_finish smgr_bulk_flush

@flush@
symbol bulkstate, use_wal;
statement S;
@@
  smgr_bulk_flush(...)
  {
  ...
  if (bulkstate->use_wal) S
+ if (AioBulkFlush(bulkstate))
+ return;
  ...
  }

@finish@
symbol bulkstate;
@@
  smgr_bulk_finish(...)
  {
  <+...
  smgr_bulk_flush(bulkstate);
+ AioBulkFinish(bulkstate);
  ...+>
  }
