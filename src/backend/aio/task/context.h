/*-------------------------------------------------------------------------
 *
 * context.h
 *	  Switching between stacks.  Private to src/backend/aio/task.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_CONTEXT_H
#define AIO_CONTEXT_H

/* AIO_CONTEXT_PORTABLE has the fallback tested where it is not needed */
#if defined(AIO_CONTEXT_PORTABLE) || \
	(!defined(__x86_64__) && !defined(__aarch64__))
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

/* neither can call a function on another context's stack just like that */
#if defined(AIO_CONTEXT_UCONTEXT) || defined(AIO_CONTEXT_ASAN)
#define AIO_CONTEXT_GENERIC
#endif

struct AioContext;

typedef void (*AioContextEntry) (void *arg);

/* returns the context to continue */
typedef struct AioContext *(*AioContextBody) (void *arg);

/* A flow of control that is not running: where to continue it. */
typedef struct AioContext
{
#ifdef AIO_CONTEXT_UCONTEXT
	ucontext_t	ucontext;
#else
	void	   *stack_pointer;	/* must be first */
#endif
#ifdef AIO_CONTEXT_GENERIC
	AioContextBody body;		/* to be called next, if it serves calls */
	void	   *arg;
#endif
#ifdef AIO_CONTEXT_ASAN
	void	   *fake_stack;
	const void *stack_bottom;
	size_t		stack_size;
#endif
} AioContext;

extern const char *AioContextRefusal(void);
extern void AioContextInit(AioContext *context, char *stack, size_t size,
						   AioContextEntry entry, void *arg);
extern void AioContextEntered(AioContext *self);
pg_noreturn extern void AioContextServe(AioContext *server, AioContext *to);

#ifdef AIO_CONTEXT_GENERIC

extern void AioContextSwitch(AioContext *from, AioContext *to);
extern void AioContextCall(AioContext *from, AioContext *server,
						   AioContextBody body, void *arg);

#else

/* assembly; stack pointers, and pointers to where they are saved */
extern void aio_context_jump(void **from, void **to);
extern void aio_context_call(void **from, void *stack_pointer,
							 AioContextBody body, void *arg);

/*
 * Leave the running fiber, to be continued later by a switch to 'from', and
 * continue the fiber 'to'.
 */
static inline void
AioContextSwitch(AioContext *from, AioContext *to)
{
	aio_context_jump(&from->stack_pointer, &to->stack_pointer);
}

/*
 * Leave the running fiber, to be continued later by a switch to 'from', and
 * run body(arg) on the stack of 'server', which is in AioContextServe(), and
 * then continue the context that it returns.
 *
 * If body() switches away, 'server' must not be called again before body()
 * has returned or has been given up by AioContextInit().
 */
static inline void
AioContextCall(AioContext *from, AioContext *server,
			   AioContextBody body, void *arg)
{
	aio_context_call(&from->stack_pointer, server->stack_pointer, body, arg);
}

#endif							/* AIO_CONTEXT_GENERIC */

#endif							/* AIO_CONTEXT_H */
