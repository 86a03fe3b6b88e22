// A foreign key that is validated row by row is looked up ahead.
//
// What: ALTER TABLE, where it calls the trigger for each row of the table, gets the rows from us.
// Without it: each row that refers to a page which is not in memory waits for it.
// Could disappear: when upstream validates such a foreign key in batches.
//
// target: src/backend/commands/tablecmds.c AioRiValidation+1 validation+4 AioRiBeginValidation+1 constraintOid+1 AioRiNextRow+1 table_scan_getnextslot-1 ForwardScanDirection-1 AioRiEndValidation+1 rel+1
//   in validateForeignKeyConstraint

@declare@
identifier snapshot;
@@
  validateForeignKeyConstraint(...)
  {
  ...
  Snapshot snapshot;
+ AioRiValidation *validation;
  ... when any
  }

@begin@
symbol rel, constraintOid, snapshot, NULL;
identifier scan;
@@
  validateForeignKeyConstraint(...)
  {
  <+...
  scan = table_beginscan(rel, snapshot, 0, NULL);
+ validation = AioRiBeginValidation(rel, constraintOid, scan);
  ...+>
  }

@next@
identifier scan, slot;
@@
  validateForeignKeyConstraint(...)
  {
  <+...
- table_scan_getnextslot(scan, ForwardScanDirection, slot)
+ AioRiNextRow(validation, slot)
  ...+>
  }

@end@
identifier scan;
@@
  validateForeignKeyConstraint(...)
  {
  <+...
+ AioRiEndValidation(validation);
  table_endscan(scan);
  ...+>
  }
