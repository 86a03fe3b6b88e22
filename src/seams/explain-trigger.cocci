// EXPLAIN shows how each trigger has checked its rows.
//
// What: where a trigger's calls have been shown, we are asked what else there is to show.
// Without it: nobody could tell which foreign keys of a statement are checked by queries.
// Could disappear: if EXPLAIN had a hook for each trigger, as it has for each node.
//
// target: src/backend/commands/explain.c AioExplainTrigger+1 rInfo+1 trig+1 instr+1 es+1
//   in report_triggers

@@
symbol rInfo, trig, instr, es, NULL, true;
@@
  report_triggers(...)
  {
  <+...
+ AioExplainTrigger(rInfo, trig, instr, es);
  ExplainCloseGroup("Trigger", NULL, true, es);
  ...+>
  }
