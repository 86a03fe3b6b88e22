/*-------------------------------------------------------------------------
 *
 * shared_state.h
 *	  Shared memory of ours, described once per part.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_SHARED_STATE_H
#define AIO_SHARED_STATE_H

typedef struct AioSharedState
{
	/* in pg_shmem_allocations */
	const char *name;

	/* how many bytes, once all parameters have their values */
	Size		(*size) (void);

	/* where its address is put; stays NULL where there is no server */
	void	  **address;

	/* fill it; nobody else sees it yet */
	void		(*initialize) (void);
} AioSharedState;

extern void AioShareState(const AioSharedState *part);
extern void AioShareAll(void);

#endif							/* AIO_SHARED_STATE_H */
