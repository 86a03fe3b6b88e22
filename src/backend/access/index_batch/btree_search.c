/*-------------------------------------------------------------------------
 *
 * btree_search.c
 *	  End a search before it reads a page.
 *
 * The leaf is all that a search of a large btree has to wait for, and its
 * parent tells which it is.  A task that looks up a key ahead of need can begin
 * to read the leaf, end, and look the key up again when the leaf has arrived.
 *
 * Whoever finds many keys (btree_find.c) wants those for which no page has to
 * be read, and is told which page each of the others needs first.
 *
 * Suspends:  never.
 * Tests:     src/test/aio/lookup.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "aio/btree_find.h"
#include "aio/btree_search.h"
#include "aio/read.h"
#include "aio/task.h"
#include "storage/bufmgr.h"

/*
 * Does the task's hook want the search to end rather than go on to this leaf?
 */
static bool
ends_at_leaf(Relation rel, Buffer parent, BlockNumber leaf)
{
	AioPageEvent event = {.rel = rel,.buffer = InvalidBuffer,.leaf = leaf};

	if (aio_current_task == NULL || AioTaskSubject() != rel ||
		BTPageGetOpaque(BufferGetPage(parent))->btpo_level != 1)
		return false;
	AioTaskTell(&event);
	return event.end;
}

/*
 * A search is going to descend from this page, which it has locked, to a child.
 * If it ends here instead, give the page back, and return true.
 */
bool
AioBtreeSearchEnds(Relation rel, Buffer *buffer, BlockNumber child)
{
	if (aio_btree_finding == rel)
	{
		if (AioPageIsHere(rel, child))
			return false;
		aio_btree_missing = child;
	}
	else if (!ends_at_leaf(rel, *buffer, child))
		return false;
	_bt_relbuf(rel, *buffer);
	*buffer = InvalidBuffer;
	return true;
}
