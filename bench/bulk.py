"""bulk: loads and unloads of many kinds, both servers in turn: formats, large values, partitions, keys, indexes kept or not.

"plain" is direct I/O, and "buffered" is buffered I/O with nothing in the kernel's page cache; before each statement, all
shared buffers are empty.  "memory" has room for everything, and everything there.

The slices are loaded into the table under test, with its five indexes kept, or dropped before and created again; each pair
of runs begins with another copy of it, because these loads change a large part of the table.

Without --full, all tables have a twentieth of their rows, and servers about as much less memory.
"""

import functools
import hashlib

import cold
import pairs
import pglib
import report
import tables
from harness import SIDES
from measure import has_task_stats

HELP = "loads and unloads of many kinds; slices of a large table, its indexes kept or created again; both servers in turn"
RUNS = 1
DISKS = ("plain", "buffered", "memory")
FULL_ROWS = 6_000_000       # of the table under test; all others in proportion
SHORT = 20                  # how much less there is without --full
FULL_BUFFERS_MB, FULL_MAINTENANCE_MB = 256, 1024
MEMORY_BUFFERS = "4GB"

# table, rows with --full, columns, a row for i, the order of rows; an "in order" table has growing keys
SOURCES = {
    "source": (1_000_000, "id bigint PRIMARY KEY, u uuid, v uuid, few int, day date, amount numeric, note text",
               "i, gen_random_uuid(), gen_random_uuid(), i * 7919 % 100, date '2020-01-01' + (i % 1600)::int, "
               "i * 7919 % 1000000 / 100.0, 'note ' || md5(i::text)", "i"),
    "lobs_80": (500_000, "id bigint PRIMARY KEY, v text", "i, rpad(md5(i::text), 80, md5(i::text))", "i"),
    "lobs_80_random": (500_000, "id bigint PRIMARY KEY, v text", "i, rpad(md5(i::text), 80, md5(i::text))", "hashint8(i)"),
    "lobs_4k": (100_000, "id bigint PRIMARY KEY, v text STORAGE EXTERNAL",
                "i, (SELECT string_agg(md5((i + j)::text), '') FROM generate_series(1, 128) j)", "i"),
    "lobs_4k_random": (100_000, "id bigint PRIMARY KEY, v text STORAGE EXTERNAL",
                       "i, (SELECT string_agg(md5((i + j)::text), '') FROM generate_series(1, 128) j)", "hashint8(i)"),
}

ROWS = "(id bigint, u uuid, v uuid, few int, day date, amount numeric, note text)"
FIVE = "; ".join(f"CREATE INDEX ON t ({columns})" for columns in ("id", "u", "v", "day, few", "note"))
LOBS = "CREATE TABLE t (LIKE {} INCLUDING ALL)"
PARTITIONS = 16
HASH = f"CREATE TABLE t {ROWS} PARTITION BY HASH (id); " + "; ".join(
    f"CREATE TABLE t{n} PARTITION OF t FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n})" for n in range(PARTITIONS))
RANGE = f"CREATE TABLE t {ROWS} PARTITION BY RANGE (day); " + "; ".join(
    f"CREATE TABLE t{n} PARTITION OF t FOR VALUES FROM (date '2020-01-01' + {n * 100}) TO (date '2020-01-01' + {n * 100 + 100})"
    for n in range(PARTITIONS))

# what: (definition of table t, where its rows come from, format, statement after COPY)
LOADS = {
    "text": (f"CREATE TABLE t {ROWS}", "source", "text", ""),
    "csv": (f"CREATE TABLE t {ROWS}", "source", "csv", ""),
    "binary": (f"CREATE TABLE t {ROWS}", "source", "binary", ""),
    "text, five indexes": (f"CREATE TABLE t {ROWS}; {FIVE}", "source", "text", ""),
    "csv, five indexes": (f"CREATE TABLE t {ROWS}; {FIVE}", "source", "csv", ""),
    "binary, five indexes": (f"CREATE TABLE t {ROWS}; {FIVE}", "source", "binary", ""),
    "text, indexes afterwards": (f"CREATE TABLE t {ROWS}", "source", "text", FIVE),
    "growing primary key": (f"CREATE TABLE t {ROWS}; ALTER TABLE t ADD PRIMARY KEY (id)", "source", "text", ""),
    "random primary key": (f"CREATE TABLE t {ROWS}; ALTER TABLE t ADD PRIMARY KEY (u)", "source", "text", ""),
    "hash partitions": (f"{HASH}; CREATE INDEX ON t (u)", "source", "text", ""),
    "range partitions": (f"{RANGE}; CREATE INDEX ON t (u)", "source", "text", ""),
    "80 bytes": (LOBS.format("lobs_80"), "lobs_80", "text", ""),
    "80 bytes, random": (LOBS.format("lobs_80"), "lobs_80_random", "text", ""),
    "4 kB": (LOBS.format("lobs_4k"), "lobs_4k", "text", ""),
    "4 kB, random": (LOBS.format("lobs_4k"), "lobs_4k_random", "text", ""),
}

