/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The method worker: threads that carry out one I/O at a time each.
 *
 * They stand for the I/O workers of a server: a request is handed over in
 * shared memory, somebody is woken up, carries it out and wakes up whoever
 * waits.  With n I/Os in flight, n threads are busy.
 *
 * The threads end with the process.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include <pthread.h>
#include <signal.h>

#include "pg_test_aio.h"

/* requests that wait for a worker, or for the submitter */
typedef struct Queue
{
	IoRequest  *requests[WORKERS_LIMIT];
	int			first;
	int			n;
	pthread_cond_t filled;
} Queue;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Queue waiting = {.filled = PTHREAD_COND_INITIALIZER};
static Queue complete = {.filled = PTHREAD_COND_INITIALIZER};

static void
put(Queue *queue, IoRequest *request)
{
	Assert(queue->n < WORKERS_LIMIT);
	queue->requests[(queue->first + queue->n++) % WORKERS_LIMIT] = request;
	pthread_cond_signal(&queue->filled);
}

static IoRequest *
get(Queue *queue)
{
	IoRequest  *request;

	while (queue->n == 0)
		pthread_cond_wait(&queue->filled, &mutex);
	request = queue->requests[queue->first];
	queue->first = (queue->first + 1) % WORKERS_LIMIT;
	queue->n--;
	return request;
}

static void *
worker_main(void *arg)
{
	pthread_mutex_lock(&mutex);
	for (;;)
	{
		IoRequest  *request = get(&waiting);

		pthread_mutex_unlock(&mutex);
		io_attempt(request);
		pthread_mutex_lock(&mutex);
		put(&complete, request);
	}
	return NULL;
}

static char *
worker_start(int depth)
{
	sigset_t	all,
				before;
	int			error = 0;

	/* signals are for the thread that submits */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (int i = 0; i < depth && error == 0; i++)
	{
		pthread_t	thread;

		error = pthread_create(&thread, NULL, worker_main, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return error == 0 ? NULL : psprintf("%m");
}

static void
worker_submit(IoRequest **requests, int n)
{
	pthread_mutex_lock(&mutex);
	for (int i = 0; i < n; i++)
		put(&waiting, requests[i]);
	pthread_mutex_unlock(&mutex);
}

static int
worker_wait(IoRequest **done, int max)
{
	int			n = 0;

	pthread_mutex_lock(&mutex);
	do
	{
		done[n++] = get(&complete);
	} while (n < max && complete.n > 0);
	pthread_mutex_unlock(&mutex);
	return n;
}

const IoMethod method_worker = {
	.name = "worker",
	.max_depth = WORKERS_LIMIT,
	.start = worker_start,
	.submit = worker_submit,
	.wait = worker_wait,
};
