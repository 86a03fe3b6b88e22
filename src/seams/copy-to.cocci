// COPY TO looks up values that are stored out of line ahead, if it reads a table.
//
// What: the next row is asked of us, who may have taken it from the scan before.
// Without it: each page of a TOAST table is waited for.
// Could disappear: if COPY read a table by a plan.
//
// target: src/backend/commands/copyto.c AioCopyNextSlot+1 table_scan_getnextslot-1 cstate+1 attnumlist+1
//   in DoCopyTo

@next@
symbol cstate;
expression list arguments;
@@
  DoCopyTo(...)
  {
  <+...
- table_scan_getnextslot(arguments)
+ AioCopyNextSlot(arguments, cstate->attnumlist)
  ...+>
  }
