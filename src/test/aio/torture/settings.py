"""Random settings of a server, under which it has to survive as well as under all others.

Invariant: the settings depend on the random numbers and the arguments alone.  full_page_writes stays on, and whatever
is acknowledged as durable has been flushed, or is only threatened by what leaves the kernel alive.
"""

METHODS = ['worker', 'io_uring', 'libaio', 'sync']

# what holds for all
FIXED = {
    # each process of an io_uring server locks memory, of which an account may have little
    'max_connections': 18, 'autovacuum_worker_slots': 2, 'autovacuum_max_workers': 2, 'max_worker_processes': 4,
    'max_parallel_workers': 2, 'max_prepared_transactions': 10, 'autovacuum_naptime': '1s', 'checkpoint_timeout': '30s',
    'deadlock_timeout': '200ms', 'log_min_messages': 'warning', 'log_line_prefix': '%m [%p] %b|%e|',
    'full_page_writes': 'on',
    'log_autovacuum_min_duration': -1, 'log_checkpoints': 'off', 'jit': 'off', 'huge_pages': 'off',
    'restart_after_crash': 'on', 'log_statement': 'none', 'log_min_error_statement': 'panic',
}


def choose(rng, method, direct, our_server, developer, streaming, real_disk):
    """{name: value}; `direct` is True, False, or None for either, `streaming` is for standbys and backups.

    `real_disk` tells that the kernel will not survive, either, so that the disk has to be waited for.
    """
    by_chance = rng.random() < (0.8 if method == 'libaio' else 0.5)
    what = rng.choice(['data', 'data', 'data,wal', 'wal'])
    replica, fsync, parallel = rng.choice(['replica', 'logical']), rng.random() < 0.4, rng.random() < 0.5
    settings = {
        **FIXED,
        'io_method': method,
        'debug_io_direct': '' if not (by_chance if direct is None else direct) else what,
        'shared_buffers': rng.choice(['1MB', '2MB', '4MB', '16MB', '64MB']),
        'io_max_concurrency': rng.choice([4, 16, 32]),
        'io_workers': rng.choice([1, 2, 3]),
        'effective_io_concurrency': rng.choice([0, 1, 8, 32]),
        'maintenance_io_concurrency': rng.choice([0, 4, 16]),
        'io_combine_limit': rng.choice([1, 4, 16]),
        'fsync': real_disk or fsync,
        'wal_level': replica if streaming or rng.random() < 0.5 else 'minimal',
        'max_wal_senders': 4 if streaming else 0,
        'wal_log_hints': rng.random() < 0.3 or streaming,
        'max_wal_size': rng.choice(['32MB', '48MB', '128MB', '1GB']),
        'min_wal_size': '32MB',
        'wal_keep_size': '512MB' if streaming else 0,
        'wal_buffers': rng.choice(['32kB', '64kB', '256kB', '1MB', '-1']),
        'wal_compression': rng.choice(['off', 'off', 'pglz']),
        'wal_sync_method': rng.choice(['fdatasync', 'fdatasync', 'fdatasync', 'fsync', 'open_datasync']),
        'wal_recycle': rng.random() < 0.8,
        'wal_init_zero': rng.random() < 0.8,
        'wal_skip_threshold': rng.choice(['0', '64kB', '2MB']),
        'wal_writer_delay': rng.choice(['10ms', '200ms']),
        'commit_delay': rng.choice([0, 0, 500, 5000]),
        'commit_siblings': rng.choice([0, 3]),
        'checkpoint_completion_target': rng.choice([0.1, 0.9]),
        'checkpoint_flush_after': rng.choice([0, '256kB']),
        'backend_flush_after': rng.choice([0, 0, '64kB']),
        'bgwriter_delay': rng.choice(['10ms', '200ms']),
        'bgwriter_lru_maxpages': rng.choice([0, 100, 1000]),
        'recovery_prefetch': rng.choice(['try', 'off']),
        'work_mem': rng.choice(['64kB', '4MB']),
        'maintenance_work_mem': rng.choice(['1MB', '64MB']),
        'max_parallel_maintenance_workers': rng.choice([0, 2]),
        # tables are too small for it, otherwise
        'parallel_setup_cost': 0 if parallel else 1000,
        'parallel_tuple_cost': 0 if parallel else 0.1,
        'min_parallel_table_scan_size': 0 if parallel else '8MB',
        'parallel_leader_participation': rng.random() < 0.7,
        'gin_pending_list_limit': rng.choice(['64kB', '4MB']),
        'autovacuum': rng.random() < 0.7,
        'track_io_timing': rng.random() < 0.3,
    }
    ours = {
        'aio.await_index_inserts': rng.random() < 0.9,
        'aio.index_batch_memory': rng.choice([0, '64kB', '64MB', '64MB']),
        'aio.batch_unique_keys': rng.choice(['off', 'auto', 'auto', 'on']),
        'aio.preallocation_size': rng.choice([0, 64, 4096]),
        'aio.pipelined_commits': rng.random() < 0.6,
        'aio.lookup_ahead': rng.choice([0, 2, 64, 64, 1024]),
        'aio.max_tasks': rng.choice([1, 4, 64, 1024]),
        'aio.write_behind': rng.choice([0, 4, 32, 256]),
        'aio.write_buffers': rng.choice([-1, -1, 8]),
        'aio.backup_buffers': rng.choice(['8MB', '8MB', '512kB', 0]),
        'aio.wal_write_ahead': rng.choice([0, '16kB', '256kB']),
        'aio.wal_syncs': rng.choice([1, 1, 4]),
        'aio.bulk_flush_after': rng.choice([0, 128]),
        'aio.quick_io_time': rng.choice([0, '15us', '1s']),
    }
    debug = {
        'aio.debug_rows_before_batch': rng.choice([0, 0, 3, 100, 1000]),
        'aio.debug_suspend': rng.random() < 0.4,
        'aio.debug_delay_completions': rng.choice([0, 0, 1, 5, 50]),
        'aio.debug_lookups': rng.choice([0, 3, 64]),
        'aio.debug_seed': rng.randrange(1, 1 << 31),
    }
    if our_server:
        settings.update(ours)
        if developer:
            settings.update(debug)
    return settings


