// A btree insert may begin on the leaf where the one before it ended.
//
// What: _bt_doinsert() asks us for the leaf before it searches the tree, and tells us what a search has found.
// Without it: entries that are inserted in index order descend the tree once each.
// Could disappear: if aminsert took several entries.
//
// target: src/backend/access/nbtree/nbtinsert.c AioLeafKnown+1 AioLeafFound+1 stack+1 NULL+1
//   in _bt_doinsert

@@
expression stack, rel, heap, state;
symbol NULL;
@@
+ if (AioLeafKnown(rel, &state))
+ stack = NULL;
+ else
+ {
  stack = _bt_search_insert(rel, heap, &state);
+ AioLeafFound(rel, &state);
+ }
