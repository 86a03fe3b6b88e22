"""sustained: one load after the other, so that what one leaves behind is the next one's burden.

Both servers have checkpoints at their defaults, unlike in the other benchmarks.
"""

import statistics

import pglib
import report
import tables
from harness import SIDES
from measure import timed

HELP = "many COPYs in a row into a 6M-row table with five random uuid indexes, direct I/O, checkpoints at their defaults"
RUNS = 1
GOAL_RATIO, GOAL_ROWS = 18, 50_000


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table at the start (%(default)s)")
    parser.add_argument("--load", type=int, default=GOAL_ROWS, help="rows of each COPY (%(default)s)")
    parser.add_argument("--copies", type=int, default=12, help="COPYs in a row (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows loaded (%(default)s)")
    parser.add_argument("--ours-only", action="store_true", help="leave stock out, which takes longest by far")


def run(bench):
    args = bench.args
    sides = ["ours"] if args.ours_only else list(SIDES)
    data = tables.pristine(bench, args.rows)
    settings = {"shared_buffers": args.shared_buffers, "debug_io_direct": "data", "checkpoint_timeout": "5min",
                "max_wal_size": "1GB", "min_wal_size": "80MB"}
    runs = []
    for turn in range(1, args.runs + 1):
        for side in sides if turn % 2 else sides[::-1]:
            runs += measure(bench, data, settings, side, turn)
    mean = {side: statistics.mean(one["seconds"] for one in runs if one["side"] == side) for side in sides}
    summary = {side: {"mean_s": mean[side],
                      "max_s": max(one["seconds"] for one in runs if one["side"] == side),
                      "checkpoints": sum(one["checkpoints"] for one in runs if one["side"] == side)} for side in sides}
    report.table(f"{args.copies} COPYs of {args.load:,} rows in a row into {args.rows:,}; {args.io_method}",
                 ["side", "mean s", "slowest s", "rows/s", "checkpoints", "ratio"],
                 [[side, f"{one['mean_s']:.2f}", f"{one['max_s']:.2f}", report.number(args.load / one["mean_s"]),
                   report.number(one["checkpoints"] / args.runs, 1), f"{mean[sides[0]] / one['mean_s']:.2f}"]
                  for side, one in summary.items()])
    if args.load == GOAL_ROWS and not args.ours_only:
        report.goals([("mean time of stock / ours", mean["stock"] / mean["ours"], GOAL_RATIO)])
    bench.finish(summary=summary, runs=runs)


def measure(bench, pristine, settings, side, turn):
    """All COPYs on a fresh copy of the data, which goes at the end."""
    args = bench.args
    data = bench.data(side)
    pglib.clone(pristine, data)
    chosen = {**bench.settings(side, {}), **settings, **dict(args.set)}
    runs = []
    try:
        with pglib.Cluster(bench.installs[side], data, chosen) as cluster:
            session = cluster.session()
            bench.facts["settings"][side] = report.changed_settings(session)
            for number in range(args.copies):
                with tables.rows_file(bench, args.load, f"{args.seed}/{turn}/{number}") as file:
                    before = checkpoints(session)
                    one = timed(session, f"COPY {tables.TABLE} FROM {pglib.quote(file)}", bench.device)
                    runs.append({"side": side, "turn": turn, "number": number,
                                 "checkpoints": checkpoints(session) - before, **one})
            bench.step(f"run {turn} of {args.runs}, {side}: " + " ".join(f"{one['seconds']:.1f}" for one in runs))
    finally:
        pglib.remove(data)
    return runs


def checkpoints(session):
    return int(session.value("SELECT num_done FROM pg_stat_checkpointer"))
