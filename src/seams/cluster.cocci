// CLUSTER reads pages of the table ahead, if it reads the table in the order of the index.
//
// What: the next row is asked of us, who ask the index, and look at what comes after it.
// Without it: each row waits for its page.
// Could disappear: if CLUSTER scanned by a plan, or by a read stream.
//
// target: src/backend/access/heap/heapam_handler.c AioClusterNextSlot+1 index_getnext_slot-1
//   in heapam_relation_copy_for_cluster

@next@
@@
  heapam_relation_copy_for_cluster(...)
  {
  <+...
- index_getnext_slot
+ AioClusterNextSlot
  (...)
  ...+>
  }