# what: (table, what is copied, format)
IN_KEY_ORDER = "(SELECT * FROM {} ORDER BY id)"
UNLOADS = {
    "text out": ("source", "source", "text"),
    "csv out": ("source", "source", "csv"),
    "binary out": ("source", "source", "binary"),
    "80 bytes out": ("lobs_80", "lobs_80", "text"),
    "80 bytes out, random": ("lobs_80_random", IN_KEY_ORDER.format("lobs_80_random"), "text"),
    "4 kB out": ("lobs_4k", "lobs_4k", "text"),
    "4 kB out, random": ("lobs_4k_random", IN_KEY_ORDER.format("lobs_4k_random"), "text"),
}

# what: (percent of the table's rows, are its indexes kept?)
SLICES = {f"{percent} %, {what}": (percent, what == "kept")
          for percent in (1, 5, 25, 100) for what in ("kept", "created again")}
CASES = [*LOADS, *UNLOADS, *SLICES]


def add_options(parser):
    parser.add_argument("--full", action="store_true", help=f"a table of {FULL_ROWS:,} rows, others in proportion; takes hours")
    parser.add_argument("--case", choices=CASES, action="append", metavar="CASE",
                        help="only this; may be repeated: " + "; ".join(CASES).replace("%", "%%"))
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--shared-buffers", help="but for what is in memory "
                        f"({FULL_BUFFERS_MB}MB with --full, otherwise {FULL_BUFFERS_MB // 16}MB)")


def run(bench):
    args = bench.args
    chosen = args.case or CASES
    runs = []
    for disk in args.disk or DISKS:
        copies = [case for case in chosen if case in LOADS or case in UNLOADS]
        if copies:
            runs += pairs.measure(bench, disk, sources(bench), settings(args, disk), copies, functools.partial(copy, bench))
        for case in (case for case in chosen if case in SLICES):
            runs += slices(bench, disk, case)
    pairs.show(bench, "Bulk loads", runs, lambda disk, case: None, columns)
    summary = kept_or_created(runs)
    report.goals(goals(runs, summary) if args.full else [])
    bench.finish(runs=runs, slices=summary)


def share(args, full):
    return full if args.full else full // SHORT


def settings(args, disk):
    """Whoever drops indexes for a load gives their creation memory."""
    buffers = args.shared_buffers or f"{FULL_BUFFERS_MB if args.full else FULL_BUFFERS_MB // 16}MB"
    return {**cold.settings(disk, MEMORY_BUFFERS if disk == "memory" else buffers),
            "maintenance_work_mem": f"{share(args, FULL_MAINTENANCE_MB)}MB"}


def sources(bench):
    scripts = []
    for table, (rows, definition, row, order) in SOURCES.items():
        scripts.append(f"BEGIN; CREATE TABLE {table} ({definition}); INSERT INTO {table} SELECT {row} "
                       f"FROM generate_series(1::bigint, {share(bench.args, rows)}) i ORDER BY {order}; COMMIT")
    return tables.made_by(bench, f"bulk-{'full' if bench.args.full else 'short'}", *scripts, "VACUUM (FREEZE, ANALYZE)")


def forget(cluster, disk, table):
    """Only what is in memory has its pages there."""
    if disk != "memory":
        cold.evict(cluster, disk, table)
        return
    session = cluster.session()
    session.query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; CHECKPOINT; "
                  "SELECT pg_prewarm(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i'); "
                  "SELECT pg_prewarm(reltoastrelid) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND reltoastrelid <> 0")


def timed(bench, session, side, statement):
    """Also how long a CHECKPOINT takes afterwards: what is left to write then is part of a load's cost."""
    result = bench.timed(session, statement, side == "ours" and has_task_stats(session))
    result["checkpoint_seconds"] = bench.timed(session, "CHECKPOINT")["seconds"]
    return result


def copy(bench, cluster, disk, side, case, _seed):
    path = bench.work / "bulk.copy"
    session = cluster.session()
    session.query("DROP TABLE IF EXISTS t")
    if case in UNLOADS:
        table, what, form = UNLOADS[case]
        statement, check = f"COPY {what} TO {pglib.quote(path)} (FORMAT {form})", None
    else:
        definition, table, form, afterwards = LOADS[case]
        session.query(f"COPY {table} TO {pglib.quote(path)} (FORMAT {form}); {definition}")
        statement = f"COPY t FROM {pglib.quote(path)} (FORMAT {form}); {afterwards}"
        check = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM t"
    forget(cluster, disk, table)
    session = cluster.session()
    # The order of an index is what is measured, not a sort; and catalogs are not.
    session.query(f"SET max_parallel_workers_per_gather = 0; SET enable_sort = off; SET enable_bitmapscan = off; SELECT FROM {table} WHERE id = 0")
    result = timed(bench, session, side, statement)
    result["result"] = session.query(check) if check else digest(path)
    path.unlink()
    return result


