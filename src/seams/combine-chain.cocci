// What pg_combinebackup puts together has no block from before the relation was shorter.
//
// What: a block comes from no backup before one whose file ended in front of it.
// Without it: only the newest backup is asked.  In a chain, a relation that was cut short before one incremental backup, and
//   has grown again by pages that nobody has used yet before the next, gets rows that were deleted back in their place.
// Could disappear: when upstream looks at each backup of the chain.
//
// target: src/bin/pg_combinebackup/reconstruct.c if+1 s+2 latest_source+2 truncation_block_length+4 full_copy_possible+1 false+1
//   in reconstruct_from_incremental_file

@chain@
symbol s, i, sourcemap, latest_source, full_copy_possible, num_blocks;
statement S;
@@
  reconstruct_from_incremental_file(...)
  {
  <+...
  for (i = 0; i < s->num_blocks; ++i) S
+ if (s->truncation_block_length < latest_source->truncation_block_length)
+ {
+	latest_source->truncation_block_length = s->truncation_block_length;
+	full_copy_possible = false;
+ }
  ...+>
  }
