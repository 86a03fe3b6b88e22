// A foreign key is checked without a query.
//
// What: when the row that a foreign key refers to has to be found, or rows that refer to one that is deleted, we are asked
//   first, and look into an index. Queries that change such rows are counted.
// Without it: each row is checked by an SQL statement of its own, which takes longer than inserting the row.
// Could disappear: for the referenced row, with release 19, which does the same.
//
// target: src/backend/utils/adt/ri_triggers.c AioRiHasParent+1 AioRiHasNoChild+1 AioRiCountQuery+3 if+2 return+2 PointerGetDatum+2 NULL+2
//   in RI_FKey_cascade_del RI_FKey_cascade_upd RI_FKey_check ri_restrict ri_set

@parent@
symbol trigdata, qkey, riinfo, pk_rel, newslot, NULL, RI_PLAN_CHECK_LOOKUPPK;
@@
+ if (AioRiHasParent(trigdata, riinfo->constraint_id, pk_rel, newslot))
+ return PointerGetDatum(NULL);
  SPI_connect();
  ri_BuildQueryKey(&qkey, riinfo, RI_PLAN_CHECK_LOOKUPPK);

@child@
symbol trigdata, oldslot, riinfo, fk_rel, is_no_action, NULL;
statement S;
@@
  ri_restrict(...)
  {
  ...
+ if (AioRiHasNoChild(trigdata, riinfo->constraint_id, fk_rel, oldslot))
+ return PointerGetDatum(NULL);
  if (is_no_action && ...) S
  ... when any
  }

@action@
symbol trigdata;
identifier f = {RI_FKey_cascade_del, RI_FKey_cascade_upd, ri_set};
@@
  f(...)
  {
  <...
+ AioRiCountQuery(trigdata);
  SPI_connect();
  ...>
  }
