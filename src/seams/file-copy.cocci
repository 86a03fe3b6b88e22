// Files that a backend copies do not fill the page cache.
//
// What: we are told which bytes of a copy have been written, and have the kernel write them.
// Without it: the copy of a database evicts what others have cached.
// Could disappear: when upstream copies files past the page cache.
//
// target: src/backend/storage/file/copydir.c pg_flush_data-2 AioFlushCopy+2
//   in copy_file

@flush@
@@
  copy_file(...)
  {
  <...
- pg_flush_data
+ AioFlushCopy
  (...)
  ...>
  }
