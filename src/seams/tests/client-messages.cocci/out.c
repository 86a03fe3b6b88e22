static void
send_message_to_frontend(ErrorData *edata)
{
	build(edata);
	AioFlushMessage();
}

void
EmitErrorReport(void)
{
	ErrorData  *edata = &errordata[errordata_stack_depth];

	if (edata->output_to_client)
		send_message_to_frontend(AioBeforeTelling(edata));
	MemoryContextSwitchTo(oldcontext);
}

static int
socket_putmessage(char msgtype, const char *s, size_t len)
{
	uint32		n32;

	if (AioKeepMessage(msgtype, s, len))
		return 0;
	if (PqCommBusy)
		return 0;
	PqCommBusy = true;
	return 0;
}

static int
mq_putmessage(char msgtype, const char *s, size_t len)
{
	shm_mq_result result;

	if (AioKeepMessage(msgtype, s, len))
		return 0;
	if (pq_mq_busy)
	{
		detach();
		return EOF;
	}
	return 0;
}

void
other(void)
{
	pq_flush();
}
