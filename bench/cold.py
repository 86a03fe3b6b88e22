"""A server that has its memory, but nothing in it: as before a statement that waits for every page."""

import pglib

DISKS = ("plain", "slow", "buffered", "page cache")


def settings(disk, shared_buffers):
    """Plain and slow disks are read with direct I/O."""
    return {"debug_io_direct": "data" if disk in ("plain", "slow") else "", "shared_buffers": shared_buffers}


def evict(cluster, disk, table):
    """Forget all pages.

    All buffers are used before, so that the kernel has given them memory: else its time for that would be measured.
    """
    session = cluster.session()
    session.query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; CREATE EXTENSION IF NOT EXISTS pg_buffercache")
    session.query(f"SELECT pg_prewarm('{table}', 'buffer', 'main', 0, "
                  f"least(pg_relation_size('{table}') / 8192, "
                  "(SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers')) - 1)")
    session.query("CHECKPOINT; SELECT pg_buffercache_evict_all()")
    if disk == "buffered":
        pglib.drop_from_page_cache(cluster.data)
    if disk == "page cache":
        pglib.read_into_page_cache(cluster.data)
