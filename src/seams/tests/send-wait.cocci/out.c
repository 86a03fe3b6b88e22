ssize_t
secure_write(Port *port, void *ptr, size_t len)
{
	ssize_t		n = write_some(port, ptr, len);

	if (n < 0 && !port->noblock)
	{
		WaitEvent	event;

		if (!AioMayWaitToSend())
			return -1;
		ModifyWaitEvent(FeBeWaitSet, 0, 2, NULL);
		wait_for(&event);
	}
	return n;
}

ssize_t
other_write(Port *port)
{
	ModifyWaitEvent(FeBeWaitSet, 0, 2, NULL);
	return 0;
}
