typedef enum PgAioTargetID
{
	PGAIO_TID_INVALID = 0,
	PGAIO_TID_SMGR,
} PgAioTargetID;

#define PGAIO_TID_COUNT (PGAIO_TID_SMGR + 1)

static const PgAioTargetInfo *pgaio_target_info[] = {
	[PGAIO_TID_SMGR] = &aio_smgr_target_info,
};
