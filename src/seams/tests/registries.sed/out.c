	PGAIO_HCB_LOCAL_BUFFER_READV,

	AIO_HCB_MD_WRITEV,
	AIO_HCB_PAGE_WRITEV,
	AIO_HCB_PREALLOCATE,
	AIO_HCB_WAL,
	AIO_HCB_WAL_SYNC,
	AIO_HCB_BACKUP,
} IDs;
#define PGAIO_HCB_MAX	AIO_HCB_BACKUP
	CALLBACK_ENTRY(PGAIO_HCB_LOCAL_BUFFER_READV, aio_local_buffer_readv_cb),

	CALLBACK_ENTRY(AIO_HCB_MD_WRITEV, aio_md_writev_cb),
	CALLBACK_ENTRY(AIO_HCB_PAGE_WRITEV, aio_page_writev_cb),
	CALLBACK_ENTRY(AIO_HCB_PREALLOCATE, aio_preallocate_cb),
	CALLBACK_ENTRY(AIO_HCB_WAL, aio_wal_cb),
	CALLBACK_ENTRY(AIO_HCB_WAL_SYNC, aio_wal_sync_cb),
	CALLBACK_ENTRY(AIO_HCB_BACKUP, aio_backup_cb),

typedef enum PgAioTargetID
{
	PGAIO_TID_INVALID = 0,
	PGAIO_TID_SMGR,

	AIO_TID_WAL,
	AIO_TID_BACKUP,
} PgAioTargetID;

#define PGAIO_TID_COUNT (AIO_TID_BACKUP + 1)

static const PgAioTargetInfo *pgaio_target_info[] = {
	[PGAIO_TID_SMGR] = &aio_smgr_target_info,
	[AIO_TID_WAL] = &aio_wal_target_info,
	[AIO_TID_BACKUP] = &aio_backup_target_info,
};
