/*-------------------------------------------------------------------------
 *
 * pg_test_aio.h
 *	  What the parts of pg_test_aio have in common.
 *
 * The program has one thread that submits I/O and measures; only worker.c has
 * others.  All I/O goes to one file, which testfile_create.c makes; it has no
 * name when the first byte is written to it.
 *
 * Times are nanoseconds of a monotonic clock in int64, but microseconds in a
 * Result; sizes are bytes unless a name says otherwise.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PG_TEST_AIO_H
#define PG_TEST_AIO_H

#include "portability/instr_time.h"

/* as many I/Os are in flight at most; a power of two */
#define DEPTH_LIMIT		256

/* there are fewer I/O methods */
#define METHODS_LIMIT	8

/* io_workers of the server cannot be more */
#define WORKERS_LIMIT	32

#define KILOBYTE		INT64CONST(1024)
#define MEGABYTE		(1024 * KILOBYTE)

/* memory for I/Os in flight: as many blocks, or some larger pieces */
#define BUFFER_TOTAL	Max(4 * MEGABYTE, DEPTH_LIMIT * BLCKSZ)

/*
 * Who else uses the disk comes and goes: so what is compared is measured in
 * several rounds, each with a part of the time, and the median counts.
 */
#define ROUNDS			3

/* defaults of the server, in blocks */
#define PREALLOCATION_BLOCKS		4096	/* aio.preallocation_size */
#define BULK_FLUSH_AFTER	128 /* aio.bulk_flush_after */

#define BLOCKS_TO_KB(n)		((int) ((n) * (BLCKSZ / KILOBYTE)))

/* the values of aio.bulk_flush_after that are measured */
#define NPACES				4

typedef enum TestKind
{
	TEST_READ,
	TEST_WRITE,
	TEST_MIXED,
	TEST_SYNC,
	TEST_EXTEND,
	TEST_STREAM,
} TestKind;

#define NTESTS			(TEST_STREAM + 1)

typedef enum FileMode
{
	MODE_DIRECT,
	MODE_BUFFERED,
} FileMode;

#define NMODES			(MODE_BUFFERED + 1)

/* how a file descriptor syncs what is written */
typedef enum SyncFlag
{
	SYNC_NONE,
	SYNC_DATA,					/* O_DSYNC */
	SYNC_ALL,					/* O_SYNC */
} SyncFlag;

#define NSYNCFLAGS		(SYNC_ALL + 1)

#define NAME_LIMIT		32

/*
 * One measurement.  What the members mean depends on the test:
 *
 * read, write, mixed: 'how' is the I/O method, 'depth' the I/Os in flight.
 *
 * sync: 'how' is a value of wal_sync_method, or an I/O method that syncs while
 * the program goes on, with '+writes' if it writes meanwhile; 'depth' is the
 * syncs in flight; the latencies are those of a write and its sync, and 'aside'
 * is the average of the sync alone, where that can be told; 'meanwhile' the
 * writes during one sync.
 *
 * extend: 'how' is "zeros", "fallocate" or "ahead"; 'size' the blocks at a
 * time; 'aside' the time of one allocation ahead.
 *
 * stream: 'how' is "overwrite" or "append"; 'size' the kilobytes after which
 * the kernel is asked to write, or 0; 'rate' is MB/s; 'max' the longest time
 * for which the writer had to wait at once; 'aside' the time of the final
 * sync.
 */
typedef struct Result
{
	TestKind	test;
	FileMode	mode;
	char		how[NAME_LIMIT];
	int			depth;
	int			size;
	double		rate;			/* operations per second, or MB/s */
	double		low;			/* of the slowest round; 0 if there were none */
	double		high;			/* of the fastest */
	double		average;		/* microseconds, like all that follow */
	double		p99;
	double		max;
	double		aside;
	double		meanwhile;
} Result;

/* something that could not be measured, and why */
typedef struct Skip
{
	char	   *what;			/* an I/O method, "direct", "fallocate", ... */
	char	   *why;
} Skip;

typedef struct Results
{
	char	   *directory;
	char	   *file_system;
	char	   *date;
	double		seconds;		/* per measurement */
	double		others;			/* their share of the CPUs, in per cent */
	int64		file_size;
	bool		requested[NMODES];	/* --direct, --buffered */
	Result	   *results;
	int			nresults;
	Skip	   *skips;
	int			nskips;
} Results;

/* one line of postgresql.conf */
typedef struct Recommendation
{
	const char *name;
	char	   *value;			/* NULL: the reason is one for saying nothing */
	char	   *reason;
	bool		comment;		/* a default, or what might be tried */
} Recommendation;

#define RECOMMENDATIONS_LIMIT	20

typedef enum IoOp
{
	IO_READ,
	IO_WRITE,
	IO_DATASYNC,
} IoOp;

