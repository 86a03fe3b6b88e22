/*-------------------------------------------------------------------------
 *
 * context.c
 *	  Switching between stacks in a few instructions.
 *
 * A switch saves the registers that the platform's calling convention makes
 * the callee's duty, exchanges the stack pointer and returns on the other
 * stack.  There is no system call in it; swapcontext(), which saves the
 * signal mask by one, is the fallback for processors without code here.
 *
 * Most functions that are run on another stack return without ever having been
 * left.  For them there is AioContextCall(): the function is called on the
 * other stack, below the frames of a context that waits for such calls.  Every
 * return then has its call, and the processor, which predicts returns, is
 * right about all of them.  A switch there and back costs three
 * mispredictions.
 *
 * Shadow stacks (Intel's and AMD's CET, Arm's GCS) keep the return addresses of
 * one stack, so a process that has one enabled cannot return on another: where
 * there is assembly, AioContextRefusal() says so, and no stack is made.  The
 * fallback can, as the C library exchanges the shadow stack, too.  Return
 * addresses that are signed (Arm's PAC) are checked against the frame in which
 * they lie, which stays where it is; and no landing pad (BTI, IBT) is needed,
 * since all that is jumped to here is returned to, or is a C function.
 *
 * Floating point control words are not saved: nothing in a backend changes
 * them between two awaits.
 *
 * The outermost frame of a new stack is marked as such, so that debuggers and
 * backtrace() stop there.  AddressSanitizer is told of each switch.
 *
 * Tests: src/test/aio/core (interleaving, deep recursion, errors).
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "context.h"

/* of kernels since 6.6 and 6.13; headers may be older */
#ifndef ARCH_SHSTK_STATUS
#define ARCH_SHSTK_STATUS	0x5005
#endif
#ifndef ARCH_SHSTK_SHSTK
#define ARCH_SHSTK_SHSTK	1
#endif
#ifndef PR_GET_SHADOW_STACK_STATUS
#define PR_GET_SHADOW_STACK_STATUS	74
#endif
#ifndef PR_SHADOW_STACK_ENABLE
#define PR_SHADOW_STACK_ENABLE	1
#endif

#ifdef AIO_CONTEXT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

/* whom the running switch leaves; its stack bounds are learned on arrival */
static AioContext *switching_from;
#endif

#ifndef AIO_CONTEXT_UCONTEXT
/* assembly: see context.h, and the first instruction of a new context */
extern void aio_context_jump(void **from, void **to);
extern void aio_context_start(void);
#endif

#ifndef AIO_CONTEXT_UCONTEXT
/* the lines around a function in assembly */
#define FUNCTION_BEGINS(name) \
	".p2align 4\n" \
	".hidden " name "\n" \
	".globl " name "\n" \
	".type " name ", %function\n" \
	name ":\n" \
	"	.cfi_startproc\n"

#define FUNCTION_ENDS(name) \
	"	.cfi_endproc\n" \
	".size " name ", .-" name "\n"
#endif

#if defined(__x86_64__) && !defined(AIO_CONTEXT_UCONTEXT)

/* leave a fiber: its registers go to its stack, whose pointer goes to *place */
#define LEAVE_FLOW(place) \
	"	pushq	%rbp\n" \
	"	pushq	%rbx\n" \
	"	pushq	%r12\n" \
	"	pushq	%r13\n" \
	"	pushq	%r14\n" \
	"	pushq	%r15\n" \
	"	movq	%rsp, (" place ")\n"

/* continue the fiber whose stack pointer is in *place, where it was left */
#define CONTINUE_FLOW(place) \
	"	movq	(" place "), %rsp\n" \
	"	popq	%r15\n" \
	"	popq	%r14\n" \
	"	popq	%r13\n" \
	"	popq	%r12\n" \
	"	popq	%rbx\n" \
	"	popq	%rbp\n" \
	"	ret\n"

__asm__(
		".text\n"
		FUNCTION_BEGINS("aio_context_jump")
		LEAVE_FLOW("%rdi")
		CONTINUE_FLOW("%rsi")
		FUNCTION_ENDS("aio_context_jump")

/* in between, body(arg) is called on the other stack, and says whither */
		FUNCTION_BEGINS("aio_context_call")
		LEAVE_FLOW("%rdi")
		"	.cfi_undefined rip\n"
		"	movq	%rsi, %rsp\n"
		"	andq	$-16, %rsp\n"
		"	movq	%rcx, %rdi\n"
		"	xorl	%ebp, %ebp\n"
		"	callq	*%rdx\n"
		CONTINUE_FLOW("%rax")
		FUNCTION_ENDS("aio_context_call")

/* first instruction on a new stack: r12 = argument, r13 = entry */
		FUNCTION_BEGINS("aio_context_start")
		"	.cfi_undefined rip\n"
		"	movq	%r12, %rdi\n"
		"	callq	*%r13\n"
		"	ud2\n"
		FUNCTION_ENDS("aio_context_start")
);

