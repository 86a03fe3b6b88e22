/*-------------------------------------------------------------------------
 *
 * elog.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_ELOG_H
#define SIMULATE_ELOG_H

#define LOG		15
#define LOG_SERVER_ONLY	16
#define WARNING	19
#define ERROR	21
#define FATAL	22
#define PANIC	23

typedef struct ErrorContextCallback
{
	struct ErrorContextCallback *previous;
	void		(*callback) (void *arg);
	void	   *arg;
} ErrorContextCallback;

/* Whose error it is, and of which class. */
typedef struct ErrorData
{
	int			sqlerrcode;
	uint64		raised_by;
} ErrorData;

extern ErrorContextCallback *error_context_stack;
extern sigjmp_buf *PG_exception_stack;

pg_noreturn extern void SimRaise(int sqlerrcode, uint64 raised_by);
pg_noreturn extern void SimElog(int level, const char *file, int line,
								const char *format,...) pg_attribute_printf(4, 5);
pg_noreturn extern void PG_RE_THROW(void);
pg_noreturn extern void ReThrowError(ErrorData *error);
extern ErrorData *CopyErrorData(void);
extern void FreeErrorData(ErrorData *error);
extern void FlushErrorState(void);

#define elog(level, ...) SimElog(level, __FILE__, __LINE__, __VA_ARGS__)

/* parts are evaluated, and what the last one returns is ignored */
#define ereport(level, ...) \
	do { \
		SimEvaluate(__VA_ARGS__); \
		if (__builtin_constant_p(level)) \
			SimReport(level); \
		else \
			SimReportAt(level); \
	} while (0)
#define _(text)		(text)

pg_noreturn extern void SimReport(int level);

/* of a level that is not known before; only in programs that need it */
extern void SimReportAt(int level);
extern int	errcode_for_file_access(void);
extern int	errmsg(const char *format,...);

#define ERRCODE_DISK_FULL	1
#define errmsg_internal		errmsg

static inline int
errcode(int code)
{
	return 0;
}

static inline int
errhint(const char *hint)
{
	return 0;
}

static inline void
SimEvaluate(int part,...)
{
}

/* Where an error goes: the innermost handler of the running fiber. */
typedef struct SimHandler
{
	sigjmp_buf	buffer;
	sigjmp_buf *outer;
	ErrorContextCallback *context;
} SimHandler;

#define PG_TRY() \
	do { \
		SimHandler	sim_handler; \
		sim_handler.outer = PG_exception_stack; \
		sim_handler.context = error_context_stack; \
		if (sigsetjmp(sim_handler.buffer, 0) == 0) \
		{ \
			PG_exception_stack = &sim_handler.buffer

#define PG_CATCH() \
			PG_exception_stack = sim_handler.outer; \
		} \
		else \
		{ \
			PG_exception_stack = sim_handler.outer; \
			error_context_stack = sim_handler.context

/* where nothing is raised: what comes last, and what comes in any case */
#define PG_FINALLY() \
			PG_exception_stack = sim_handler.outer; \
		} \
		else \
			SimFail(__FILE__, __LINE__, "an error is raised"); \
		{ \
			do { } while (0)

#define PG_END_TRY() \
		} \
	} while (0)

#endif							/* SIMULATE_ELOG_H */
