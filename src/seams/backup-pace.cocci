// A base backup whose rate is limited sends at an even pace.
//
// What: throttle() asks us when it may go on.
// Without it: what is allowed in an eighth of a second is read and sent at full speed, while others wait.
// Could disappear: when upstream's pauses are as short.
//
// target: src/backend/backup/basebackup_throttle.c AioBackupPace+1 elapsed_min_unit+1 increment+1 sink+3 throttled_last+1 throttling_sample+1
//   in throttle

@@
identifier sink, increment;
type T;
@@
  throttle(T sink, size_t increment)
  {
  ...
+ if (AioBackupPace(&sink->throttled_last, sink->throttling_sample, sink->elapsed_min_unit, increment))
+	return;
  Assert(sink->throttling_counter >= 0);
  ...
  }
