void
gistdoinsert(Relation r, IndexTuple itup, GISTSTATE *giststate)
{
	GISTInsertState state = {.r = r};
	GISTInsertStack *stack = state.stack;
	IndexTuple	newtup;

	newtup = gistgetadjusted(state.r, idxtuple, itup, giststate);
	if (newtup)
	{
		if (gistinserttuple(&state, stack, giststate, newtup, downlinkoffnum))
			return;
	}
	gistinserttuple(&state, stack, giststate, itup, InvalidOffsetNumber);
}
