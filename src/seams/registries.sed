# Upstream's AIO knows our callbacks, and WAL as a target.
#
# What: six more callback ids and two more kinds of target, at the end of the lists, and their entries in the tables.
# Without it: what is to be done at the end of a write could not be said, and an I/O worker would not know which file of the
#   WAL to open.
# Could disappear: if callbacks and targets could be registered.
# Why so many: each callback has a line in the enum and one in the table.
#
# target: src/include/storage/aio.h AIO_HCB_MD_WRITEV+1 AIO_HCB_PAGE_WRITEV+1 AIO_HCB_PREALLOCATE+1 AIO_HCB_WAL+1 AIO_HCB_WAL_SYNC+1 AIO_HCB_BACKUP+2 PGAIO_HCB_LOCAL_BUFFER_READV-1 AIO_TID_WAL+1 AIO_TID_BACKUP+2 PGAIO_TID_SMGR-1
# target: src/backend/storage/aio/aio_callback.c AIO_HCB_MD_WRITEV+1 AIO_HCB_PAGE_WRITEV+1 aio_md_writev_cb+1 aio_page_writev_cb+1 AIO_HCB_PREALLOCATE+1 aio_preallocate_cb+1 AIO_HCB_WAL+1 aio_wal_cb+1 AIO_HCB_WAL_SYNC+1 aio_wal_sync_cb+1 AIO_HCB_BACKUP+1 aio_backup_cb+1
# target: src/backend/storage/aio/aio_target.c AIO_TID_WAL+1 aio_wal_target_info+1 AIO_TID_BACKUP+1 aio_backup_target_info+1

s|^\tPGAIO_HCB_LOCAL_BUFFER_READV,$|&\n\n\tAIO_HCB_MD_WRITEV,\n\tAIO_HCB_PAGE_WRITEV,\n\tAIO_HCB_PREALLOCATE,\n\tAIO_HCB_WAL,\n\tAIO_HCB_WAL_SYNC,\n\tAIO_HCB_BACKUP,|
s|^(#define PGAIO_HCB_MAX\t).*|\1AIO_HCB_BACKUP|
s|^\tCALLBACK_ENTRY\(PGAIO_HCB_LOCAL_BUFFER_READV,.*|&\n\n\tCALLBACK_ENTRY(AIO_HCB_MD_WRITEV, aio_md_writev_cb),\n\tCALLBACK_ENTRY(AIO_HCB_PAGE_WRITEV, aio_page_writev_cb),\n\tCALLBACK_ENTRY(AIO_HCB_PREALLOCATE, aio_preallocate_cb),\n\tCALLBACK_ENTRY(AIO_HCB_WAL, aio_wal_cb),\n\tCALLBACK_ENTRY(AIO_HCB_WAL_SYNC, aio_wal_sync_cb),\n\tCALLBACK_ENTRY(AIO_HCB_BACKUP, aio_backup_cb),|
s|^\tPGAIO_TID_SMGR,$|&\n\n\tAIO_TID_WAL,\n\tAIO_TID_BACKUP,|
s|^(#define PGAIO_TID_COUNT[ \t]+).*|\1(AIO_TID_BACKUP + 1)|
s|^\t\[PGAIO_TID_SMGR\] = &aio_smgr_target_info,$|&\n\t[AIO_TID_WAL] = \&aio_wal_target_info,\n\t[AIO_TID_BACKUP] = \&aio_backup_target_info,|
