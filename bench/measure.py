"""One timed statement: how long it took, and what it cost the backend and the disk.

Reads the counters of this one backend, so that neither the background processes nor our own questions count.
Every figure in a result is defined in README.md.
"""

import os
from pathlib import Path

import device as disk

BACKEND_SQL = """
SELECT pg_stat_force_next_flush();
SELECT io.*, wal_records, wal_fpi, wal_bytes, blks_read, blks_hit,
       (SELECT coalesce(sum(writes), 0) FROM pg_stat_io WHERE backend_type = 'background writer')
FROM (SELECT coalesce(sum(reads), 0), coalesce(sum(read_bytes), 0) / 8192, coalesce(sum(writes), 0),
             coalesce(sum(extends), 0), coalesce(sum(hits), 0), coalesce(sum(evictions), 0)
      FROM pg_stat_get_backend_io(pg_backend_pid()) WHERE object = 'relation') io,
     pg_stat_get_backend_wal(pg_backend_pid()),
     pg_stat_database
WHERE datname = current_database();
"""
BACKEND_COUNTERS = ("reads", "read_blocks", "writes", "extends", "hits", "evictions",
                    "wal_records", "wal_fpi", "wal_bytes", "database_blks_read", "database_blks_hit",
                    "bgwriter_writes")
NOW_SQL = "SELECT extract(epoch FROM clock_timestamp());"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def has_task_stats(session):
    """Our server counts its tasks in the extension aio, which a stock server does not have."""
    if session.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'aio'") == "0":
        return False
    session.query("CREATE EXTENSION IF NOT EXISTS aio")
    return True


def timed(session, statement, device=None, task_stats=False):
    """Run `statement` and return what it took."""
    if task_stats:
        session.query("SELECT aio_session_stats_reset()")
    counters = backend_counters(session)
    cpu = cpu_seconds(session.pid)
    sample = device.sample() if device else None

    rows = session.query(f"{NOW_SQL}\n{statement};\n{NOW_SQL}")

    result = {"seconds": float(rows[-1][0]) - float(rows[0][0])}
    if device:
        result["device"] = disk.between(sample, device.sample())
    spent = [after - before for before, after in zip(cpu, cpu_seconds(session.pid))]
    result.update(cpu_user_s=spent[0], cpu_system_s=spent[1], cpu_s=sum(spent))
    result["backend"] = {name: after - before for name, before, after in
                         zip(BACKEND_COUNTERS, counters, backend_counters(session))}
    if task_stats:
        result["tasks"] = task_counters(session)
    return result


def backend_counters(session):
    return [int(float(word)) for word in session.query(BACKEND_SQL)[-1]]


def task_counters(session):
    names = [row[0] for row in session.query(
        "SELECT unnest(proargnames) FROM pg_proc WHERE proname = 'aio_session_stats'")]
    # An average over nothing, such as reads in flight where no task was suspended, is NULL.
    return {name: float(value) if value else None for name, value in
            zip(names, session.query("SELECT * FROM aio_session_stats()")[0])}


def cpu_seconds(pid):
    """User and system time of a process with all its threads, the kernel's io_uring workers among them."""
    return _cpu_seconds(pid, 11)


def reaped_cpu_seconds(cluster):
    """User and system time of all server processes that have ended, such as those of past connections."""
    postmaster = (cluster.data / "postmaster.pid").read_text().split()[0]
    return sum(_cpu_seconds(postmaster, 13))


def _cpu_seconds(pid, first):
    # The second field, the program's name, may hold blanks and parentheses.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(field) / TICKS_PER_S for field in fields[first:first + 2]]
