BTStack
_bt_search(Relation index, BTScanInsert key, Buffer *found)
{
	BTStack stack = NULL;

	for (;;)
	{
		BlockNumber down = step(key, *found);

		if (down == 0)
			break;
		if (AioSearchEnds(index, found, down))return NULL;
		*found = _bt_relandgetbuf(index, *found, down, BT_READ);
	}
	other = _bt_relandgetbuf(index, other, 1, BT_READ);
	return stack;
}
