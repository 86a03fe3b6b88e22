/*-------------------------------------------------------------------------
 *
 * btree_search.c
 *	  End a search before it reads a leaf.
 *
 * The leaf is all that a search of a large btree has to wait for, and its
 * parent tells which it is.  A task that looks up a key ahead of need can begin
 * to read the leaf, end, and look the key up again when the leaf has arrived.
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
#include "aio/btree_search.h"
#include "aio/read.h"
#include "aio/task.h"
#include "storage/bufmgr.h"

/*
 * A search is going to descend from this page, which it has locked, to a child.
 * If the child is a leaf and the task's hook wants the search to end, give the
 * page back, and return true.
 */
bool
AioBtreeSearchEnds(Relation rel, Buffer *buffer, BlockNumber leaf)
{
	AioPageEvent event = {.rel = rel,.buffer = InvalidBuffer,.leaf = leaf};

	if (BTPageGetOpaque(BufferGetPage(*buffer))->btpo_level != 1 ||
		AioTaskSubject() != rel)
		return false;
	AioTaskTell(&event);
	if (event.end)
	{
		_bt_relbuf(rel, *buffer);
		*buffer = InvalidBuffer;
	}
	return event.end;
}
