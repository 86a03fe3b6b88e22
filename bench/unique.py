"""unique: loads into a table with a random uuid as its primary key and one more index, both servers in turn.

Cold, nothing of a table of 3M rows is in memory.  In memory, all of a smaller one is.  Beside a cold load, another session
inserts single rows into the table, each in a transaction of its own, and the longest that one of them takes is measured.
"""

import contextlib
import functools

import cold
import pairs
import pglib
import report
import tables
from measure import has_task_stats
from repeated import Repeated

HELP = "loads with random unique keys, cold and in memory, and what others wait meanwhile, both servers in turn"
RUNS = 3

# case: (disk, rows in the table or None for --rows, rows loaded, another session inserts, goal)
CASES = {
    "cold": ("plain", None, 50_000, False, 9),
    "cold, beside others": ("plain", None, 50_000, True, 3),
    "cold, 1 ms": ("slow", None, 50_000, False, 15),
    "in memory": ("memory", 1_000_000, 200_000, False, 1.5),
}
NEIGHBOUR = "INSERT INTO target VALUES (gen_random_uuid(), gen_random_uuid(), 0)"


def add_options(parser):
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows in the cold table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="of the cold server (%(default)s)")
    pairs.add_fio_options(parser)


def run(bench):
    args = bench.args
    limits = pairs.measure_limits(bench)
    runs = []
    for case in args.case or CASES:
        disk, rows, *_ = CASES[case]
        settings = {"shared_buffers": "1GB"} if disk == "memory" else cold.settings(disk, args.shared_buffers)
        runs += pairs.measure(bench, disk, pristine(bench, rows or args.rows), settings, [case],
                              functools.partial(one, bench))
    show(bench, runs, limits)
    bench.finish(runs=runs)


def pristine(bench, rows):
    return tables.made_by(
        bench, f"unique-{rows}",
        "BEGIN; CREATE TABLE target (id uuid, other uuid, n int); INSERT INTO target "
        f"SELECT gen_random_uuid(), gen_random_uuid(), i FROM generate_series(1, {rows}) i; COMMIT",
        "ALTER TABLE target ADD PRIMARY KEY (id); CREATE INDEX ON target (other); VACUUM (FREEZE, ANALYZE)")


def one(bench, cluster, disk, side, case, seed):
    """One load.  The rows are the same on both sides, and no two loads have the same."""
    _, _, rows, beside, _ = CASES[case]
    path = bench.work / "unique.copy"
    cluster.session().query(f"COPY (SELECT md5('{seed} ' || i)::uuid, md5('{seed} other ' || i)::uuid, -{seed} "
                            f"FROM generate_series(1, {rows}) i) TO {pglib.quote(path)}")
    if disk == "memory":
        cluster.session().query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; CHECKPOINT; "
                                "SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^target'")
    else:
        cold.evict(cluster, disk, "target")
    session = cluster.session()
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs and the roots of the indexes are not what is measured.
    session.query("BEGIN; INSERT INTO target SELECT gen_random_uuid(), gen_random_uuid(), 0; ROLLBACK")
    with Repeated(cluster.session(), [NEIGHBOUR]) if beside else contextlib.nullcontext() as neighbour:
        result = bench.timed(session, f"COPY target FROM {pglib.quote(path)}", task_stats)
    if neighbour:
        result["neighbour"] = neighbour.seconds
    result["result"] = session.value(f"SELECT count(DISTINCT id) FROM target WHERE n = -{seed}")
    path.unlink()
    return result


def show(bench, runs, limits):
    pairs.show(bench, "Random unique keys", runs, lambda _disk, case: CASES[case][-1], limits=limits)
    waits = []
    for case, side in dict.fromkeys((run["case"], run["side"]) for run in runs):
        times = sorted(1000 * seconds for run in runs if (run["case"], run["side"]) == (case, side)
                       for seconds in run.get("neighbour", []))
        if times:
            waits.append([f"{case}, {side}", report.number(len(times)), f"{times[len(times) // 2]:.2f}",
                          f"{times[len(times) * 99 // 100]:.1f}", f"{times[-1]:.1f}"])
    if waits:
        report.table("Single rows that another session inserts meanwhile", ["", "rows", "median ms", "99% ms", "longest ms"],
                     waits)