/* registers in the order in which CONTINUE_FLOW() pops them */
typedef struct InitialFrame
{
	uint64		r15;
	uint64		r14;
	uint64		r13;
	uint64		r12;
	uint64		rbx;
	uint64		rbp;
	uint64		rip;
	uint64		padding;		/* keeps the size a multiple of 16 */
} InitialFrame;

#define INITIAL_FRAME_SET(frame, entry, arg) \
	((frame)->r13 = (uint64) (uintptr_t) (entry), \
	 (frame)->r12 = (uint64) (uintptr_t) (arg), \
	 (frame)->rip = (uint64) (uintptr_t) aio_context_start)

/* popping everything up to rip must leave the pointer 16-byte aligned */
#define INITIAL_FRAME_SKEW	8

#elif defined(__aarch64__) && !defined(AIO_CONTEXT_UCONTEXT)

/* as above */
#define LEAVE_FLOW(place) \
	"	sub	sp, sp, #160\n" \
	"	stp	x19, x20, [sp, #0]\n" \
	"	stp	x21, x22, [sp, #16]\n" \
	"	stp	x23, x24, [sp, #32]\n" \
	"	stp	x25, x26, [sp, #48]\n" \
	"	stp	x27, x28, [sp, #64]\n" \
	"	stp	x29, x30, [sp, #80]\n" \
	"	stp	d8, d9, [sp, #96]\n" \
	"	stp	d10, d11, [sp, #112]\n" \
	"	stp	d12, d13, [sp, #128]\n" \
	"	stp	d14, d15, [sp, #144]\n" \
	"	mov	x9, sp\n" \
	"	str	x9, [" place "]\n"

#define CONTINUE_FLOW(place) \
	"	ldr	x9, [" place "]\n" \
	"	mov	sp, x9\n" \
	"	ldp	x19, x20, [sp, #0]\n" \
	"	ldp	x21, x22, [sp, #16]\n" \
	"	ldp	x23, x24, [sp, #32]\n" \
	"	ldp	x25, x26, [sp, #48]\n" \
	"	ldp	x27, x28, [sp, #64]\n" \
	"	ldp	x29, x30, [sp, #80]\n" \
	"	ldp	d8, d9, [sp, #96]\n" \
	"	ldp	d10, d11, [sp, #112]\n" \
	"	ldp	d12, d13, [sp, #128]\n" \
	"	ldp	d14, d15, [sp, #144]\n" \
	"	add	sp, sp, #160\n" \
	"	ret\n"

__asm__(
		".text\n"
		FUNCTION_BEGINS("aio_context_jump")
		LEAVE_FLOW("x0")
		CONTINUE_FLOW("x1")
		FUNCTION_ENDS("aio_context_jump")

/* in between, body(arg) is called on the other stack, and says whither */
		FUNCTION_BEGINS("aio_context_call")
		LEAVE_FLOW("x0")
		"	.cfi_undefined x30\n"
		"	mov	sp, x1\n"
		"	mov	x0, x3\n"
		"	mov	x29, xzr\n"
		"	blr	x2\n"
		CONTINUE_FLOW("x0")
		FUNCTION_ENDS("aio_context_call")

/* first instruction on a new stack: x19 = argument, x20 = entry */
		FUNCTION_BEGINS("aio_context_start")
		"	.cfi_undefined x30\n"
		"	mov	x0, x19\n"
		"	blr	x20\n"
		"	brk	#0\n"
		FUNCTION_ENDS("aio_context_start")
);

typedef struct InitialFrame
{
	uint64		x19;
	uint64		x20;
	uint64		x21_to_x28[8];
	uint64		x29;
	uint64		x30;
	uint64		d8_to_d15[8];
} InitialFrame;

#define INITIAL_FRAME_SET(frame, entry, arg) \
	((frame)->x20 = (uint64) (uintptr_t) (entry), \
	 (frame)->x19 = (uint64) (uintptr_t) (arg), \
	 (frame)->x30 = (uint64) (uintptr_t) aio_context_start)

#define INITIAL_FRAME_SKEW	0

#else

/* makecontext() passes ints only; a pointer takes two */
static void
ucontext_entry(unsigned int entry_high, unsigned int entry_low,
			   unsigned int arg_high, unsigned int arg_low)
{
	AioContextEntry entry = (AioContextEntry) (uintptr_t)
		(((uint64) entry_high << 32) | entry_low);

	entry((void *) (uintptr_t) (((uint64) arg_high << 32) | arg_low));
}

#endif

/*
 * Why stacks cannot be switched in this process, in words for a message's
 * detail, or NULL if they can.
 */