def digest(path):
    state = hashlib.md5()
    with open(path, "rb") as file:
        while portion := file.read(1 << 20):
            state.update(portion)
    return state.hexdigest()


def slices(bench, disk, case):
    """Each pair of runs on copies of its own."""
    args = bench.args
    rows = share(args, FULL_ROWS)
    data = tables.pristine(bench, rows)
    runs = []
    for turn in range(1, args.runs + 1):
        bench.step(f"{disk}, {case}: copying the data for both servers")
        with tables.rows_file(bench, rows * SLICES[case][0] // 100, f"{SLICES[case][0]}/{turn}", "bulk.copy") as path:
            with bench.servers(data, settings(args, disk)) as clusters:
                runs += pairs.pair(bench, clusters, disk, case, turn, turn, functools.partial(slice_of, bench, path))
    return runs


def slice_of(bench, path, cluster, disk, side, case, _seed):
    forget(cluster, disk, tables.TABLE)
    session = cluster.session()
    session.query(f"SELECT FROM {tables.TABLE} WHERE u1 = '00000000-0000-0000-0000-000000000000'")
    statement = f"COPY {tables.TABLE} FROM {pglib.quote(path)}"
    if not SLICES[case][1]:
        drop = "; ".join(f"DROP INDEX {tables.TABLE}_{column}" for column in tables.COLUMNS)
        statement = f"{drop}; {statement}; {tables.index_sql()}"
    result = timed(bench, session, side, statement)
    result["result"] = session.query(f"SELECT count(*), sum(hashtextextended(i::text, 0)) FROM {tables.TABLE} i")
    return result


def columns(_disk, _case, of):
    return {**{f"{name} WAL MB": report.number(wal / 1e6 if wal is not None else None) for name, wal in
               (("stock", report.median_of(of["stock"], "backend", "wal_bytes")), ("our", report.median_of(of["ours"], "backend", "wal_bytes")))},
            **{f"{name} checkpoint s": report.number(report.median_of(of[side], "checkpoint_seconds"), 2)
               for name, side in (("stock", "stock"), ("our", "ours"))}}


def median(runs, disk, case, side):
    found = [run for run in runs if (run["disk"], run["case"], run["side"]) == (disk, case, side)]
    return report.median_of(found, "seconds") if found else None


def kept_or_created(runs):
    """For each slice, whether its indexes should be dropped; prints the table, and returns its figures."""
    summary = []
    for disk in dict.fromkeys(run["disk"] for run in runs):
        for percent in dict.fromkeys(percent for percent, _ in SLICES.values()):
            times = {(side, what): median(runs, disk, f"{percent} %, {what}", side)
                     for side in SIDES for what in ("kept", "created again")}
            if None not in times.values():
                summary.append({"disk": disk, "percent": percent,
                                **{f"{side}, {what}": seconds for (side, what), seconds in times.items()}})
    if summary:
        names = [name for name in summary[0] if name not in ("disk", "percent")]
        report.table("Time of a load, indexes kept, or dropped and created again",
                     ["slice", *(f"{name} s" for name in names), "stock's better / ours kept", "our better way"],
                     [[f"{one['percent']} %, {one['disk']}", *(f"{one[name]:.2f}" for name in names),
                       f"{stock_better(one) / one['ours, kept']:.2f}",
                       "kept" if one["ours, kept"] <= one["ours, created again"] else "created again"] for one in summary])
    return summary


def stock_better(one):
    return min(one["stock, kept"], one["stock, created again"])


def goals(runs, summary):
    entries = []
    for one in summary:
        if one["percent"] == 25:
            entries.append((f"25 %, {one['disk']}, better way to create them again / ours kept",
                            min(one["stock, created again"], one["ours, created again"]) / one["ours, kept"], 1))
        if one["percent"] == 5:
            entries.append((f"5 %, {one['disk']}, stock's better way / ours kept", stock_better(one) / one["ours, kept"], 4))
    none, kept, afterwards = (median(runs, "memory", case, "ours")
                              for case in ("text", "text, five indexes", "text, indexes afterwards"))
    if None not in (none, kept, afterwards):
        entries.append(("memory, twice without indexes, or 1.1 times indexes afterwards / indexes kept",
                        max(2 * none, 1.1 * afterwards) / kept, 1))
    return entries
