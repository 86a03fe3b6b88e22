/*-------------------------------------------------------------------------
 *
 * cpu.c
 *	  Do others use the CPUs meanwhile?
 *
 * Who waits for a CPU takes long, and looks like a slow disk.  What the whole
 * host has computed is compared with what this process has.  The kernel's own
 * work is left out, for much of it is done on our behalf.  That we have waited
 * for a CPU would say nothing: 32 threads of ours wait for each other.
 *
 * Tests: src/bin/pg_test_aio/t/002_disturbed.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <sys/resource.h>
#include <unistd.h>

#include "pg_test_aio.h"

/* seconds of CPUs */
typedef struct CpuTimes
{
	double		all;			/* that there were */
	double		computing;		/* for processes, or taken by other hosts */
	double		own;			/* thereof, by this process */
} CpuTimes;

static CpuTimes before;

/* Returns zeros where it cannot be told. */
static CpuTimes
read_times(void)
{
	CpuTimes	times = {0};

#ifdef __linux__
	FILE	   *file = fopen("/proc/stat", "r");
	double		user,
				nice,
				system,
				idle,
				iowait,
				irq,
				softirq,
				steal;
	double		second = sysconf(_SC_CLK_TCK);
	struct rusage usage;

	if (file == NULL)
		return times;
	if (fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice,
			   &system, &idle, &iowait, &irq, &softirq, &steal) == 8 &&
		getrusage(RUSAGE_SELF, &usage) == 0)
	{
		times.all = (user + nice + system + idle + iowait + irq + softirq +
					 steal) / second;
		times.computing = (user + nice + steal) / second;
		times.own = usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6;
	}
	fclose(file);
#endif
	return times;
}

/* From now on we look at them. */
void
cpu_begin(void)
{
	before = read_times();
}

/* How much of the CPUs have others used since then, in per cent? */
double
cpu_others(void)
{
	CpuTimes	now = read_times();
	double		others = (now.computing - before.computing) -
		(now.own - before.own);

	if (now.all <= before.all)
		return 0;
	return Max(100 * others / (now.all - before.all), 0);
}
