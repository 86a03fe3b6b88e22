// The chunks of a value that is stored out of line are read ahead.
//
// What: each chunk is asked of us, who ask the index, and look at what comes after it.
// Without it: each page of a large value is waited for.
// Could disappear: if values were fetched by a read stream.
//
// target: src/backend/access/heap/heaptoast.c AioNextChunk+1 systable_getnext_ordered-1
//   in heap_fetch_toast_slice

@next@
@@
  heap_fetch_toast_slice(...)
  {
  <+...
- systable_getnext_ordered
+ AioNextChunk
  (...)
  ...+>
  }
