/*-------------------------------------------------------------------------
 *
 * stack_depth_internals.c
 *	  Included at the end of utils/misc/stack_depth.c: exchange what the depth
 *	  check measures against, because each task has a stack of its own.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "aio/io_internal.h"

char	  **const aio_stack_base = &stack_base_ptr;
ssize_t    *const aio_stack_depth_max_bytes = &max_stack_depth_bytes;
