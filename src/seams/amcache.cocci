// rd_amcache outlives invalidation while a task may be looking at it.
//
// What: invalidating a relation cache entry hands the access method's cache to us instead of freeing it.
// Without it: an index insert suspended in a read could come back to freed memory, if a sibling processed
//   invalidations meanwhile.
// Could disappear: if access methods took a reference to what they look at.
//
// target: src/backend/utils/cache/relcache.c AioRetireAmCache+1 pfree-1 rd_amcache-1
//   in RelationInvalidateRelation

@@
symbol relation;
@@
  RelationInvalidateRelation(...)
  {
  <+...
- pfree(relation->rd_amcache)
+ AioRetireAmCache(relation)
  ...+>
  }
