static void
throttle(bbsink_throttle *sink, size_t increment)
{
	TimeOffset min;

	if (AioBackupPace(&sink->throttled_last, sink->throttling_sample, sink->elapsed_min_unit, increment))
		return;
	Assert(sink->throttling_counter >= 0);
	sink->throttling_counter += increment;
	pause_for(min);
}
