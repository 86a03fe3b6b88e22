"""Faults in WAL on its way to disk, in commits, and in recovery: see mutations.py."""
import functools

import fault

TRANSAM = 'src/backend/access/transam'
REPLICATION = 'src/backend/replication'
PIPELINE = ('aio_wal/001_pipeline', 'aio_wal/003_crash', 'aio_wal/005_streams', 'aio_wal/004_kill')
ERRORS = ('aio_wal/002_errors', 'aio_wal/001_pipeline', 'aio_wal/003_crash')
RECEIVED = ('aio_replay/006_walreceiver', 'aio_replay/002_standby', 'aio_wal/005_streams')
COMMIT = ('aio_wal/006_pipelined_commits', 'aio_core/003_client', 'aio_wal/004_kill')
TESTS = {
    f'{TRANSAM}/commit.c': COMMIT,
    f'{TRANSAM}/replay.c': ('aio_replay/003_damaged', 'aio_replay/001_crash', 'aio_replay/002_standby', 'aio_replay/004_archive',
                            'aio_replay/008_extensions', 'aio_replay/005_writes'),
    f'{TRANSAM}/wal.c': PIPELINE,
    f'{TRANSAM}/wal_end.c': ('aio_wal/007_behind_end',),
    f'{TRANSAM}/wal_file.c': ERRORS,
    f'{TRANSAM}/wal_port.c': PIPELINE[:2],
    f'{TRANSAM}/wal_target.c': ERRORS[:1] + RECEIVED[:1] + ('aio_wal/001_pipeline',),
    f'{REPLICATION}/walreceiver_internals.c': RECEIVED,
}

of = functools.partial(fault.of, folder=TRANSAM)

