"""buffered: COPY through the page cache, in a memory cgroup that holds a part of the table, by I/O method.

What is not in the page cache makes buffered I/O wait for the disk, and where memory is short writes wait as well: with
some methods the server's process waits inside the submission.
"""

import statistics

import cold
import pglib
import report
import tables
from harness import SIDES
from measure import timed
from memory_group import MemoryGroup

HELP = "COPY of 50,000 rows, buffered I/O, in a memory cgroup of 768 MB, by each I/O method; both servers in turn"
RUNS = 3
METHODS = {"stock": ("worker", "io_uring"), "ours": ("auto", "io_uring", "worker")}
WAL_POOL_MB = 1000
GOAL_RATIO, GOAL_OF_BEST = 9, 1.1


def add_options(parser):
    parser.add_argument("--rows", type=int, default=50_000, help="rows per COPY (%(default)s)")
    parser.add_argument("--table-rows", type=int, default=6_000_000, help="rows in the table at the start (%(default)s)")
    parser.add_argument("--memory", type=int, default=768, metavar="MB", help="limit of each server's cgroup (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--method", action="append", metavar="SIDE:METHOD",
                        help="only this, such as ours:worker; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="of the rows loaded (%(default)s)")


def run(bench):
    args = bench.args
    data = tables.pristine(bench, args.table_rows)
    chosen = [(side, method) for side in SIDES for method in METHODS[side]]
    if args.method:
        chosen = [tuple(one.split(":", 1)) for one in args.method]
    runs = []
    for turn in range(1, args.runs + 1):
        for side, method in chosen if turn % 2 else chosen[::-1]:
            runs.append({"turn": turn, "side": side, "method": method, **load(bench, data, side, method, turn)})
            bench.step(f"run {turn} of {args.runs}, {side}, {method}: {runs[-1]['seconds']:.3f} s")
    show(bench, chosen, runs)


def load(bench, pristine, side, method, turn):
    """One COPY by a server that has just started, on a copy of its own: with each load the indexes grow."""
    args = bench.args
    data = bench.data(side)
    pglib.clone(pristine, data)
    cluster = pglib.Cluster(bench.installs[side], data, {
        **bench.settings(side, cold.settings("buffered", args.shared_buffers)), "io_method": method})
    try:
        with MemoryGroup(side, args.memory << 20) as cluster.memory_group, cluster:
            fill_wal_pool(cluster)
            with tables.rows_file(bench, args.rows, f"{args.seed}/{turn}") as file:
                cold.evict(cluster, "buffered", tables.TABLE)
                session = cluster.session()
                bench.facts["settings"][f"{side}, {method}"] = report.changed_settings(session)
                return timed(session, f"COPY {tables.TABLE} FROM {pglib.quote(file)}", bench.device)
    finally:
        pglib.remove(data)


def fill_wal_pool(cluster):
    """Have segments of WAL that can be used again, as a server has that runs for some time."""
    session = cluster.session()
    session.query(f"SELECT count(pg_logical_emit_message(false, 'fill', repeat('x', 1000000))) "
                  f"FROM generate_series(1, {WAL_POOL_MB})")
    session.query("CHECKPOINT")
    session.close()
    cluster.sessions.remove(session)


def show(bench, chosen, runs):
    args = bench.args
    of = {one: [run for run in runs if (run["side"], run["method"]) == one] for one in chosen}
    seconds = {one: statistics.median(run["seconds"] for run in of[one]) for one in chosen}
    best = {side: min([seconds[one] for one in chosen if one[0] == side], default=None) for side in SIDES}
    report.table(f"COPY of {args.rows:,} rows, buffered, in {args.memory} MB, median of {args.runs}",
                 ["side", "method", "s", "from", "to", "of best", "stock's best / this", "reads", "disk reads", "disk writes",
                  "CPU s"],
                 [[*one, f"{seconds[one]:.3f}", *(f"{end(run['seconds'] for run in of[one]):.3f}" for end in (min, max)),
                   report.percent(seconds[one] / best[one[0]]),
                   report.number(best["stock"] / seconds[one], 2) if best["stock"] else "",
                   report.number(report.median_of(of[one], "backend", "reads")),
                   *(report.number(report.median_of(of[one], "device", name)) for name in ("reads", "writes")),
                   f"{report.median_of(of[one], 'cpu_s'):.2f}"] for one in chosen])
    auto = ("ours", "auto")
    if auto in seconds:
        goals = [("best of ours / auto", best["ours"] / seconds[auto], 1 / GOAL_OF_BEST)]
        if best["stock"]:
            goals.append(("stock's best time / auto", best["stock"] / seconds[auto], GOAL_RATIO))
        report.goals(goals)
    bench.finish(runs=runs)
