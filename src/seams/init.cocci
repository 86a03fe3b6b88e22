// Our configuration parameters exist before anything is configured.
//
// What: a call where the server begins to preload libraries, the one moment at which every kind of parameter can be
//   defined and which every server passes exactly once.
// Without it: no parameter of ours exists.
// Could disappear: if our parameters stood in upstream's table.
//
// target: src/backend/utils/init/miscinit.c AioInitialize+1
//   in process_shared_preload_libraries

@@
symbol process_shared_preload_libraries_in_progress, true;
@@
  process_shared_preload_libraries_in_progress = true;
+ AioInitialize();
