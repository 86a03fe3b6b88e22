static Buffer
_bt_split(Relation index, Buffer page, OffsetNumber at, bool *left)
{
	OffsetNumber first;

	first = AioBtreeFindSplit(index, page, at,
		left);
	return divide(page, first, *left);
}
