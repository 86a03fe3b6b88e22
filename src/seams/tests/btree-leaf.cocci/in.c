bool
_bt_doinsert(Relation index, IndexTuple tuple, Relation table)
{
	BTInsertStateData state;
	BTStack parents;

again:
	parents = _bt_search_insert(index, table, &state);
	if (wait(&state))
		goto again;
	return parents == NULL;
}
