"""Faults in base backups: see mutations.py."""
import functools

import fault

BACKUP = 'src/backend/backup'
READS = ('aio_backup/001_backup', 'aio_backup/007_summaries', 'aio_backup/003_jobs')
JOBS = ('aio_backup/003_jobs', 'aio_backup/002_client')
TESTS = {
    f'{BACKUP}/backup_manifest_internals.c': JOBS,
    f'{BACKUP}/backup_pace.c': ('aio_backup/006_pace',),
    f'{BACKUP}/backup_pool.c': READS,
    f'{BACKUP}/backup_read.c': READS,
    f'{BACKUP}/backup_share.c': JOBS[:1] + ('aio_docs/002_security',),
    f'{BACKUP}/basebackup_internals.c': JOBS,
    f'{BACKUP}/summary_order.c': ('aio_backup/007_summaries',),
    f'{BACKUP}/truncated.c': ('aio_backup/007_summaries',),
}

of = functools.partial(fault.of, folder=BACKUP)

MUTATIONS = [
    *of('backup_read.c',
        ('a chunk is given back while it is read into', '\tfinish_read(read);\n\tAioBackupReleaseChunk(read->chunk);',
         '\tAioBackupReleaseChunk(read->chunk);'),
        ('a backup ends with reads in flight',
         '\twhile (!dlist_is_empty(&files_ahead))\n\t\tclose_first_ahead();\n\tAssert(nreads == 0);\n', ''),
        ('another file is sent that has the name by now',
         'if (fstat(fd, &status) != 0 || status.st_dev != current->device ||\n\t\t\tstatus.st_ino != current->inode)\n\t\t\t'
         'close_current();', 'if (fstat(fd, &status) != 0)\n\t\t\tclose_current();')),
    *of('backup_pool.c',
        ('a worker reads another file that has the name by now',
         ' || status.st_dev != chunk->device ||\n\t\t status.st_ino != chunk->inode))', ' || status.st_dev != chunk->device))')),
    *of('backup_share.c',
        ('who leaves has not failed', '\tshare->failed = true;\n', '\tshare->failed = false;\n'),
        ('the leader does not wait for those who have not come', 'complete = share->nended == share->nconnections - 1;',
         'complete = share->nended == share->njoined;'),
        ('whoever knows a handle can join', ' ||\n\t\ttimingsafe_bcmp(other->secret, key.secret, SECRET_LENGTH) != 0)', ')'),
        ('one connection too many joins', 'share->njoined < share->nconnections - 1)', 'share->njoined < share->nconnections)'),
        ('a backup of which somebody has failed goes on', '\tcheck_failure();\n\tdo\n', '\tdo\n'),
        ('who waits does not learn of a failure', '\tcheck_failure();\n\tSpinLockAcquire(&share->mutex);\n\tcomplete',
         '\tSpinLockAcquire(&share->mutex);\n\tcomplete'),
        ('the key is good when the backup has ended', '\t\tshare->magic = 0;\n', '\t\t;\n'),
        ('a tablespace is where the data directory is', 'shared_tablespaces[i].is_main = info->path == NULL;',
         'shared_tablespaces[i].is_main = true;')),
    *of('basebackup_internals.c',
        ('failures of checksums that others find do not count', 'total_checksum_failures += failures;', '(void) failures;'),
        ('files at the top are sent by any connection', "incremental_blocks != NULL ||\n\t\tstrchr(tarfilename, '/') == NULL)",
         'incremental_blocks != NULL)'),
        ('what the last connection has sent is not in the manifest', 'number < share_connections; number++)',
         'number < share_connections - 1; number++)'),
        ('a file that went away fails the backup', 'if (errno != ENOENT)', 'if (true || errno != ENOENT)'),
        ('a tablespace is sent as another one', 'if (file->tablespace != tablespace)\n', 'if (tablespace < 0)\n'),
        ('a promotion is not noticed', 'if (RecoveryInProgress() != backup_started_in_recovery)', 'if (false)'),
        ('a connection that joins does not verify checksums', 'noverify_checksums = !terms.verify_checksums;',
         'noverify_checksums = true;')),
    *of('backup_manifest_internals.c',
        ('nothing is between the entries of two connections', 'if (is_first && !manifest->first_file)', 'if (false && is_first)'),
        ('only a block of a part is in the manifest', '\t\tAppendStringToManifest(manifest, piece);\n\t}',
         '\t\tAppendStringToManifest(manifest, piece);\n\t\tbreak;\n\t}')),
    *of('backup_pace.c',
        ('what was not sent in time is made up for without end', '*due = Max(*due, now - rate_time) + cost;', '*due += cost;')),
    *of('summary_order.c',
        ('summaries are merged from the last to the first', 'return pg_cmp_u64(left->end_lsn, right->end_lsn);',
         'return pg_cmp_u64(right->end_lsn, left->end_lsn);'),
        ('a timeline comes before those of which it is a branch', 'return pg_cmp_u32(left->tli, right->tli);',
         'return pg_cmp_u32(right->tli, left->tli);')),
    *of('truncated.c',
        ('what is behind a cut is not in the backup', 'block < stop; block++)', 'block < first_cut; block++)'),
        ('the limit is minded once more', '\t*limit = InvalidBlockNumber;\n', '')),
]
