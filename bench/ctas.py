"""ctas: CREATE TABLE AS in one process and with two workers."""

import pglib
import report
from harness import SIDES, order
from measure import timed

HELP = "CREATE TABLE AS in one process and with workers, logged and unlogged, direct and buffered I/O"
RUNS = 3
KINDS = {"unlogged": "UNLOGGED", "logged": ""}
MODES = {"direct": "data", "buffered": ""}

# stock's time in one process / ours with workers
GOAL = 1.5


def add_options(parser):
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the table that is copied (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="workers beside the leader (%(default)s)")
    parser.add_argument("--wal-buffers", default="64MB", help="(%(default)s)")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this; may be repeated")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this; may be repeated")


def run(bench):
    args = bench.args
    base = build(bench)
    runs = []
    try:
        for mode in args.mode or MODES:
            runs += measure(bench, base, mode)
    finally:
        pglib.remove(base)
    summary, rows, goals = {}, [], []
    for mode in args.mode or MODES:
        for kind in args.kind or KINDS:
            median = {(side, workers): report.median_of(
                [one for one in runs if (one["mode"], one["kind"], one["side"], one["workers"]) ==
                 (mode, kind, side, workers)], "seconds") for side in SIDES for workers in (0, args.workers)}
            one, several = median["ours", 0], median["ours", args.workers]
            summary[f"{mode}, {kind}"] = {f"{side}, {workers} workers": seconds
                                          for (side, workers), seconds in median.items()}
            rows.append([mode, kind, *(f"{median[side, workers]:.2f}" for side in SIDES for workers in (0, args.workers)),
                         f"{one / several:.2f}", f"{median['stock', 0] / several:.2f}"])
            goals.append((f"{mode}, {kind}, stock in one process / ours with workers", median["stock", 0] / several, GOAL))
    report.table(f"CREATE TABLE AS of {args.rows:,} rows; {args.io_method}, median of {args.runs}, seconds",
                 ["I/O", "table", "stock, one process", f"stock, {args.workers} workers", "ours, one process",
                  f"ours, {args.workers} workers", "ours: one / workers", "stock: one / ours: workers"], rows)
    report.goals(goals)
    bench.finish(summary=summary, runs=runs)


def build(bench):
    bench.step("building the table")
    base = bench.data("pristine-unfinished")
    cluster = pglib.Cluster(bench.installs["stock"], base, {"fsync": "off", "max_wal_size": "16GB"}).initdb()
    with cluster:
        cluster.session().query(
            "CREATE TABLE source AS SELECT i, i % 1000 AS k, md5(i::text) AS m, repeat('x', 60) AS filler "
            f"FROM generate_series(1, {bench.args.rows}) i; VACUUM (FREEZE, ANALYZE) source")
    return base


def measure(bench, base, mode):
    args = bench.args
    bench.step(f"{mode}: copying the data for both servers")
    settings = {"debug_io_direct": MODES[mode], "shared_buffers": "256MB", "wal_buffers": args.wal_buffers,
                # planned to send no rows to the leader
                "parallel_tuple_cost": 0}
    runs = []
    with bench.servers(base, settings) as clusters:
        sessions = {side: clusters[side].session() for side in SIDES}
        for kind in args.kind or KINDS:
            for turn in range(args.runs + 1):
                found = {}
                for workers in 0, args.workers:
                    for side in order(turn):
                        session = sessions[side]
                        session.query("DROP TABLE IF EXISTS copy; CHECKPOINT; "
                                      f"SET max_parallel_workers_per_gather = {workers}")
                        found[side, workers] = timed(
                            session, f"CREATE {KINDS[kind]} TABLE copy AS SELECT * FROM source WHERE k <> 5", bench.device)
                if turn > 0:
                    runs += [{"mode": mode, "kind": kind, "turn": turn, "side": side, "workers": workers, **one}
                             for (side, workers), one in found.items()]
                bench.step(f"{mode}, {kind}, {f'run {turn} of {args.runs}' if turn else 'warm-up'}: "
                           + ", ".join(f"{side} with {workers} workers {one['seconds']:.2f} s"
                                       for (side, workers), one in found.items()))
    return runs
