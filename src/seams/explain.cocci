// EXPLAIN shows what nodes, triggers and plans have awaited, and how each trigger has checked its rows.
//
// What: where options, a node, a trigger's calls and a plan have been dealt with, we are asked what else there is to say.
// Without it: EXPLAIN (AIO) shows nothing.
// Could disappear: if EXPLAIN had a hook for each trigger.  It has hooks for the others, but an extension may insist on
//   being the first that takes one.
//
// target: src/backend/commands/explain.c AioExplainTrigger+1 rInfo+1 trig+1 instr+1 es+3 AioExplainNode+1 planstate+1 AioExplainPlan+1 plannedstmt+1 into+1
//   in report_triggers ExplainNode ExplainOnePlan
// target: src/backend/commands/explain_state.c AioExplainOptions+1 es+1
//   in ParseExplainOptionList

@trigger@
symbol rInfo, trig, instr, es, NULL, true;
@@
  report_triggers(...)
  {
  <+...
+ AioExplainTrigger(rInfo, trig, instr, es);
  ExplainCloseGroup("Trigger", NULL, true, es);
  ...+>
  }

@node@
symbol planstate, es, explain_per_node_hook;
statement S;
@@
+ AioExplainNode(planstate, es);
  if (explain_per_node_hook) S

@plan@
symbol plannedstmt, into, es, explain_per_plan_hook;
statement S;
@@
+ AioExplainPlan(plannedstmt, into, es);
  if (explain_per_plan_hook) S

@options@
symbol es, explain_validate_options_hook;
statement S;
@@
+ AioExplainOptions(es);
  if (explain_validate_options_hook) S
