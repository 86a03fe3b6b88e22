"""Faults in what goes to clients and to foreign servers: see mutations.py."""
import functools

import fault

FOREIGN = 'src/backend/foreign'
LIBPQ = 'src/backend/libpq'
MESSAGES = ('aio_write/009_messages', 'aio_core/003_client', 'aio_write/007_slow_client', 'aio_toast/002_slow_client',
            'aio_core/001_interrupts')
TESTS = {
    f'{FOREIGN}/foreign.c': ('aio_foreign/001_insert',),
    f'{FOREIGN}/foreign_scan.c': ('aio_foreign/002_scan', 'aio_foreign/001_insert'),
    f'{LIBPQ}/client.c': MESSAGES,
    f'{LIBPQ}/pqcomm_internals.c': ('aio_index/020_paused_copy', 'aio_core/003_client'),
}

of = functools.partial(fault.of, folder=FOREIGN)

MUTATIONS = [
    *of('foreign.c',
        ('a batch that has failed is forgotten', 'if (insert->estate == estate && insert->error != NULL)',
         'if (false && insert->error != NULL)'),
        ('rows that a server has not inserted count', 'if (insert->processed != NULL)\n', 'if (false)\n'),
        ('a statement ends with batches on their way', '\twhile (wait_for_some(estate))\n\t\traise_failure(estate);\n',
         '\t(void) wait_for_some;\n'),
        ('what is inserted on the way into other tables is deferred', 'return handed_over != NULL && handed_over_for == rel;',
         'return handed_over != NULL;'),
        ('batches of a subtransaction that has failed are awaited', 'if (event == SUBXACT_EVENT_ABORT_SUB)\n\t\tforget_pending',
         'if (false)\n\t\tforget_pending'),
        ('a subtransaction that has failed takes batches of all', 'forget_pending(GetCurrentTransactionNestLevel());',
         'forget_pending(0);'),
        ('an Append waits for scans only', 'if (n == 0)\n\t\treturn WaitEventSetWait', 'if (n >= 0)\n\t\treturn WaitEventSetWait'),
        ("the context of a server's error names a line", '\tif (relname_only != NULL)\n\t\t*relname_only = true;\n', '')),
    *of('foreign_scan.c',
        ('rows that may not be needed are asked for',
         'return may_read_ahead(estate) && AioAllRowsWanted(estate, node->ss.ps.plan, true);', 'return may_read_ahead(estate);'),
        ('a function may catch the error of a server', 'return AioMayFetchMany(node) && AioRunIsUndisturbed(node->ss.ps.state);',
         'return AioMayFetchMany(node);'),
        ('what an UPDATE has read is read ahead', '(stmt->commandType == CMD_SELECT || stmt->commandType == CMD_INSERT);', 'true;'),
        ('children of an Append are asked that may not be executed', 'if (!wanted && !AioAllRowsWanted(estate, node->ps.plan, false))',
         'if (false && !wanted)'),
        ('rows that are locked are read ahead', 'stmt != NULL && stmt->rowMarks == NIL &&', 'stmt != NULL &&')),
    *of('client.c',
        ('a message is sent with an LWLock held', 'CritSectionCount > 0 || AioHeldLWLocks() > 0 || AioGateIsMine() ||',
         'CritSectionCount > 0 || AioGateIsMine() ||'),
        ('a message is sent with I/O staged', 'AioGateIsMine() ||\n\t\thas_staged();', 'AioGateIsMine();'),
        ('messages that are kept come after later ones', 'if (aio_messages_kept)\n\t\tAioSendKept();\n\tAssert', 'Assert'),
        ('a message is put into the middle of another', 'if (type == PqMsg_NoticeResponse && is_busy())\n\t{', 'if (false)\n\t{'),
        ('a task whose siblings hold something waits for the client', 'return GetAwaitedLock() != NULL && AioSiblingsIdle();',
         'return true;'),
        ('what comes after a key is told while that waits', 'if (AioIsLaterPlace(&kept->place))', 'if (false)'),
        ('a PANIC waits for the client', 'if (panicking)\n', 'if (false)\n'),
        ('reads are in flight while the client is waited for', 'if (unlikely(aio_read_ahead_used) && !ending)', 'if (false)'),
        ('a FATAL error is told with LWLocks held', '\t\tLWLockReleaseAll();\n\t\tAioOpenGate();', '\t\tAioOpenGate();'),
        folder=LIBPQ),
    *of('pqcomm_internals.c',
        ('the rest of a message is not skipped', '(void) pq_discardbytes(rest);', '(void) rest;'),
        ('interrupts wait as long as the client', 'ProcessClientReadInterrupt(true);', ';'),
        ('a client that is gone is waited for', '\t\tif (r == 0)\n\t\t\treturn true;', '\t\tif (r == 0)\n\t\t\treturn false;'),
        folder=LIBPQ),
]
