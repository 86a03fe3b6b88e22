"""COPY into a table with one index of a certain access method, both servers in turn: what `gin` and `gist` share.

Cold, the index is larger than shared_buffers; in memory, all of it is there.  A benchmark has KINDS of tables,
{name: (type of the key, values of rows n, what follows USING)}, and CASES, {name: (kind, SQL before each COPY)}.
"""

import functools

import cold
import pairs
import pglib
import report
import tables
from measure import has_task_stats

DISKS = ("plain", "memory")


def add_options(benchmark, parser):
    parser.add_argument("--rows", type=int, default=500_000, help="rows in each table (%(default)s)")
    parser.add_argument("--load", type=int, default=50_000, help="rows of each COPY (%(default)s)")
    parser.add_argument("--case", choices=benchmark.CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--shared-buffers", default="64MB", help="but for what is in memory (%(default)s)")


def run(benchmark, bench):
    args = bench.args
    data = pristine(benchmark, bench)
    runs = []
    for disk in args.disk or DISKS:
        settings = {"shared_buffers": "3GB"} if disk == "memory" else cold.settings(disk, args.shared_buffers)
        runs += pairs.measure(bench, disk, data, settings, args.case or list(benchmark.CASES),
                              functools.partial(one, benchmark, bench))
    pairs.show(bench, f"COPY of {args.load:,} rows", runs,
               lambda disk, case: benchmark.GOAL_MEMORY if disk == "memory" else benchmark.GOAL_COLD, wal)
    bench.finish(runs=runs)


def wal(_disk, _case, of):
    return {f"{side} {name}": report.number(report.median_of(runs, "backend", counter) / scale, digits)
            for name, counter, scale, digits in (("WAL records", "wal_records", 1, 0), ("WAL MB", "wal_bytes", 1e6, 1))
            for side, runs in of.items()}


def rows_sql(values, first, count):
    return f"SELECT n, ({values}) AS v FROM generate_series({first}, {first + count - 1}) n"


def pristine(benchmark, bench):
    rows = bench.args.rows
    data = bench.data(f"pristine-{benchmark.__name__}-{rows}")
    if not data.exists():
        bench.step(f"building tables of {rows:,} rows (once; kept in {data})")

        def build(session):
            session.query("CREATE EXTENSION pg_prewarm; CREATE EXTENSION btree_gist; SET maintenance_work_mem = '512MB'")
            for kind, (kind_type, values, index) in benchmark.KINDS.items():
                # rows of tables created in the same transaction need no WAL under wal_level=minimal
                session.query(f"BEGIN; SELECT setseed(0.5); CREATE TABLE {kind} (n int, v {kind_type}); "
                              f"INSERT INTO {kind} {rows_sql(values, 1, rows)}; "
                              f"CREATE INDEX {kind}_v ON {kind} USING {index}; COMMIT")
                session.query(f"VACUUM (FREEZE, ANALYZE) {kind}")
        tables.build_pristine(bench, data, build)
    return data


def one(benchmark, bench, cluster, disk, side, case, seed):
    kind, before = benchmark.CASES[case]
    rows = rows_sql(benchmark.KINDS[kind][1], 1000 * seed + bench.args.rows, bench.args.load)
    file = bench.work / "rows.copy"
    session = cluster.session()
    session.query(f"{before}; SELECT setseed({seed / 1e6}); COPY ({rows}) TO {pglib.quote(file)}")
    if disk == "memory":
        session.query(f"SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^{kind}'; CHECKPOINT")
    else:
        cold.evict(cluster, disk, kind)
    session = cluster.session()
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs are not what is measured.
    session.query(f"SELECT FROM {kind} LIMIT 0")
    result = bench.timed(session, f"COPY {kind} FROM {pglib.quote(file)}", task_stats)
    result["result"] = session.query(f"SELECT count(*), max(n) FROM {kind}")
    file.unlink()
    return result
