// COPY inserts the index entries of a whole batch of rows together.
//
// What: after table_multi_insert() the batch is offered to us; the loop over its rows then takes each row's list of
//   constraints to recheck from the batch, if that was taken, and inserts the row's entries otherwise.
// Without it: COPY overlaps the reads of one row only.
// Could disappear: with a table access method interface for bulk inserts into indexes.
//
// target: src/backend/commands/copyfrom.c AioInsertIndexBatch+1 AioInsertIndexTuples+2 ExecInsertIndexTuples-2 rechecks+4
//   in CopyFrom CopyMultiInsertBufferFlush

@batch@
expression rri, slots, n, cid;
symbol estate, cstate, buffer;
@@
  table_multi_insert(rri->ri_RelationDesc, slots, n, cid, ...);
  MemoryContextSwitchTo(...);
+ rechecks = AioInsertIndexBatch(rri, slots, n, cid, estate, cstate, buffer->linenos);

@row@
expression rri, slots;
symbol i, rechecks;
@@
- ExecInsertIndexTuples
+ rechecks != NULL ? rechecks[i] : AioInsertIndexTuples
  (rri, slots[i], ...)

@single@
@@
- ExecInsertIndexTuples
+ AioInsertIndexTuples
  (...)

@local@
type T;
identifier state;
symbol miinfo;
@@
+ List **rechecks = NULL;
  T state = miinfo->cstate;
