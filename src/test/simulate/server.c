/*-------------------------------------------------------------------------
 *
 * server.c
 *	  The parts of a server that simulators need.
 *
 * Errors jump to the innermost handler of the running fiber, as elog.c has
 * them do.  Memory belongs to contexts, and what is freed is overwritten.
 * Resource owners insist on what upstream's insist on: room is made before
 * something is remembered, and what is forgotten has been remembered.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/ilist.h"
#include "miscadmin.h"
#include "server.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

#define LONGEST 60				/* seconds that a seed may take */

uint64		sim_seed;
pg_prng_state sim_world;
bool		sim_trace;
int			sim_memory_fails;
int			sim_cancels;

ErrorContextCallback *error_context_stack;
sigjmp_buf *PG_exception_stack;
volatile uint32 InterruptHoldoffCount;
volatile uint32 QueryCancelHoldoffCount;
volatile uint32 CritSectionCount;
bool		proc_exit_inprogress;
pg_prng_state pg_global_prng_state;

static uint32 wait_event;
uint32	   *my_wait_event_info = &wait_event;

/* ------------------------------------------------------------------------
 * Telling
 * ------------------------------------------------------------------------
 */

void
SimFail(const char *file, int line, const char *what)
{
	const char *base = strrchr(file, '/');

	fflush(stdout);
	fprintf(stderr, "seed %" PRIu64 ": %s:%d: %s\n", sim_seed,
			base ? base + 1 : file, line, what);
	_exit(1);
}

