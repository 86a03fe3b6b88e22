"""Faults in the code that changes pages of indexes, each of which some test has to notice.

Each is a passage of a source file, which is there once, and what stands there instead.  TESTS are tried in this order,
for each file, until one of them fails.
"""
import collections

Mutation = collections.namedtuple('Mutation', 'name file old new')

BATCH = 'src/backend/access/index_batch'
BTREE = ('aio_index/013_leaf_splits', 'aio_index/008_leaf', 'aio_index/009_leaf_changes', 'aio_sql_batched/regress', 'aio_index/002_random',
         'aio_index/007_same_keys', 'aio_isolation_on/isolation')
GIN = ('aio_index/011_gin_leaf', 'aio_sql_batched/regress', 'aio_isolation_on/isolation', 'aio_index/002_random')
TESTS = {
    f'{BATCH}/btree_fill.c': BTREE,
    f'{BATCH}/btree_drain.c': BTREE,
    f'{BATCH}/nbtinsert_internals.c': BTREE,
    f'{BATCH}/entry_sort.c': BTREE,
    f'{BATCH}/leaf_wal.c': BTREE[:3] + GIN[:1],
    f'{BATCH}/gin_fill.c': GIN,
}


def of(file, *mutations):
    return [Mutation(name, f'{BATCH}/{file}', old, new) for name, old, new in mutations]


