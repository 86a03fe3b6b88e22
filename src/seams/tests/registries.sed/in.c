	PGAIO_HCB_LOCAL_BUFFER_READV,
} IDs;
#define PGAIO_HCB_MAX	PGAIO_HCB_LOCAL_BUFFER_READV
	CALLBACK_ENTRY(PGAIO_HCB_LOCAL_BUFFER_READV, aio_local_buffer_readv_cb),

typedef enum PgAioTargetID
{
	PGAIO_TID_INVALID = 0,
	PGAIO_TID_SMGR,
} PgAioTargetID;

#define PGAIO_TID_COUNT (PGAIO_TID_SMGR + 1)

static const PgAioTargetInfo *pgaio_target_info[] = {
	[PGAIO_TID_SMGR] = &aio_smgr_target_info,
};
