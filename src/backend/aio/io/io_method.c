/*-------------------------------------------------------------------------
 *
 * io_method.c
 *	  io_method = auto: the best method that this host allows.
 *
 * Upstream's variable io_method always holds a method that is in use, or will
 * be; what was configured is in aio_io_method.  The choice is made once, in the
 * postmaster, before shared memory is measured: by trying what the server is
 * going to need, because kernel versions, seccomp filters, sysctls and limits
 * cannot be told from one another in any other way.
 *
 * Tests: src/test/aio/io_method/t/001_io_method.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aio/io_method.h"
#include "miscadmin.h"
#include "storage/aio.h"
#include "storage/aio_subsys.h"
#include "storage/fd.h"
#include "utils/guc_hooks.h"
#include "utils/memutils.h"

/* io_method, as it was configured */
int			aio_io_method = DEFAULT_IO_METHOD;

/* aio.effective_io_method */
char	   *aio_effective_io_method = NULL;

static int	chosen = IOMETHOD_AUTO;

/* why auto has chosen that, or NULL */
static const char *reason = NULL;

static const char *
method_name(int method)
{
	for (const struct config_enum_entry *entry = io_method_options; entry->name != NULL; entry++)
	{
		if (entry->val == method)
			return entry->name;
	}
	return "???";
}

/* GUC assign_hook for io_method, in place of upstream's */
void
AioAssignIoMethod(int newval, void *extra)
{
	if (newval == IOMETHOD_AUTO)
		newval = chosen != IOMETHOD_AUTO ? chosen : IOMETHOD_WORKER;
	io_method = newval;
	assign_io_method(newval, NULL);
}

/* pgaio_workers_enabled(): are there I/O workers? */
bool
AioUsesWorkers(void)
{
	Assert(io_method != IOMETHOD_AUTO);
	return io_method == IOMETHOD_WORKER || io_method == IOMETHOD_LIBAIO;
}

/*
 * Choose, and note why.
 */
static int
choose(void)
{
	const char *why_not_uring;
	int			error;

#ifdef IOMETHOD_IO_URING_ENABLED
	why_not_uring = AioUringProbe();
	if (why_not_uring == NULL)
	{
		reason = _("this host allows it");
		return IOMETHOD_IO_URING;
	}
#else
	why_not_uring = _("this server is built without io_uring");
#endif

	if ((io_direct_flags & (IO_DIRECT_DATA | IO_DIRECT_WAL)) == 0)
	{
		reason = psprintf(_("%s, and libaio serves only direct I/O"), why_not_uring);
		return IOMETHOD_WORKER;
	}
	error = AioLibaioProbe();
	if (error == 0)
	{
		reason = why_not_uring;
		return IOMETHOD_LIBAIO;
	}
	errno = error;
	reason = psprintf(_("%s, and libaio cannot be used: %m"), why_not_uring);
	return IOMETHOD_WORKER;
}

/* PostmasterMain(): the log is where it is going to be. */
void
AioReportIoMethod(void)
{
	/* only auto gives a reason */
	Assert(reason == NULL || aio_io_method == IOMETHOD_AUTO);
	if (reason != NULL)
		ereport(LOG,
				(errmsg("using I/O method \"%s\": %s",
						method_name(io_method), reason)));
}

/*
 * AioShmemSize(): from here on the method is known.  Raises an error if one was
 * asked for that cannot be used.
 */
void
AioChooseIoMethod(void)
{
	MemoryContext context;
	int			error;

	if (chosen != IOMETHOD_AUTO)
		return;

	/* a process on its own carries out its I/O itself */
	if (aio_io_method != IOMETHOD_AUTO || !IsPostmasterEnvironment)
		chosen = io_method;
	else
	{
		context = MemoryContextSwitchTo(TopMemoryContext);
		chosen = choose();
		MemoryContextSwitchTo(context);
	}
	AioAssignIoMethod(chosen, NULL);
	Assert(io_method == chosen);

	if (aio_io_method == IOMETHOD_LIBAIO && (error = AioLibaioProbe()) != 0)
	{
		errno = error;
		ereport(ERROR,
				(errcode(error == EAGAIN ? ERRCODE_INSUFFICIENT_RESOURCES :
						 ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("could not set up libaio: %m"),
				 error == EAGAIN ?
				 errhint("Check /proc/sys/fs/aio-max-nr, which counts all processes of this host.") :
				 errhint("Set \"io_method\" to \"auto\", which chooses what this host allows.")));
	}

	/* there is no such parameter while a cluster is being created */
	if (aio_effective_io_method != NULL)
		SetConfigOption("aio.effective_io_method", method_name(chosen),
						PGC_INTERNAL, PGC_S_DYNAMIC_DEFAULT);
}
