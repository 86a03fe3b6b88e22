static void
throttle(bbsink_throttle *sink, size_t increment)
{
	TimeOffset min;

	Assert(sink->throttling_counter >= 0);
	sink->throttling_counter += increment;
	if (sink->throttling_counter < sink->throttling_sample)
		return;
	pause_for(min);
}
