static void
throttle(bbsink_throttle *sink, size_t increment)
{
	TimeOffset min;

	Assert(sink->throttling_counter >= 0);
	sink->throttling_counter += increment;
	pause_for(min);
}
