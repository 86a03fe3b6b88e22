// Children of Append and MergeAppend that are foreign scans, or begin with one, are asked before their turn comes.
//
// What: both tell us when they begin to execute their children; Append looks for answers of servers while a child
//   gives rows, and waits for foreign inserts, too.
// Without it: servers work one after the other for MergeAppend, and for what sorts or aggregates their rows.
// Could disappear: if upstream's asynchronous execution knew other nodes than Append and ForeignScan.
//
// target: src/backend/executor/nodeAppend.c AioAppendBegun+1 AioAppendShouldPoll+1 ExecAppendAsyncEventWait+1 node+3 AioForeignStreams+1 AioWaitForAppend+1 WaitEventSetWait-1
//   in ExecAppend ExecAppendAsyncEventWait
// target: src/backend/executor/nodeMergeAppend.c AioMergeAppendBegins+1 node+1
//   in ExecMergeAppend

@begun@
symbol node;
@@
  ExecAppend(...)
  {
  <+...
  node->as_begun = true;
+ AioAppendBegun(node);
  ...+>
  }

@look@
expression result, subnode;
symbol node;
@@
  ExecAppend(...)
  {
  <+...
  result = ExecProcNode(subnode);
+ if (AioAppendShouldPoll(node)) ExecAppendAsyncEventWait(node);
  ...+>
  }

@room@
expression e;
identifier nevents;
@@
  ExecAppendAsyncEventWait(...)
  {
  <...
  int nevents = e
+ + AioForeignStreams()
  ;
  ...>
  }

@wait@
@@
  ExecAppendAsyncEventWait(...)
  {
  <+...
- WaitEventSetWait
+ AioWaitForAppend
  (...)
  ...+>
  }

@mergeappend@
expression i;
symbol node;
@@
  ExecMergeAppend(...)
  {
  <+...
+ AioMergeAppendBegins(node);
  i = -1;
  ...+>
  }
