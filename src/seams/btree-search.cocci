// A search in a btree may end before it reads a page.
//
// What: _bt_search() asks us, in a task or while we find many keys, before it goes on from an inner page to a child.
// Without it: a lookup that is made ahead of need waits for the leaf, and all others of its group with it; and keys that are
//   found together are found one by one, since some might need a page that is not in memory.
// Could disappear: if a search could tell which leaf it will read without reading it.
//
// target: src/backend/access/nbtree/nbtsearch.c AioSearchEnds+1 return+1 if+1 NULL+1
//   in _bt_search

@@
expression rel, buffer, leaf, access;
symbol NULL;
@@
+ if (AioSearchEnds(rel, buffer, leaf))
+ return NULL;
  *buffer = _bt_relandgetbuf(rel, *buffer, leaf, access);
