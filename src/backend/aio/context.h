/*-------------------------------------------------------------------------
 *
 * context.h
 *	  Switching between stacks.  Private to src/backend/aio.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_CONTEXT_H
#define AIO_CONTEXT_H

#if !defined(__x86_64__) && !defined(__aarch64__)
#define AIO_CONTEXT_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define AIO_CONTEXT_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AIO_CONTEXT_ASAN
#endif
#endif

/* A flow of control that is not running: where to continue it. */
typedef struct AioContext
{
#ifdef AIO_CONTEXT_UCONTEXT
	ucontext_t	ucontext;
#else
	void	   *stack_pointer;
#endif
#ifdef AIO_CONTEXT_ASAN
	void	   *fake_stack;
	const void *stack_bottom;
	size_t		stack_size;
#endif
} AioContext;

typedef void (*AioContextEntry) (void *arg);

extern void AioContextInit(AioContext *context, char *stack, size_t size,
						   AioContextEntry entry, void *arg);
extern void AioContextSwitch(AioContext *from, AioContext *to);
extern void AioContextEntered(AioContext *self);

#endif							/* AIO_CONTEXT_H */