typedef struct IoRequest
{
	IoOp		op;
	int			fd;
	off_t		offset;
	size_t		length;
	char	   *buffer;
	int64		started;
	ssize_t		result;			/* bytes, or minus an errno */
} IoRequest;

/*
 * Who carries out I/O.  A request belongs to the method from submit() until
 * wait() returns it.  No more than 'depth' are in flight.
 */
typedef struct IoMethod
{
	const char *name;
	int			max_depth;
	bool		direct_only;

	/* returns NULL, or why that is not possible, which the caller frees */
	char	   *(*start) (int depth);
	void		(*submit) (IoRequest **requests, int n);

	/* waits for at least one; returns how many have been completed */
	int			(*wait) (IoRequest **done, int max);
} IoMethod;

/*
 * Latencies, in classes that are a sixteenth of a power of two wide.  The
 * values are nanoseconds.
 */
#define HISTOGRAM_SIZE	(64 * 16)

typedef struct Histogram
{
	int64		count[HISTOGRAM_SIZE];
	int64		n;
	int64		max;
	double		sum;
} Histogram;

/* what the user wants; constant while tests run */
typedef struct Options
{
	const char *directory;
	double		seconds;
	int64		file_size;
	int			max_depth;
	bool		methods[METHODS_LIMIT]; /* as in all_methods */
	bool		tests[NTESTS];
	bool		modes[NMODES];
	const char *plot_path;		/* NULL: none, as of the next two */
	const char *json_path;
	const char *from_json;
	bool		progress;
} Options;

extern Options options;
extern Results results;

static inline int64
now_ns(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_NANOSEC(now);
}

/* When such a part of the time for a measurement is over */
static inline int64
deadline_ns(double part)
{
	return now_ns() + (int64) (options.seconds * part * 1e9);
}

/* progress.c */
extern bool begin_measurement(double weight, const char *fmt,...)
			pg_attribute_printf(2, 3);
extern bool counting_measurements(void);
extern void end_counting(void);
extern double seconds_of_all(void);
extern void end_progress(void);

/* options.c */
extern void parse_options(int argc, char *argv[]);

/* cpu.c */
extern void cpu_begin(void);
extern double cpu_others(void);

/* histogram.c */
extern void histogram_add(Histogram *histogram, int64 ns);
extern void histogram_summary(const Histogram *histogram, Result *result);

/* testfile_create.c */
extern void testfile_create(void);
extern bool testfile_has(FileMode mode);
extern int	testfile_fd(FileMode mode, SyncFlag flag);

/* testfile.c */
extern bool testfile_cannot(int error);
extern void testfile_fill(int64 wanted);
extern int64 testfile_size(void);
extern void testfile_truncate(void);
extern void testfile_sync(void);
extern void testfile_forget_cached(void);
extern int	testfile_allocate(int64 offset, int64 length, bool keep_size);
extern pg_noreturn void testfile_failed(IoOp op, int error);
extern char *testfile_buffer(int i, size_t length);
extern void testfile_vary(char *buffer, size_t length);

/* method.c, worker.c, uring.c, libaio.c */
extern const IoMethod method_sync;
extern const IoMethod method_worker;
extern const IoMethod method_uring;
extern const IoMethod method_libaio;
extern void io_attempt(IoRequest *request);
extern void io_perform(IoRequest *request);
extern void io_submit_one(const IoMethod *method, IoRequest *request);
extern int	io_wait(const IoMethod *method, IoRequest **done);

/* methods.c */
extern const IoMethod *const all_methods[];
extern void start_methods(void);
extern bool method_is_usable(const IoMethod *method, FileMode mode);
extern const IoMethod *first_usable(const IoMethod *const *methods,
									FileMode mode);

/* random.c, sync.c, stream.c, extend.c */
extern const int stream_paces[NPACES];
extern void test_random(TestKind test, FileMode mode);
extern void test_sync(FileMode mode);
extern void test_stream(FileMode mode);
extern void test_extend(FileMode mode);

/* results.c */
extern const char *const test_names[NTESTS];
extern const char *const mode_names[NMODES];
extern char *one_line(const char *string);
extern Result *results_add(TestKind test, FileMode mode, const char *how,
						   int depth, int size);
extern void results_add_median(TestKind test, FileMode mode, const char *how,
							   int depth, int size, Result *rounds);
extern void results_skip(const char *what, const char *why);
extern const Result *results_find(const Results *in, TestKind test,
								  FileMode mode, const char *how,
								  int depth, int size);
extern const char *results_why_not(const Results *in, const char *what);

/* json_write.c, json_read.c */
extern void results_write_json(const char *path);
extern void results_read_json(const char *path);

/* report.c */
extern void flush_output(void);
extern void print_table(TestKind test, FileMode mode);
extern void print_recommendations(void);

/* recommend.c */
extern int	recommend(const Results *in, Recommendation *out);

/* plot.c */
extern void plot_check(const char *path);
extern void plot(const char *path);

#endif							/* PG_TEST_AIO_H */