MUTATIONS = [
    *of('wal.c',
        ('a write is retired before one that is not complete', 'if (!write->done)\n\t\t\tbreak;', 'if (false)\n\t\t\tbreak;'),
        ('a sync is retired before one that is not complete', 'if (!first->done)\n\t\t\tbreak;', 'if (false)\n\t\t\tbreak;'),
        ('a sync covers what is written while it is in flight', 'flushed = Max(flushed, first->upto);',
         'flushed = Max(flushed, written);'),
        ('a page that is not complete is written beside others',
         '\twait_for_writes(Min(upto, pg_atomic_read_u64(&pipeline->started)));\n', ''),
        ('a segment is archived before it is complete', '(segno = pg_atomic_read_u64(&pipeline->finished)) < segment_of(flushed))',
         '(segno = pg_atomic_read_u64(&pipeline->finished)) <= segment_of(flushed))'),
        ('what is written counts as flushed', '\t\tif (upto <= flushed)\n\t\t\tbreak;', '\t\tif (upto <= written)\n\t\t\tbreak;'),
        ('buffers are given away before they are written', '\twait_for_writes(upto);\n\treturn true;', '\treturn true;')),
    *of('wal_end.c',
        ('the last page that is found behind the end stays', 'old->last = page + XLOG_BLCKSZ;', 'old->last = page;'),
        ('a hole is no longer than what is read at a time', 'from < old->last + span; from = next)',
         'from < old->last + Min(span, CHUNK); from = next)'),
        ('the page in which WAL ends is erased from its beginning', 'from = Max(end, upto - Min(CHUNK, nbytes));',
         'from = Max(end - end % XLOG_BLCKSZ, upto - Min(CHUNK, nbytes));')),
    *of('wal_file.c',
        ('a write that has failed is complete', 'if (result < 0 || (Size) result < nbytes)',
         'if (result >= 0 && (Size) result < nbytes)'),
        ('a write that was cut short is complete', 'if (result < 0 || (Size) result < nbytes)', 'if (result < 0)'),
        ('the rest of a write goes to its beginning', 'nbytes - done, offset + done);', 'nbytes - done, offset);'),
        ('an error of a write that syncs is tried again', '\t\tAioWalMethodSyncsWrites(target->sync_method))\n\t\tpanic_write',
         '\t\tfalse)\n\t\tpanic_write')),
    *of('wal_target.c',
        ('who has begun a sync is not told', '\tSetLatch(&GetPGProcByNumber(ioh->owner_procno)->procLatch);\n', ''),
        ('a sync that has failed has been made', 'if (error != 0 && begun)', 'if (false)')),
    *of('wal_port.c',
        ('who has a handle begins a write', 'if (pgaio_my_backend == NULL || pgaio_my_backend->handed_out_io != NULL)',
         'if (pgaio_my_backend == NULL)')),
    *of('commit.c',
        ('a reply leaves before its commit is on disk', '\tXLogFlush(aio_held_commit);\n\tAssert(!XLogNeedsFlush(aio_held_commit));\n',
         ''),
        ('a commit that a standby has to confirm is not waited for', 'if (SyncRepRequested() &&', 'if (false && SyncRepRequested() &&'),
        ('a commit in the middle of a statement is held',
         'ActivePortal != NULL || client_min_messages < NOTICE ||\n\t\t!more_to_read())\n\t\treturn false;\n\tif (SyncRep',
         'client_min_messages < NOTICE ||\n\t\t!more_to_read())\n\t\treturn false;\n\tif (SyncRep'),
        ('who asks for the flushed position does not find his commits', '\t\t(void) AioReleaseCommits();\n', '\t\t;\n'),
        ('replies are held as long as there is something to do',
         '\tif (!aio_replies_held || !(aio_replies_due || get_timeout_active(hold_timeout)))\n\t\tenable_timeout_after(hold_timeout, '
         'HOLD_TIMEOUT);\n', ''),
        ('replies that are due in a task are due no more', '\t\tif (aio_replies_held)\n\t\t\tenable_timeout_after',
         '\t\tif (false)\n\t\t\tenable_timeout_after'),
        ('replies are held at the end of a session', 'if (code == 0 && aio_replies_held)', 'if (false)'),
        ('replies are sent where a task may not wait for the client', 'if (AioMayWaitForClient())\n', 'if (true)\n')),
    *of('replay.c',
        ('a page that a record makes anew is read', 'if (will_be_made(rlocator, block, replayed))\n',
         'if (false && will_be_made(rlocator, block, replayed))\n'),
        ('a page that is damaged is zeroed ahead', '\tzero_damaged_pages = false;\n', ''),
        ("settings of the user's are lost", '\tzero_damaged_pages = zero;\n', '\t(void) zero;\n'),
        ('records that are not replayed are remembered', '\tnwanted = 0;\n\tnfree_slots = 0;', '\tnfree_slots = 0;'),
        ('reads are in flight while recovery waits', 'AioReplayFinishReads(void)\n{\n\tAioReadAheadWaitAll();\n',
         'AioReplayFinishReads(void)\n{\n'),
        ('reads stay staged while a record is replayed', '\tAioSubmitBatch();\n\tzero_damaged_pages = zero;',
         '\tzero_damaged_pages = zero;'),
        ('writes are in flight while recovery waits', 'if (aio_writes_in_flight > 0)\n', 'if (false)\n'),
        ('space is kept when recovery ends', 'if (aio_preallocated_in_recovery)\n', 'if (false)\n')),
    *of('walreceiver_internals.c',
        ('what is received while a sync is in flight is on disk', 'synced = Max(synced, sync_upto);',
         'synced = Max(synced, LogstreamResult.Write);'),
        ('what is received is on disk when its sync begins', 'sync_upto = LogstreamResult.Write;\n\t\treturn synced;',
         'sync_upto = LogstreamResult.Write;\n\t\treturn sync_upto;'),
        ('a file is closed while it is synced', 'bool\t\twaits = dying || !may_go_on;', 'bool\t\twaits = dying;'),
        folder=REPLICATION),
]
