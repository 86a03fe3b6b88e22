// What is kept for a queue of AFTER triggers, as long as it is worked off.
//
// What: afterTriggerInvokeEvents() tells us which event it is going to fire, AfterTriggerExecute() with what the trigger is
//   called, and the former when all have been fired.
// Without it: each check of a foreign key opens the other table's index anew, and nobody knows which rows are checked next.
// Could disappear: if a trigger were told of its queue, as those of release 19 are.
//
// target: src/backend/commands/trigger.c AioTriggerEventDue+1 AioTriggerCalled+1 AioTriggerEventsFired+1
//   in AfterTriggerExecute afterTriggerInvokeEvents

@due@
symbol estate, event, chunk, firing_id, evtshared;
@@
+ AioTriggerEventDue(estate, chunk, event, firing_id, evtshared->ats_tgoid);
  AfterTriggerExecute(estate, event, ...);

@called@
symbol LocTriggerData;
expression rettuple;
@@
  AfterTriggerExecute(...)
  {
  <+...
+ AioTriggerCalled(&LocTriggerData);
  rettuple = ExecCallTriggerFunc(&LocTriggerData, ...);
  ...+>
  }

@fired@
symbol estate;
identifier context;
@@
  afterTriggerInvokeEvents(...)
  {
  <+...
+ AioTriggerEventsFired(estate);
  MemoryContextDelete(context);
  ...+>
  }
