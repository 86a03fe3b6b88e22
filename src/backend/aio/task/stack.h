/*-------------------------------------------------------------------------
 *
 * stack.h
 *	  Memory for the stacks of tasks.  Private to src/backend/aio/task.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_STACK_H
#define AIO_STACK_H

/*
 * Usable bytes of a task's stack.  Only touched pages take memory.  An index
 * access method needs some 20 to 40 kB, an error report on top of it a few
 * more; what recurses checks its depth against the limit below.
 */
#define AIO_STACK_BYTES			(512 * 1024)

/*
 * Inaccessible bytes below a stack: address space only, but more than the
 * largest frame of any function in the server (some 54 kB), lest an overflow
 * step over them.
 */
#define AIO_STACK_GUARD_BYTES	(256 * 1024)

/* kept free below the limit that check_stack_depth() enforces */
#define AIO_STACK_SLOP_BYTES	(64 * 1024)

typedef struct AioStack
{
	char	   *mapping;		/* guard, then the stack */
	size_t		mapping_bytes;
	char	   *low;			/* lowest usable address */
	unsigned int valgrind_id;
} AioStack;

extern bool AioStackAllocate(AioStack *stack);
extern void AioStackFree(AioStack *stack);

#endif							/* AIO_STACK_H */
