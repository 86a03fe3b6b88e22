void
gistdoinsert(Relation r, IndexTuple itup, GISTSTATE *giststate)
{
	GISTInsertState state = {.r = r};
	GISTInsertStack *stack = state.stack;
	IndexTuple	newtup;

	newtup = AioGistAdjust(state.r, stack, idxtuple, itup, giststate);
	if (newtup)
	{
		if (gistinserttuple(&state, stack, giststate, newtup, downlinkoffnum))
			return;
	}
	AioGistInsertOnLeaf(&state, stack, giststate, itup);
}
