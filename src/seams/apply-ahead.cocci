// Messages of logical replication are received ahead of need.
//
// What: the loops of a subscription's workers get their messages from us, and so does the one that reads them from a file.
// Without it: a worker that applies updates and deletions waits for the pages of each row, one after the other.
// Could disappear: if upstream's workers read ahead for the changes that they have received.
//
// target: src/backend/replication/logical/worker.c AioReceiveMessage+2 walrcv_receive-2 AioReadSpooledMessage+1 BufFileReadExact-1
//   in LogicalRepApplyLoop apply_spooled_messages
// target: src/backend/replication/logical/applyparallelworker.c AioReceiveFromLeader+1 shm_mq_receive-1
//   in LogicalParallelApplyLoop

@publisher@
@@
- walrcv_receive
+ AioReceiveMessage
  (...)

@spool@
@@
  apply_spooled_messages(...)
  {
  <+...
- BufFileReadExact
+ AioReadSpooledMessage
  (...)
  ...+>
  }

@leader@
@@
  LogicalParallelApplyLoop(...)
  {
  <+...
- shm_mq_receive
+ AioReceiveFromLeader
  (...)
  ...+>
  }
