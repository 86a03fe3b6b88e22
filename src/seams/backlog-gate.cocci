// Whoever looks into an index finds the entries that this transaction has collected for it.
//
// What: a search in an index tells us before it begins, and a relation that has been opened, as its opener may read its pages
//   without a search.  Those who open an index only to insert, to describe it or to search are named here, and call us.
//   Indexes that are going to be closed are told of, too.
// Without it: a subscription's worker would not find rows that its transaction has inserted, and lose their updates;
//   amcheck, called by a function of an inserting statement, would report a corrupt index.
// Could disappear: with a table access method interface for bulk inserts into indexes.
// Why so many: those who open an index without looking into it are in six files.
//
// target: src/backend/access/index/indexam.c AioBeforeSearch+1
//   in index_rescan
// target: src/backend/access/common/relation.c AioRelationOpened+2
//   in relation_open try_relation_open
// target: src/backend/executor/execIndexing.c AioBeforeClosingIndices+1 AioOpenIndex+1 index_open-1
//   in ExecCloseIndices ExecOpenIndices
// target: src/backend/executor/nodeIndexscan.c AioOpenIndex+1 index_open-1
//   in ExecInitIndexScan
// target: src/backend/executor/nodeIndexonlyscan.c AioOpenIndex+1 index_open-1
//   in ExecInitIndexOnlyScan
// target: src/backend/executor/nodeBitmapIndexscan.c AioOpenIndex+1 index_open-1
//   in ExecInitBitmapIndexScan
// target: src/backend/optimizer/util/plancat.c AioOpenIndex+2 index_open-2
//   in get_relation_info infer_arbiter_indexes
// target: src/backend/utils/cache/relcache.c AioOpenIndex+1 index_open-1
//   in RelationGetIndexAttrBitmap

@search@
symbol scan, kill_prior_tuple, false;
@@
  index_rescan(...)
  {
  <+...
+ AioBeforeSearch(scan);
  scan->kill_prior_tuple = false;
  ...+>
  }

@opened@
symbol r;
identifier f = {relation_open, try_relation_open};
@@
  f(...)
  {
  <+...
  pgstat_init_relation(r);
+ AioRelationOpened(r);
  ...+>
  }

@not_to_look@
identifier f = {ExecOpenIndices, ExecInitIndexScan, ExecInitIndexOnlyScan, ExecInitBitmapIndexScan, get_relation_info, infer_arbiter_indexes, RelationGetIndexAttrBitmap};
@@
  f(...)
  {
  <+...
- index_open
+ AioOpenIndex
  (...)
  ...+>
  }

@close@
symbol numIndices, resultRelInfo, ri_NumIndices;
@@
  ExecCloseIndices(...)
  {
  <+...
+ AioBeforeClosingIndices(resultRelInfo);
  numIndices = resultRelInfo->ri_NumIndices;
  ...+>
  }
