// A leaf of a btree may be split where a batch of entries needs it.
//
// What: _bt_split() asks us where to split a page.  We ask upstream's function, unless the place is known beforehand.
// Without it: a leaf that has no room for the entries of a batch is filled, and split in halves, which are filled and split
//   again, so that each entry is moved, and logged, more than once, and pages end up half full.
// Could disappear: if _bt_split() were told the place by its caller.
//
// target: src/backend/access/nbtree/nbtinsert.c AioBtreeFindSplit+1 _bt_findsplitloc-1
//   in _bt_split

@@
@@
- _bt_findsplitloc
+ AioBtreeFindSplit
  (...)
