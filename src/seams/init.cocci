// Our configuration parameters exist before anything is configured.
//
// What: a call where the server begins to preload libraries, the one moment at which every kind of parameter can be
//   defined and which every server passes exactly once; and one where it has, when the numbers that they have chosen for
//   their statistics are known, and they have taken the hooks that they want.
// Without it: no parameter of ours exists, and no statistics.
// Could disappear: if our parameters and statistics stood in upstream's tables.
//
// target: src/backend/utils/init/miscinit.c AioInitialize+1 AioInitializeLast+1
//   in process_shared_preload_libraries

@@
symbol process_shared_preload_libraries_in_progress, true, false;
@@
  process_shared_preload_libraries_in_progress = true;
+ AioInitialize();
  ...
+ AioInitializeLast();
  process_shared_preload_libraries_in_progress = false;
