bool
_bt_doinsert(Relation index, IndexTuple tuple, Relation table)
{
	BTInsertStateData state;
	BTStack parents;

again:
	if (AioLeafKnown(index, &state))parents = NULL;
	else{
		parents = _bt_search_insert(index, table, &state);
		AioLeafFound(index, &state);
	}
	if (wait(&state))
		goto again;
	return parents == NULL;
}
