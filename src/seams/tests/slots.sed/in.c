#define MAX_SYSCACHE_CALLBACKS 64
#define MAX_RELCACHE_CALLBACKS 10
#define MAX_RELSYNC_CALLBACKS 10
#define WAIT_EVENT_CUSTOM_HASH_INIT_SIZE	16
#define WAIT_EVENT_CUSTOM_HASH_MAX_SIZE	128
#define MAX_ON_EXITS 20

static timeout_params list[MAX_TIMEOUTS];
static timeout_params *volatile active[MAX_TIMEOUTS];

void
InitializeTimeouts(void)
{
	int			i;

	for (i = 0; i < MAX_TIMEOUTS; i++)
		list[i].index = i;
}

TimeoutId
RegisterTimeout(TimeoutId id, timeout_handler_proc handler)
{
	if (id >= USER_TIMEOUT)
	{
		for (id = USER_TIMEOUT; id < MAX_TIMEOUTS; id++)
			if (list[id].handler == NULL)
				break;
	}
	return id;
}

void
other(TimeoutId id)
{
	if (id >= USER_TIMEOUT)
		f();
}