def publish(rng, settings, developer):
    """Have a server keep what a subscriber needs."""
    settings.update({
        'wal_level': 'logical', 'max_wal_senders': 6,
        # with assertions, PostgreSQL 18 cannot stream or spill transactions that have been rolled back (README.md)
        'logical_decoding_work_mem': '64MB' if developer else rng.choice(['64kB', '64kB', '64MB']),
    })
    look_up(rng, settings)


def subscribe(rng, settings):
    settings.update({
        'max_connections': 8, 'max_worker_processes': 8, 'max_logical_replication_workers': 4,
        'wal_retrieve_retry_interval': '100ms', 'track_commit_timestamp': rng.random() < 0.5,
        'shared_buffers': rng.choice(['1MB', '1MB', '2MB', '16MB']),
    })
    look_up(rng, settings)


# all but GiST and hash, see README.md
CONSISTENT = 'heap, heap2, btree, gin, sequence, spgist, brin, generic'


def be_compared(settings):
    """Have recovery, of this server and of others, find out whether each record does to a page what it has done here."""
    settings['wal_consistency_checking'] = CONSISTENT


def follow(rng, settings):
    settings.update({
        'shared_buffers': rng.choice(['1MB', '1MB', '2MB', '16MB']),
        'maintenance_io_concurrency': rng.choice([1, 4, 16, 64]), 'recovery_prefetch': rng.choice(['try', 'try', 'try', 'off']),
        'wal_retrieve_retry_interval': '100ms', 'hot_standby_feedback': rng.random() < 0.5,
        # who looks at the rows may take his time
        'max_standby_streaming_delay': -1,
    })


def be_backed_up(rng, settings):
    """Have several senders for each of several backups, as one that is killed may not have ended, and know what changes."""
    settings.update({'max_wal_senders': 12, 'summarize_wal': True})


def look_up(rng, settings):
    """In most cases from the first row, event or message on; a server that has just started has no page in memory."""
    if 'aio.lookup_ahead' in settings:
        settings['aio.lookup_ahead'] = rng.choice([0, 2, 64, 64, 1024])
    if 'aio.debug_lookups' in settings:
        settings['aio.debug_lookups'] = rng.choice([0, 1, 7, 64])


def text(settings):
    """What differs from one round to another, in one line."""
    return ' '.join(f'{name}={pretty(value)}' for name, value in settings.items() if name not in FIXED)


def pretty(value):
    return {True: 'on', False: 'off'}.get(value, value) if isinstance(value, bool) else value
