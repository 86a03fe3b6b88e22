# Upstream's AIO knows our callbacks.
#
# What: four more callback ids, at the end of the list, and their entries in the table.
# Without it: what is to be done at the end of a write could not be said.
# Could disappear: if callbacks could be registered.
#
# target: src/include/storage/aio.h AIO_HCB_MD_WRITEV+1 AIO_HCB_PAGE_WRITEV+1 AIO_HCB_EXTEND+1 AIO_HCB_WAL+2 PGAIO_HCB_LOCAL_BUFFER_READV-1
# target: src/backend/storage/aio/aio_callback.c AIO_HCB_MD_WRITEV+1 AIO_HCB_PAGE_WRITEV+1 aio_md_writev_cb+1 aio_page_writev_cb+1 AIO_HCB_EXTEND+1 aio_extend_cb+1 AIO_HCB_WAL+1 aio_wal_cb+1

s|^\tPGAIO_HCB_LOCAL_BUFFER_READV,$|&\n\n\tAIO_HCB_MD_WRITEV,\n\tAIO_HCB_PAGE_WRITEV,\n\tAIO_HCB_EXTEND,\n\tAIO_HCB_WAL,|
s|^(#define PGAIO_HCB_MAX\t).*|\1AIO_HCB_WAL|
s|^\tCALLBACK_ENTRY\(PGAIO_HCB_LOCAL_BUFFER_READV,.*|&\n\n\tCALLBACK_ENTRY(AIO_HCB_MD_WRITEV, aio_md_writev_cb),\n\tCALLBACK_ENTRY(AIO_HCB_PAGE_WRITEV, aio_page_writev_cb),\n\tCALLBACK_ENTRY(AIO_HCB_EXTEND, aio_extend_cb),\n\tCALLBACK_ENTRY(AIO_HCB_WAL, aio_wal_cb),|