void
SimNote(const char *format,...)
{
	va_list		args;

	if (!sim_trace)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ------------------------------------------------------------------------
 * Chance: splitmix64, by Guy Steele, Doug Lea and Christine Flood
 * ------------------------------------------------------------------------
 */

void
pg_prng_seed(pg_prng_state *state, uint64 seed)
{
	state->state = seed;
}

uint64
pg_prng_uint64(pg_prng_state *state)
{
	uint64		z = (state->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint32
pg_prng_uint32(pg_prng_state *state)
{
	return (uint32) pg_prng_uint64(state);
}

uint64
pg_prng_uint64_range(pg_prng_state *state, uint64 low, uint64 high)
{
	return low + pg_prng_uint64(state) % (high - low + 1);
}

/* ------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------
 */

static ErrorData current_error;
static bool have_error;

const ErrorData *
SimCurrentError(void)
{
	Assert(have_error);
	return &current_error;
}

void
PG_RE_THROW(void)
{
	Assert(have_error);
	SIM_CHECK(PG_exception_stack != NULL, "an error has no handler");
	siglongjmp(*PG_exception_stack, 1);
}

void
SimRaise(int sqlerrcode, uint64 raised_by)
{
	SIM_CHECK(!have_error, "an error is raised while another one is being handled");
	SIM_CHECK(CritSectionCount == 0, "an error is raised in a critical section");
	current_error.sqlerrcode = sqlerrcode;
	current_error.raised_by = raised_by;
	have_error = true;
	InterruptHoldoffCount = 0;
	QueryCancelHoldoffCount = 0;
	PG_RE_THROW();
}

void
SimElog(int level, const char *file, int line, const char *format,...)
{
	char text[	200];
	va_list		args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	SimFail(file, line, text);
}

ErrorData *
CopyErrorData(void)
{
	ErrorData  *copy = palloc(sizeof(ErrorData));

	Assert(have_error);
	*copy = current_error;
	return copy;
}

void
FreeErrorData(ErrorData *error)
{
	pfree(error);
}

void
FlushErrorState(void)
{
	have_error = false;
}

void
ReThrowError(ErrorData *error)
{
	SIM_CHECK(!have_error, "an error is raised while another one is being handled");
	current_error = *error;
	have_error = true;
	PG_RE_THROW();
}

void
SimCheckForInterrupts(void)
{
	if (InterruptHoldoffCount == 0 && QueryCancelHoldoffCount == 0 &&
		CritSectionCount == 0 && SimChance(&sim_world, sim_cancels))
	{
		SimNote("cancelled");
		SimRaise(SIM_ERROR_CANCEL, SIM_NOBODY);
	}
}

/* ------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------
 */

struct MemoryContextData
{
	dlist_head	chunks;
};

typedef struct Chunk
{
	dlist_node	node;
	Size		size;
	int64		data[];
} Chunk;

static struct MemoryContextData top = {DLIST_STATIC_INIT(top.chunks)};

MemoryContext TopMemoryContext = &top;
MemoryContext CurrentMemoryContext = &top;

MemoryContext
SimContextMake(void)
{
	MemoryContext context = malloc(sizeof(struct MemoryContextData));

	dlist_init(&context->chunks);
	return context;
}

void
SimContextDelete(MemoryContext context)
{
	while (!dlist_is_empty(&context->chunks))
		pfree(dlist_head_element(Chunk, node, &context->chunks)->data);
	free(context);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	Chunk	   *chunk;

	if ((flags & MCXT_ALLOC_NO_OOM) != 0 && SimChance(&sim_world, sim_memory_fails))
		return NULL;
	chunk = malloc(sizeof(Chunk) + size);
	chunk->size = size;
	memset(chunk->data, (flags & MCXT_ALLOC_ZERO) != 0 ? 0 : 0x7f, size);
	dlist_push_tail(&context->chunks, &chunk->node);
	return chunk->data;
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return MemoryContextAllocExtended(context, size, 0);
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(MemoryContextAlloc(context, size), 0, size);
}

void *
palloc(Size size)
{
	SIM_CHECK(CurrentMemoryContext != NULL, "there is no current memory context");
	return MemoryContextAlloc(CurrentMemoryContext, size);
}

void
pfree(void *pointer)
{
	Chunk	   *chunk = (Chunk *) ((char *) pointer - offsetof(Chunk, data));

	dlist_delete(&chunk->node);
	memset(chunk->data, 0x7e, chunk->size);
	free(chunk);
}

char *
psprintf(const char *format,...)
{
	char	   *text = palloc(200);
	va_list		args;

	va_start(args, format);
	vsnprintf(text, 200, format, args);
	va_end(args);
	return text;
}

/* The linker has stacks made here: there may be no memory for one. */
extern void *__real_mmap(void *address, size_t size, int protection, int flags,
						 int file, off_t offset);
extern void *__wrap_mmap(void *address, size_t size, int protection, int flags,
						 int file, off_t offset);

void *
__wrap_mmap(void *address, size_t size, int protection, int flags, int file,
			off_t offset)
{
	if (SimChance(&sim_world, sim_memory_fails))
	{
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(address, size, protection, flags, file, offset);
}

/* ------------------------------------------------------------------------
 * Resource owners
 * ------------------------------------------------------------------------
 */

#define RESOURCES_MAX	1000

struct ResourceOwnerData
{
	int			n;
	int			room;
	bool		releasing;
	struct
	{
		Datum		res;
		const ResourceOwnerDesc *desc;
	}			resources[RESOURCES_MAX];
};

ResourceOwner CurrentResourceOwner;

ResourceOwner
SimOwnerMake(void)
{
	return calloc(1, sizeof(struct ResourceOwnerData));
}

void
ResourceOwnerEnlarge(ResourceOwner owner)
{
	SIM_CHECK(!owner->releasing, "a resource owner is enlarged while it is released");
	if (SimChance(&sim_world, sim_memory_fails))
		SimRaise(SIM_ERROR_MEMORY, SIM_NOBODY);
	owner->room = owner->n + 1;
	SIM_CHECK(owner->room <= RESOURCES_MAX, "too many resources");
}

void
ResourceOwnerRemember(ResourceOwner owner, Datum res,
					  const ResourceOwnerDesc *desc)
{
	SIM_CHECK(owner->n < owner->room, "a resource is remembered without room for it");
	owner->resources[owner->n].res = res;
	owner->resources[owner->n].desc = desc;
	owner->n++;
}

void
ResourceOwnerForget(ResourceOwner owner, Datum res,
					const ResourceOwnerDesc *desc)
{
	for (int i = owner->n - 1; i >= 0; i--)
	{
		if (owner->resources[i].res == res && owner->resources[i].desc == desc)
		{
			owner->resources[i] = owner->resources[--owner->n];
			return;
		}
	}
	SimFail(__FILE__, __LINE__, "a resource is forgotten that was not remembered");
}

/* How many of a kind it has. */
int
SimOwnerCount(ResourceOwner owner, const ResourceOwnerDesc *desc)
{
	int			count = 0;

	for (int i = 0; i < owner->n; i++)
		count += owner->resources[i].desc == desc;
	return count;
}

/* All of it is released, and the owner goes.  One that commits has nothing. */
void
SimOwnerRelease(ResourceOwner owner, bool committed)
{
	SIM_CHECK(!committed || owner->n == 0, "a resource is left at commit");
	owner->releasing = true;
	for (int phase = RESOURCE_RELEASE_BEFORE_LOCKS;
		 phase <= RESOURCE_RELEASE_AFTER_LOCKS; phase++)
	{
		for (int i = owner->n - 1; i >= 0; i--)
		{
			if ((int) owner->resources[i].desc->release_phase != phase)
				continue;
			owner->resources[i].desc->ReleaseResource(owner->resources[i].res);
		}
	}
	free(owner);
}

/* ------------------------------------------------------------------------
 * The program
 * ------------------------------------------------------------------------
 */

static void
at_signal(int number)
{
	fprintf(stderr, "seed %" PRIu64 ": signal %d\n", sim_seed, number);
	_exit(1);
}

static int
usage(const char *program, const SimBound *bounds, int nbounds)
{
	fprintf(stderr, "usage: %s [--trace]", program);
	for (int i = 0; i < nbounds; i++)
		fprintf(stderr, " [--%s N]", bounds[i].name);
	fprintf(stderr, " FIRST_SEED [COUNT]\n");
	return 2;
}

/*
 * Calls simulate() with one seed after the other, as the command line says;
 * SimFail() ends the program.  Returns the exit status.
 */
int
SimMain(int argc, char **argv, const SimBound *bounds, int nbounds,
		void (*simulate) (uint64 seed))
{
	uint64		first;
	uint64		count = 1;
	int			i = 1;

	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++)
	{
		const SimBound *bound = bounds;
		int			value;

		if (strcmp(argv[i], "--trace") == 0)
		{
			sim_trace = true;
			setvbuf(stdout, NULL, _IONBF, 0);
			continue;
		}
		while (bound < bounds + nbounds && strcmp(argv[i] + 2, bound->name) != 0)
			bound++;
		if (bound == bounds + nbounds || ++i == argc ||
			(value = atoi(argv[i])) < 1 || value > *bound->value)
			return usage(argv[0], bounds, nbounds);
		*bound->value = value;
	}
	if (i == argc)
		return usage(argv[0], bounds, nbounds);
	first = strtoull(argv[i], NULL, 10);
	if (i + 1 < argc)
		count = strtoull(argv[i + 1], NULL, 10);
	signal(SIGSEGV, at_signal);
	signal(SIGALRM, at_signal);
	for (sim_seed = first; sim_seed < first + count; sim_seed++)
	{
		alarm(LONGEST);
		simulate(sim_seed);
	}
	return 0;
}
