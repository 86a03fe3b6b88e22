// Recovery may find files of an unlogged relation whose creation it has replayed.
//
// What: at the end of recovery, files of unlogged relations are removed before empty ones are made, as they are when it begins.
// Without it: a base backup that is taken while an index of an unlogged relation is built has the index, but what tells that it
//   is unlogged may come with WAL; a crash while its creation is undone leaves the same.  The end of recovery finds a file in its
//   way, and the server does not start.
// Could disappear: when upstream's recovery does so.
//
// target: src/backend/access/transam/xlog.c ResetUnloggedRelations+1 UNLOGGED_RELATION_CLEANUP+1
//   in StartupXLOG

@init@
symbol UNLOGGED_RELATION_INIT, UNLOGGED_RELATION_CLEANUP;
@@
+ ResetUnloggedRelations(UNLOGGED_RELATION_CLEANUP);
  ResetUnloggedRelations(UNLOGGED_RELATION_INIT);