MUTATIONS = [
    *of('btree_fill.c',
        ('an equal item is passed over', 'if (result > 0)\n\t\t{\n\t\t\t/* farther', 'if (result >= 0)\n\t\t{\n\t\t\t/* farther'),
        ('no item is found equal', '*equal = result == 0;', '*equal = false;'),
        ('entries beyond the high key stay on the leaf', 'if (result > 0)\n\t\t\t{\n\t\t\t\tend = AIO_FILL_BEYOND;',
         'if (false)\n\t\t\t{\n\t\t\t\tend = AIO_FILL_BEYOND;'),
        ('more entries are taken for those of the leaf than are', 'known = next + 1;', 'known = Min(next + 2, n);'),
        ('a key equal to the high key stays on the leaf', 'if (result == 0 && key->scantid == NULL)',
         'if (false && key->scantid == NULL)'),
        ('a leaf has more room than it has', 'if (items + size > room)', 'if (items > room)'),
        ('an entry with an equal item is put beside it', 'if (equal)\n\t\t{\n\t\t\tend = AIO_FILL_EQUAL;',
         'if (false)\n\t\t{\n\t\t\tend = AIO_FILL_EQUAL;'),
        ('a duplicate within the batch is put', 'if (batch->unique && AioGetEntryRow(tuple)->duplicate)',
         'if (false && AioGetEntryRow(tuple)->duplicate)'),
        ('positions are not moved by those before', 'OffsetNumber offnum = positions[i] + i;',
         'OffsetNumber offnum = positions[i];'),
        ('serializable readers are not asked', 'CheckForSerializableConflictIn(index, NULL, BufferGetBlockNumber(leaf));', ''),
        ('a leaf is not marked as dirty', 'MarkBufferDirty(leaf);', ''),
        ('entries are not logged one by one', 'if (logged && !together)', 'if (false)'),
        ('entries are not logged together', 'if (together)\n', 'if (false)\n'),
        ('too few line pointers are logged', 'AioLogLeaf(leaf, positions[0], old_upper);',
         'AioLogLeaf(leaf, positions[0] + 1, old_upper);'),
        ('a record has a wrong position', 'xl_btree_insert record = {.offnum = offnum};',
         'xl_btree_insert record = {.offnum = offnum + 1};'),
        ('a key is searched with its TID though it has to be unique', 'batch->unique && !key->anynullkeys ? NULL :',
         'false ? NULL :'),
        ('a key with nulls has to be unique', 'key->anynullkeys = !index->rd_index->indnullsnotdistinct;',
         'key->anynullkeys = false;'),
        ('nulls are values', 'column->sk_flags |= SK_ISNULL;', ''),
        ('no leaf is split before it is filled', 'if (n <= SPLIT_MIN || !P_ISLEAF(opaque)', 'if (true || !P_ISLEAF(opaque)'),
        ('the first entry of the right half stays on the left', '*newitemonleft = false;', '*newitemonleft = true;'),
        ('equal keys are not deduplicated', 'if (deduplicates && have_equal_keys(index, page, entries, known - 1))', 'if (false)'),
        ('a page above is split where the leaf was', 'aio_btree_split_before = InvalidOffsetNumber;\n\t*newitemonleft', '*newitemonleft'),
        ('a deleted page is taken for a leaf', 'if (!P_ISLEAF(opaque) || P_IGNORE(opaque) ||', 'if (!P_ISLEAF(opaque) ||'),
        ('a page whose split is incomplete is taken for a leaf', ' || P_INCOMPLETE_SPLIT(opaque))', ')')),
    *of('btree_drain.c',
        ('entries equal to a separator go to its right', '_bt_compare(drain->index, key, page, mid) > 0)',
         '_bt_compare(drain->index, key, page, mid) >= 0)'),
        ('the first entry of the next leaf goes to this one', 'if (is_beyond(drain, mid, item))\n\t\t\thigh = mid;',
         'if (is_beyond(drain, mid, item))\n\t\t\thigh = mid + 1;'),
        ('an entry for which there is no room is forgotten', 'insert_entry(drain, first++);', 'first++;'),
        ('an entry that was inserted with a split is inserted again', '\tentries[0] = next;\n', ''),
        ('a leaf is split with an entry of its left half', 'next = entries[split.stay];', 'next = entries[split.stay - 2];'),
        ('a page is left out of the path to a leaf', 'path[level - 1].bts_parent = &path[level];', ''),
        ('a conflict is forgotten', 'else if (!AioBtreeInsertOnLeaf(drain->batch, drain->key, leaf, tuple))\n\t\tAioBacklogConflict(drain->batch, tuple);',
         'else\n\t\tAioBtreeInsertOnLeaf(drain->batch, drain->key, leaf, tuple);'),
        ('the end of what is planned by a high key is ignored', 'end = find_end(drain, drain->planned, P_HIKEY);',
         'end = drain->nentries;')),
    *of('nbtinsert_internals.c',
        ('an entry goes before the place where its leaf is split', 'aio_btree_split_before = offset;',
         'aio_btree_split_before = --offset;'),
        ('what a serializable transaction has locked is not locked on the right', 'PredicateLockPageSplit(index, block, BufferGetBlockNumber(right));', ''),
        ('serializable readers are not asked before a split', 'CheckForSerializableConflictIn(index, NULL, block);', '')),
    *of('entry_sort.c',
        ('equal keys are in no order', 'return ItemPointerCompare(&a->tuple->t_tid, &b->tuple->t_tid);', 'return 0;'),
        ('descending columns ascend', 'if (first->ssup_reverse)\n\t\tflip = ~flip;', ''),
        ('signed keys compare as unsigned ones', 'flip = (Datum) 1 << (SIZEOF_DATUM * BITS_PER_BYTE - 1);', 'flip = 0;'),
        ('duplicates are not marked', 'AioGetEntryRow(entries[i].tuple)->duplicate = true;', '')),
    *of('leaf_wal.c',
        ('the last line pointer is not logged', 'header->pd_lower);\n\tlog_part(page, &parts[2]',
         'header->pd_lower - sizeof(ItemIdData));\n\tlog_part(page, &parts[2]'),
        ('the last item is not logged', 'header->pd_upper, end);', 'header->pd_upper, end - MAXIMUM_ALIGNOF);'),
        ('the end of line pointers is not logged', 'log_part(page, &parts[0], offsetof(PageHeaderData, pd_lower),',
         'log_part(page, &parts[0], offsetof(PageHeaderData, pd_upper),'),
        ('the page has no LSN', 'PageSetLSN(page, XLogInsert(RM_GENERIC_ID, 0));', 'XLogInsert(RM_GENERIC_ID, 0);')),
    *of('gin_fill.c',
        ('an equal item is passed over', 'if (result > 0)\n\t\t{\n\t\t\t/* farther', 'if (result >= 0)\n\t\t{\n\t\t\t/* farther'),
        ('keys beyond the leaf stay on it', 'if (position > max && i > 0 && !GinPageRightMost(page))', 'if (false)'),
        ('a key is put twice in a visit', 'if (i > 0 && key->again)', 'if (false && key->again)'),
        ('positions are not moved by those before', 'leaf_tuple->offset = position + nfresh;', 'leaf_tuple->offset = position;'),
        ('what is replaced is not released', 'leaf_tuple->released = equal ? item_bytes(old) : 0;', 'leaf_tuple->released = 0;'),
        ('a leaf has more room than it has', 'if (added > room + released)', 'if (added > room + released + BLCKSZ)'),
        ('rows of a posting tree are forgotten', 'i < visit->ntrees; i++)', 'i < 0; i++)'),
        ('serializable readers are not asked', 'if (visit->ntuples == 0)\n', 'if (false)\n'),
        ('a replaced item is not logged', 'visit->changed_end = Max(visit->changed_end,', '(void) Max(visit->changed_end,'),
        ('tuples are not logged together', 'if (together)\n', 'if (false)\n'),
        ('line pointers before the first are not logged', 'OffsetNumber first = moves_items(visit) ? FirstOffsetNumber :',
         'OffsetNumber first = false ? FirstOffsetNumber :')),
]
