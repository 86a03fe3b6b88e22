/*-------------------------------------------------------------------------
 *
 * stack_depth.c
 *	  Tail of utils/misc/stack_depth.c: exchange what the depth check
 *	  measures against, because each task has a stack of its own.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "../stack.h"

/* What check_stack_depth() measures against now. */
void
AioStackLimitGet(AioStackLimit *limit)
{
	limit->base = stack_base_ptr;
	limit->depth_max_bytes = max_stack_depth_bytes;
}

/* Make check_stack_depth() measure against this. */
void
AioStackLimitSet(const AioStackLimit *limit)
{
	stack_base_ptr = limit->base;
	max_stack_depth_bytes = limit->depth_max_bytes;
}
