"""Faults in logical replication, which collects entries and looks ahead: see mutations.py."""
import functools

import fault

EXECUTOR = 'src/backend/executor'
LOGICAL = 'src/backend/replication/logical'
APPLY = ('aio_index/003_apply', 'aio_replication/005_random', 'aio_ri/007_lock_room')
AHEAD = ('aio_replication/001_apply_ahead', 'aio_replication/005_random', 'aio_replication/002_damaged', 'aio_replication/004_initial_sync')
TESTS = {
    f'{EXECUTOR}/apply.c': APPLY,
    f'{EXECUTOR}/apply_ahead.c': AHEAD,
    f'{EXECUTOR}/apply_code.c': APPLY[:2],
    f'{EXECUTOR}/apply_key.c': AHEAD,
    f'{LOGICAL}/receive_ahead.c': AHEAD + APPLY[:1],
    f'{LOGICAL}/worker_internals.c': ('aio_replication/004_initial_sync', 'aio_index/003_apply', 'aio_replication/001_apply_ahead'),
}

of = functools.partial(fault.of, folder=EXECUTOR)

MUTATIONS = [
    *of('apply.c',
        ('entries are collected in a subtransaction', 'aio_index_batch_memory == 0 || GetCurrentTransactionNestLevel() > 1 ||',
         'aio_index_batch_memory == 0 ||'),
        ('indexes stay locked while any lock is waited for', '!AioLockIsToBeHad(tag, mode, session))\n\t\tAioEndApply();',
         '(false && !AioLockIsToBeHad(tag, mode, session)))\n\t\tAioEndApply();'),
        ('who waits for an index waits for the end of the transaction', 'if (may_end() && time_to_look() && somebody_waits())',
         'if (false && may_end() && time_to_look() && somebody_waits())'),
        ("what a row's entries are put into is freed before the row is done", '\t\tif (!row_under_way)\n\t\t\tfree_statement();',
         '\t\trow_under_way = false;\n\t\tfree_statement();'),
        ('a statement survives the abort of its transaction', "transaction's */\n\t\t\tstatement = NULL;", "transaction's */"),
        ('a worker has as many indexes locked as there is room', 'rri->ri_NumIndices > room / LOCKS_SHARE);',
         'rri->ri_NumIndices > room);'),
        ('an index that somebody makes meanwhile gets no entries', 'if (!same_indexes(table->rri, rri))',
         'if (false && !same_indexes(table->rri, rri))'),
        ('other indexes stay locked while a row runs code', '(code == AIO_ROW_RUNS_LATE && !has_only(RelationGetRelid(rel))))', 'false)')),
    *of('apply_code.c',
        ('defaults run nothing', 'if (AioAppliedColumnIsMissing(relid, column))',
         'if (false && AioAppliedColumnIsMissing(relid, column))'),
        ('checks of domains run nothing', 'return domain_runs_code(type) || type_runs_code(base);',
         'return (false && domain_runs_code(type)) || type_runs_code(base);'),
        ('what is known of a table stays when it is altered',
         'if (!OidIsValid(relid) || relid == asked_about ||\n\t\t(tables != NULL && hash_search(tables, &relid, HASH_FIND, NULL) != '
         'NULL))', 'if (!OidIsValid(relid) || relid == asked_about)'),
        ('conditions of triggers run nothing', 'if (may_fire(&rel->trigdesc->triggers[i]))',
         'if (false && may_fire(&rel->trigdesc->triggers[i]))'),
        ('expressions of indexes run nothing', 'result = stored_runs_code(INDEXRELID, tuple, Anum_pg_index_indexprs) ||\n\t\t',
         'result = '),
        ('volatile functions in C run nothing',
         'return AioFunctionIsUserCode(funcid) ||\n\t\t\t\tfunc_volatile(funcid) == PROVOLATILE_VOLATILE;',
         'return AioFunctionIsUserCode(funcid);')),
    *of('apply_ahead.c',
        ('the last message that is kept is passed over', 'ahead->current = NULL;\n\tif (ahead->first == ahead->end)',
         'ahead->current = NULL;\n\tif (ahead->first == ahead->end || ahead->first + 1 == ahead->end)'),
        ('more messages are kept than there is room for', '\t\t   ahead->end - ahead->first < ahead->nmessages &&\n', ''),
        ('messages are looked up outside of transactions', 'if (ahead->ndone == ahead->end || !IsTransactionState() ||\n\t\t',
         'if (ahead->ndone == ahead->end ||\n\t\t')),
    *of('apply_key.c',
        ('values of any type are converted ahead', 'if (type_is_known(att->atttypid))', 'if (true || type_is_known(att->atttypid))'),
        ('a binary value of any length is received ahead', '!OidIsValid(column->receive) ||\n\t\tlen != column->typlen)',
         '!OidIsValid(column->receive))'),
        ('changes that are not applied are looked up', 'if (entry == NULL || !AioAppliesChangesOf(entry))', 'if (entry == NULL)'),
        ('what depends on a relation is kept when that is altered', 'keys_stale |= depends_on(key, relid);',
         'keys_stale |= false && depends_on(key, relid);')),
    *of('receive_ahead.c',
        ('the end of the connection is met before messages that are kept', 'while (take_received(&source, buffer, &len))',
         'while (end_result == 0 && take_received(&source, buffer, &len))'),
        ('a file of changes is left where it was read ahead', 'if (BufFileSeek(file, next.fileno, next.offset, SEEK_SET) != 0)',
         'if (false && BufFileSeek(file, next.fileno, next.offset, SEEK_SET) != 0)'),
        ('a publisher is waited for with indexes locked', '\t\tif (len == 0)\n\t\t\tAioEndApply();',
         '\t\tif (false)\n\t\t\tAioEndApply();'),
        ('a leader is waited for with indexes locked', '\t\tif (result == SHM_MQ_WOULD_BLOCK)\n\t\t\tAioEndApply();',
         '\t\tif (false)\n\t\t\tAioEndApply();'),
        folder=LOGICAL),
    *of('worker_internals.c',
        ('a relation that is not ready ends a parallel worker', 'if (am_parallel_apply_worker() && entry->state',
         'if (false && entry->state'),
        folder=LOGICAL),
]
