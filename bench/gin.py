"""gin: COPY into a table with one GIN index, of words, of numbers or of documents, both servers in turn.

Each row has many keys, and each key belongs to some page of the index; a few keys are in many rows.  Cold, the index is
larger than shared_buffers; in memory, all of it is there.
"""

import functools

import cold
import pairs
import pglib
import report
import tables
from measure import has_task_stats

HELP = "COPY into a table with a GIN index of words, numbers or documents, cold and in memory, both servers in turn"
RUNS = 3
GOAL_COLD, GOAL_MEMORY = 3, 1.5
DISKS = ("plain", "memory")

WORD = "'w' || trunc(pow(random(), 3) * 200000)"
# what: (type, values of n rows with random keys, operator class and options of the index)
KINDS = {
    "words": ("tsvector", f"SELECT array_to_tsvector(array_agg(DISTINCT {WORD})) FROM generate_series(1, 20) WHERE n > 0", ""),
    "numbers": ("int[]", "SELECT array_agg(trunc(random() * 1000000)::int) FROM generate_series(1, 10) WHERE n > 0", ""),
    "documents": ("jsonb", f"SELECT jsonb_build_object('n', n % 10, 'tags', jsonb_agg({WORD}), 'id', random()) "
                           "FROM generate_series(1, 8) WHERE n > 0", "jsonb_path_ops"),
}
# what: (kind, index options)
CASES = {kind + suffix: (kind, options) for kind in KINDS
         for suffix, options in {", no pending list": "fastupdate = off", ", pending list": "fastupdate = on"}.items()}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=500_000, help="rows in each table (%(default)s)")
    parser.add_argument("--load", type=int, default=50_000, help="rows of each COPY (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--shared-buffers", default="64MB", help="but for what is in memory (%(default)s)")


def run(bench):
    args = bench.args
    data = pristine(bench, args.rows)
    runs = []
    for disk in args.disk or DISKS:
        settings = {"shared_buffers": "3GB"} if disk == "memory" else cold.settings(disk, args.shared_buffers)
        runs += pairs.measure(bench, disk, data, settings, args.case or list(CASES), functools.partial(one, bench))
    pairs.show(bench, f"COPY of {args.load:,} rows", runs,
               lambda disk, case: GOAL_MEMORY if disk == "memory" else GOAL_COLD, wal)
    bench.finish(runs=runs)


def wal(_disk, _case, of):
    return {f"{side} {name}": report.number(report.median_of(runs, "backend", counter) / scale, digits)
            for name, counter, scale, digits in (("WAL records", "wal_records", 1, 0), ("WAL MB", "wal_bytes", 1e6, 1))
            for side, runs in of.items()}


def rows_sql(kind, first, count):
    return f"SELECT n, ({KINDS[kind][1]}) AS v FROM generate_series({first}, {first + count - 1}) n"


def pristine(bench, rows):
    data = bench.data(f"pristine-gin-{rows}")
    if not data.exists():
        bench.step(f"building tables of {rows:,} rows (once; kept in {data})")

        def build(session):
            session.query("CREATE EXTENSION pg_prewarm; SET maintenance_work_mem = '512MB'")
            for kind, (kind_type, _, opclass) in KINDS.items():
                # rows of tables created in the same transaction need no WAL under wal_level=minimal
                session.query(f"BEGIN; SELECT setseed(0.5); CREATE TABLE {kind} (n int, v {kind_type}); "
                              f"INSERT INTO {kind} {rows_sql(kind, 1, rows)}; "
                              f"CREATE INDEX {kind}_v ON {kind} USING gin (v {opclass}); COMMIT")
                session.query(f"VACUUM (FREEZE, ANALYZE) {kind}")
        tables.build_pristine(bench, data, build)
    return data


def one(bench, cluster, disk, side, case, seed):
    kind, options = CASES[case]
    file = bench.work / "rows.copy"
    session = cluster.session()
    session.query(f"ALTER INDEX {kind}_v SET ({options}); SELECT gin_clean_pending_list('{kind}_v'); SELECT setseed({seed / 1e6}); "
                  f"COPY ({rows_sql(kind, 1000 * seed + bench.args.rows, bench.args.load)}) TO {pglib.quote(file)}")
    if disk == "memory":
        session.query(f"SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^{kind}'; CHECKPOINT")
    else:
        cold.evict(cluster, disk, kind)
    session = cluster.session()
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs and the root of the index are not what is measured.
    session.query(f"SET enable_seqscan = off; SELECT FROM {kind} WHERE v @@ 'none'" if kind == "words" else f"SELECT FROM {kind} LIMIT 0")
    result = bench.timed(session, f"COPY {kind} FROM {pglib.quote(file)}", task_stats)
    result["result"] = session.query(f"SELECT count(*), max(n) FROM {kind}")
    file.unlink()
    return result
