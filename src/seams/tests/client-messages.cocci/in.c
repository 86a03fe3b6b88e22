static void
send_message_to_frontend(ErrorData *edata)
{
	build(edata);
	pq_flush();
}

void
EmitErrorReport(void)
{
	ErrorData  *edata = &errordata[errordata_stack_depth];

	if (edata->output_to_client)
		send_message_to_frontend(edata);
	MemoryContextSwitchTo(oldcontext);
}

static int
socket_putmessage(char msgtype, const char *s, size_t len)
{
	uint32		n32;

	if (PqCommBusy)
		return 0;
	PqCommBusy = true;
	return 0;
}

static int
mq_putmessage(char msgtype, const char *s, size_t len)
{
	shm_mq_result result;

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
