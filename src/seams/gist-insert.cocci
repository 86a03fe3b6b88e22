// Entries of a batch that belong to a leaf of a GiST index are put there together.
//
// What: gistdoinsert() has us compare its tuple with the downlink it has chosen, and insert the tuple into the leaf.  We
//   call upstream's functions, remember the downlink, and add the tuples that follow to the one that is inserted.
// Without it: each entry is searched for from the root, by comparing it with all items of a page on each level.
// Could disappear: if aminsert took several entries.
//
// target: src/backend/access/gist/gist.c AioGistAdjust+1 gistgetadjusted-1 stack+1 AioGistInsertOnLeaf+1 gistinserttuple-1 InvalidOffsetNumber-1
//   in gistdoinsert

@@
identifier state, downlink, tuple, giststate;
@@
- gistgetadjusted(state.r, downlink, tuple, giststate)
+ AioGistAdjust(state.r, stack, downlink, tuple, giststate)

@@
expression state, stack, giststate, tuple;
@@
- gistinserttuple(state, stack, giststate, tuple, InvalidOffsetNumber)
+ AioGistInsertOnLeaf(state, stack, giststate, tuple)
