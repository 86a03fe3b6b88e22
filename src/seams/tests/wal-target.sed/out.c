typedef enum PgAioTargetID
{
	PGAIO_TID_INVALID = 0,
	PGAIO_TID_SMGR,

	AIO_TID_WAL,
} PgAioTargetID;

#define PGAIO_TID_COUNT (AIO_TID_WAL + 1)

static const PgAioTargetInfo *pgaio_target_info[] = {
	[PGAIO_TID_SMGR] = &aio_smgr_target_info,
	[AIO_TID_WAL] = &aio_wal_target_info,
};
