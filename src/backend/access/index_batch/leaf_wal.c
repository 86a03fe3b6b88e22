/*-------------------------------------------------------------------------
 *
 * leaf_wal.c
 *	  Log many changes of a leaf in one record.
 *
 * It is a record of generic WAL: the parts of the page that have changed
 * (generic_xlog.c).  Upstream makes such a record from two versions of the
 * page; here it is known what has changed.  The record has an image of the page
 * instead if one is due.
 *
 * An image alone (XLOG_FPI) would do as well where most of the page has
 * changed, and would be as long; but it is not compared with what is on a
 * standby when wal_consistency_checking is set, and a record of generic WAL is.
 *
 * Tests: src/test/aio/index/t/008_leaf.pl,
 *		  src/test/aio/index/t/011_gin_leaf.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "leaf_wal.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

/* A part of a page, as in generic WAL; the data follow. */
typedef struct PagePart
{
	OffsetNumber offset;
	OffsetNumber length;
} PagePart;

/* the parts of a page that a record consists of, at most */
#define PARTS_MAX		4

static void
log_part(Page page, PagePart *part, int offset, int end)
{
	Assert(offset <= end && end <= BLCKSZ);
	part->offset = offset;
	part->length = end - offset;
	XLogRegisterBufData(0, part, sizeof(PagePart));
	XLogRegisterBufData(0, page + offset, part->length);
}

/*
 * The length of AioLogLeaf()'s record, unless it has an image: for so many line
 * pointers, and so many bytes of items.
 */
Size
AioLeafRecordBytes(int line_pointers, Size items)
{
	return AIO_BLOCK_RECORD_BYTES + 3 * sizeof(PagePart) +
		2 * sizeof(LocationIndex) + line_pointers * sizeof(ItemIdData) + items;
}

/*
 * Log what has changed on a leaf by adding, or replacing, items: where its free
 * space is, its line pointers from 'first' on, and the items before 'end', an
 * offset in the page.  Sets the page's LSN.  Called in the critical section in
 * which the leaf, which is locked exclusively, was changed and marked as dirty.
 *
 * If replay is to compare pages, it compares also what an index does not log:
 * hints at its line pointers, and in its special space.  Then they are logged,
 * too.
 */
void
AioLogLeaf(Buffer leaf, OffsetNumber first, int end)
{
	Page		page = BufferGetPage(leaf);
	PageHeader	header = (PageHeader) page;
	PagePart	parts[PARTS_MAX];

	Assert(CritSectionCount > 0);
	XLogBeginInsert();
	XLogRegisterBuffer(0, leaf, REGBUF_STANDARD);
	if (unlikely(wal_consistency_checking[RM_GENERIC_ID]))
	{
		first = FirstOffsetNumber;
		log_part(page, &parts[3], header->pd_special, BLCKSZ);
	}
	log_part(page, &parts[0], offsetof(PageHeaderData, pd_lower),
			 offsetof(PageHeaderData, pd_special));
	log_part(page, &parts[1], (char *) PageGetItemId(page, first) - page,
			 header->pd_lower);
	log_part(page, &parts[2], header->pd_upper, end);
	PageSetLSN(page, XLogInsert(RM_GENERIC_ID, 0));
}
