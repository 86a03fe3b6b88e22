/*-------------------------------------------------------------------------
 *
 * aio.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_AIO_H
#define SIMULATE_AIO_H

#include "storage/aio_types.h"

#define AIO_OP_FALLOCATE	3

#define IOMETHOD_IO_URING_ENABLED 1

enum
{
	IOMETHOD_SYNC,
	IOMETHOD_WORKER,
	IOMETHOD_IO_URING,
};

/* callbacks */
enum
{
	AIO_HCB_MD_WRITEV = 1,
	AIO_HCB_PAGE_WRITEV,
};

struct iovec;
struct SMgrRelationData;
struct ResourceOwnerData;

typedef struct PgAioTargetInfo PgAioTargetInfo;

typedef struct PgAioHandleCallbacks
{
	void		(*stage) (PgAioHandle *ioh, uint8 cb_data);
	PgAioResult (*complete_shared) (PgAioHandle *ioh, PgAioResult prior_result,
									uint8 cb_data);
	void		(*report) (PgAioResult result, const PgAioTargetData *target,
						   int level);
} PgAioHandleCallbacks;

extern int	io_method;
extern int	io_max_concurrency;

extern PgAioHandle *pgaio_io_acquire_nb(struct ResourceOwnerData *owner,
										PgAioReturn *ret);
extern void pgaio_io_set_flag(PgAioHandle *ioh, int flag);
extern void pgaio_io_get_wref(PgAioHandle *ioh, PgAioWaitRef *wref);
extern void pgaio_io_set_handle_data_64(PgAioHandle *ioh, uint64 *data,
										uint8 n);
extern uint64 *pgaio_io_get_handle_data(PgAioHandle *ioh, uint8 *n);
extern void pgaio_io_register_callbacks(PgAioHandle *ioh, int id, uint8 data);
extern void pgaio_io_set_target_smgr(PgAioHandle *ioh,
									 struct SMgrRelationData *reln,
									 ForkNumber forknum, BlockNumber block,
									 int nblocks, bool skip_fsync);
extern PgAioTargetData *pgaio_io_get_target_data(PgAioHandle *ioh);
extern int	pgaio_io_get_iovec(PgAioHandle *ioh, struct iovec **iov);
extern void pgaio_io_start_writev(PgAioHandle *ioh, int fd, int n,
								  uint64 offset);
extern void pgaio_submit_staged(void);
extern void pgaio_wref_clear(PgAioWaitRef *wref);
extern bool pgaio_wref_valid(PgAioWaitRef *wref);
extern bool pgaio_wref_check_done(PgAioWaitRef *wref);
extern void pgaio_wref_wait(PgAioWaitRef *wref);
extern void pgaio_result_report(PgAioResult result,
								const PgAioTargetData *target, int level);

#endif							/* SIMULATE_AIO_H */