const char *
AioContextRefusal(void)
{
#if defined(AIO_CONTEXT_UCONTEXT)
	/* the C library knows what to do */
#elif defined(__linux__) && defined(__x86_64__)
	unsigned long enabled = 0;

	if (syscall(SYS_arch_prctl, ARCH_SHSTK_STATUS, &enabled) == 0 &&
		(enabled & ARCH_SHSTK_SHSTK) != 0)
		return "A shadow stack is enabled (x86 CET).";
#elif defined(__linux__) && defined(__aarch64__)
	unsigned long enabled = 0;

	if (prctl(PR_GET_SHADOW_STACK_STATUS, &enabled, 0, 0, 0) == 0 &&
		(enabled & PR_SHADOW_STACK_ENABLE) != 0)
		return "A guarded control stack is enabled (aarch64 GCS).";
#endif
	return NULL;
}

/*
 * Prepare a context that calls entry(arg) on the given stack when it is
 * switched to for the first time.  entry() must call AioContextEntered()
 * first and must never return.
 *
 * stack is the lowest address, size its bytes; both are the caller's to keep
 * for as long as the context is used.
 */
void
AioContextInit(AioContext *context, char *stack, size_t size,
			   AioContextEntry entry, void *arg)
{
#ifdef AIO_CONTEXT_UCONTEXT
	uint64		e = (uint64) (uintptr_t) entry;
	uint64		a = (uint64) (uintptr_t) arg;

	if (getcontext(&context->ucontext) != 0)
		elog(ERROR, "getcontext failed: %m");
	context->ucontext.uc_stack.ss_sp = stack;
	context->ucontext.uc_stack.ss_size = size;
	context->ucontext.uc_link = NULL;
	makecontext(&context->ucontext, (void (*) (void)) ucontext_entry, 4,
				(unsigned int) (e >> 32), (unsigned int) e,
				(unsigned int) (a >> 32), (unsigned int) a);
#else
	InitialFrame *frame;
	uintptr_t	top = ((uintptr_t) stack + size) & ~(uintptr_t) 15;

	StaticAssertStmt(sizeof(InitialFrame) % 16 == 0, "stack alignment");
	StaticAssertStmt(offsetof(AioContext, stack_pointer) == 0,
					 "aio_context_call() finds it where body() points to");

	frame = (InitialFrame *) (top - sizeof(InitialFrame) - 16 + INITIAL_FRAME_SKEW);
	memset(frame, 0, sizeof(InitialFrame));
	INITIAL_FRAME_SET(frame, entry, arg);
	context->stack_pointer = frame;
#endif
#ifdef AIO_CONTEXT_ASAN
	/* frames that were never left have poisoned what lies around them */
	ASAN_UNPOISON_MEMORY_REGION(stack, size);
	context->fake_stack = NULL;
	context->stack_bottom = stack;
	context->stack_size = size;
#endif
}

#ifdef AIO_CONTEXT_GENERIC

/* The functions that context.h has inline elsewhere; see there. */
void
AioContextSwitch(AioContext *from, AioContext *to)
{
#ifdef AIO_CONTEXT_ASAN
	/* its bounds were learned when it was left, or when it was made */
	Assert(to->stack_size > 0);
	switching_from = from;
	__sanitizer_start_switch_fiber(&from->fake_stack, to->stack_bottom,
								   to->stack_size);
#endif
#ifdef AIO_CONTEXT_UCONTEXT
	if (swapcontext(&from->ucontext, &to->ucontext) != 0)
		elog(PANIC, "swapcontext failed: %m");
#else
	aio_context_jump(&from->stack_pointer, &to->stack_pointer);
#endif
	AioContextEntered(from);
}

void
AioContextCall(AioContext *from, AioContext *server,
			   AioContextBody body, void *arg)
{
	Assert(server != from);
	server->body = body;
	server->arg = arg;
	AioContextSwitch(from, server);
}

#endif							/* AIO_CONTEXT_GENERIC */

/*
 * Arrival on a stack.  'self' is the context that was switched to.
 */
void
AioContextEntered(AioContext *self)
{
#ifdef AIO_CONTEXT_ASAN
	__sanitizer_finish_switch_fiber(self->fake_stack,
									&switching_from->stack_bottom,
									&switching_from->stack_size);
#endif
}

/*
 * Leave the running fiber for 'to', and from now on serve the calls that
 * AioContextCall() makes of 'server'.  The caller's frame stays as it is: it
 * may be jumped to, and may then serve again.
 */
void
AioContextServe(AioContext *server, AioContext *to)
{
	for (;;)
	{
		AioContextSwitch(server, to);
#ifdef AIO_CONTEXT_GENERIC
		to = server->body(server->arg);
#else
		/* calls are made below this frame, which nobody ever continues */
		pg_unreachable();
#endif
	}
}
