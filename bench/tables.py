"""The table under test: five uuid columns, a btree index on each; how it is filled, loaded and aged.

A pristine data directory is built once with the stock server and kept in build/bench/data; measurements run on
copies. Building trades away all safety (fsync off), which is why a directory counts as pristine only once it is
complete, on disk and renamed.
"""

import contextlib
import os
import random

import pglib
from pglib import Cluster, PgError

COLUMNS = ("u1", "u2", "u3", "u4", "u5")
TABLE = "items"

# A btree leaf of uuids: 8152 bytes for tuples of 28 (with their line pointers), one of them the high key.
LEAF_BYTES, TUPLE_BYTES = 8152, 28
LEAF_TUPLES = LEAF_BYTES // TUPLE_BYTES - 1


def create_sql(name=TABLE):
    return f"CREATE TABLE {name} ({', '.join(f'{column} uuid NOT NULL' for column in COLUMNS)})"


def fill_sql(rows, name=TABLE):
    return (f"INSERT INTO {name} SELECT {', '.join(['gen_random_uuid()'] * len(COLUMNS))} "
            f"FROM generate_series(1, {rows})")


def index_sql(fillfactor=90):
    return ";\n".join(f"CREATE INDEX {TABLE}_{column} ON {TABLE} ({column}) WITH (fillfactor = {fillfactor})"
                      for column in COLUMNS)


def index_pages(session):
    return int(session.value(f"SELECT (sum(pg_relation_size(indexrelid)) / 8192)::bigint FROM pg_index "
                             f"WHERE indrelid = '{TABLE}'::regclass"))


def split_fillfactor(growth_percent):
    """The fillfactor at which growth by so many percent brings leaves to the point where they split.

    Random keys fill all leaves at the same pace, so they split in one wave: with the default fillfactor of 90
    around 12 % of growth, and there is none at 30 %. This places the wave where the measurement is: about one leaf
    in ten has split when it begins, and half of them when 5 % more rows are in.
    """
    added = LEAF_TUPLES * growth_percent / (100 + growth_percent)
    tuples = (LEAF_TUPLES - 1.4 * added ** 0.5) / (1 + growth_percent / 100)
    free = LEAF_BYTES - (tuples + 1) * TUPLE_BYTES
    return max(10, min(100, round(100 - 100 * free / 8192)))


@contextlib.contextmanager
def rows_file(bench, rows, seed, name="rows.copy"):
    """A file for COPY with random uuids, which a server accepts without their hyphens.

    It is on disk before it is used: its writeback would otherwise fall into the measurement.
    """
    path = bench.work / name
    width = 32 * len(COLUMNS)
    source = random.Random(seed)
    with open(path, "w") as out:
        for start in range(0, rows, 10_000):
            digits = source.randbytes(min(10_000, rows - start) * width // 2).hex()
            for row in range(0, len(digits), width):
                out.write("\t".join(digits[at:at + 32] for at in range(row, row + width, 32)) + "\n")
        out.flush()
        os.fsync(out.fileno())
    try:
        yield path
    finally:
        path.unlink()


def pristine(bench, rows):
    """The data directory of a stopped server with `rows` rows and freshly created indexes."""
    data = bench.data(f"pristine-{rows}")
    if not data.exists():
        check_space(bench, rows)
        bench.step(f"building the table of {rows:,} rows (once; kept in {data})")

        def build(session):
            # One transaction: rows of a table created in it need no WAL under wal_level=minimal.
            session.query(f"BEGIN; {create_sql()}; {fill_sql(rows)}; COMMIT")
            bench.step("creating its indexes")
            session.query(index_sql())
            session.query(f"VACUUM (FREEZE, ANALYZE) {TABLE}")
        build_pristine(bench, data, build)
    return data


def aged(bench, rows, growth_percent, fillfactor):
    """The same table with indexes that have grown by random inserts."""
    data = bench.data(f"pristine-{rows}-grown-{growth_percent}-from-{fillfactor}")
    if not data.exists():
        source = pristine(bench, rows)
        check_space(bench, rows)
        bench.step(f"growing the indexes by {growth_percent} % (once; kept in {data})")

        def build(session):
            for column in COLUMNS:
                session.query(f"DROP INDEX {TABLE}_{column}")
            session.query(index_sql(fillfactor))
            session.query(fill_sql(rows * growth_percent // 100))
            session.query(f"VACUUM (FREEZE, ANALYZE) {TABLE}")
        build_pristine(bench, data, build, source)
    return data


def made_by(bench, name, *scripts):
    """The data directory of a stopped server in which these scripts have been executed."""
    data = bench.data(f"pristine-{name}")
    if not data.exists():
        bench.step(f"building its tables (once; kept in {data})")

        def build(session):
            for script in scripts:
                session.query(script)
        build_pristine(bench, data, build)
    return data


def check_space(bench, rows):
    """Four copies, grown, of 270 bytes per row, and the WAL of both servers."""
    wanted = rows * 1600 + (6 << 30)
    state = os.statvfs(bench.work)
    if state.f_bavail * state.f_frsize < wanted:
        raise PgError(f"{bench.work} has {state.f_bavail * state.f_frsize >> 30} GB free, this needs "
                      f"{wanted >> 30} GB: free some, give another --dir, or fewer --rows")


def build_pristine(bench, data, build, source=None):
    """Make this data directory by a stock server in which build(session) is called."""
    unfinished = bench.data("pristine-unfinished")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cluster = Cluster(bench.installs["stock"], unfinished, {
        "fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "wal_level": "minimal",
        "max_wal_senders": 0, "autovacuum": "off", "checkpoint_timeout": "1d", "max_wal_size": "16GB",
        "io_method": "worker", "shared_buffers": f"{min(memory // 4, 6 << 30) >> 20}MB",
        "maintenance_work_mem": "1GB"})
    if source:
        pglib.clone(source, unfinished)
    else:
        cluster.initdb()
    with cluster:
        session = cluster.session()
        build(session)
        # WAL segments kept for later would be copied with every clone. The checkpointer, which decides that, is
        # another process: it needs a moment to read the new limit.
        session.query("ALTER SYSTEM SET max_wal_size = '128MB'")
        session.query("SELECT pg_reload_conf(), pg_sleep(1)")
        session.query("CHECKPOINT")
    os.sync()
    unfinished.rename(data)
