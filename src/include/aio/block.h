/*-------------------------------------------------------------------------
 *
 * block.h
 *	  What precedes every wait of this process for another one.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_BLOCK_H
#define AIO_BLOCK_H

/* state owned by submit.c: an AIO batch of ours is open */
extern PGDLLIMPORT bool aio_batch_open;

extern void AioSubmitBatch(void);

/* do the rules that rules.c knows permit to wait, or to sleep? */
#ifdef USE_ASSERT_CHECKING
extern void AioAssertMayBlock(void);
extern void AioAssertMaySleep(void);
#else
#define AioAssertMayBlock()	((void) 0)
#define AioAssertMaySleep()	((void) 0)
#endif

/* wherever this process is about to wait for another one */
static inline void
AioBeforeBlock(void)
{
	if (unlikely(aio_batch_open))
		AioSubmitBatch();
	AioAssertMayBlock();
}

#endif							/* AIO_BLOCK_H */
