// A subscription's worker that starts again has on disk what it says it has.
//
// What: the position where it begins is that of the last transaction that was applied, and it has that flushed.
// Without it: what the worker before has committed asynchronously may not be on disk, and this one, which knows of nothing
//   that is pending, confirms it to the publisher.  If the subscriber crashes now, these transactions are lost.
// Could disappear: when upstream's workers do so.
//
// target: src/backend/replication/logical/worker.c false-1 true+1
//   in run_apply_worker
// target: src/backend/replication/logical/tablesync.c false-1 true+1
//   in LogicalRepSyncTableStart

@flush@
@@
- replorigin_session_get_progress(false)
+ replorigin_session_get_progress(true)
