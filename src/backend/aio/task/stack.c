/*-------------------------------------------------------------------------
 *
 * stack.c
 *	  Memory for the stacks of tasks.
 *
 * A stack is a private anonymous mapping with inaccessible pages below it, so
 * that an overflow ends in a signal and not in a neighbour's memory.  task.c
 * pools stacks; here they are made and destroyed.
 *
 * Tests: src/test/aio/core (guard page, in a child process).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/mman.h>
#include <unistd.h>

#include "stack.h"

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#ifndef VALGRIND_STACK_REGISTER
#define VALGRIND_STACK_REGISTER(low, high) 0
#define VALGRIND_STACK_DEREGISTER(id) ((void) (id))
#endif

#ifndef MAP_STACK
#define MAP_STACK 0
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

StaticAssertDecl(AIO_STACK_SLOP_BYTES < AIO_STACK_BYTES,
				 "a stack has more than what is kept free");

/*
 * Make a stack.  Returns false if the system has no memory or no mapping
 * left; the caller then does without a task.
 */
bool
AioStackAllocate(AioStack *stack)
{
	size_t		page_bytes = (size_t) sysconf(_SC_PAGESIZE);
	size_t		stack_bytes = TYPEALIGN(page_bytes, AIO_STACK_BYTES);
	size_t		guard_bytes = TYPEALIGN(page_bytes, AIO_STACK_GUARD_BYTES);
	size_t		bytes = guard_bytes + stack_bytes;
	char	   *mapping;

	mapping = mmap(NULL, bytes, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE,
				   -1, 0);
	if (mapping == MAP_FAILED)
		return false;
	if (mprotect(mapping + guard_bytes, stack_bytes,
				 PROT_READ | PROT_WRITE) != 0)
	{
		munmap(mapping, bytes);
		return false;
	}

	stack->mapping = mapping;
	stack->mapping_bytes = bytes;
	stack->low = mapping + guard_bytes;
	Assert(stack->low + AIO_STACK_BYTES <= mapping + bytes);
	stack->valgrind_id = VALGRIND_STACK_REGISTER(stack->low,
												 mapping + bytes - 1);
	return true;
}

/* Destroy a stack.  Nothing may run on it, or point into it, any more. */
void
AioStackFree(AioStack *stack)
{
	/* not the one on which this runs */
	Assert((char *) &stack < stack->low ||
		   (char *) &stack >= stack->mapping + stack->mapping_bytes);

	VALGRIND_STACK_DEREGISTER(stack->valgrind_id);
	munmap(stack->mapping, stack->mapping_bytes);
	stack->mapping = NULL;
	stack->low = NULL;
}
