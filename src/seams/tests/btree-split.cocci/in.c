static Buffer
_bt_split(Relation index, Buffer page, OffsetNumber at, bool *left)
{
	OffsetNumber first;

	first = _bt_findsplitloc(index, page, at,
		left);
	return divide(page, first, *left);
}
