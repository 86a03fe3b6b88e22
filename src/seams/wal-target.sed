# Upstream's AIO can write WAL.
#
# What: one more kind of target, at the end of the list, and its entry in the table.
# Without it: an I/O worker would not know which file to open.
# Could disappear: if targets could be registered.
#
# target: src/include/storage/aio.h AIO_TID_WAL+2 PGAIO_TID_SMGR-1
# target: src/backend/storage/aio/aio_target.c AIO_TID_WAL+1 aio_wal_target_info+1

s|^\tPGAIO_TID_SMGR,$|&\n\n\tAIO_TID_WAL,|
s|^(#define PGAIO_TID_COUNT[ \t]+).*|\1(AIO_TID_WAL + 1)|
s|^\t\[PGAIO_TID_SMGR\] = &aio_smgr_target_info,$|&\n\t[AIO_TID_WAL] = \&aio_wal_target_info,|
