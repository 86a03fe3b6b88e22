"""writes: who writes many pages at once: a checkpoint, CREATE INDEX, CREATE TABLE AS; direct and buffered I/O."""

import pglib
import report
from harness import SIDES, order
from measure import timed

HELP = "a checkpoint of scattered dirty pages, CREATE INDEX and CREATE TABLE AS, direct and buffered I/O"
RUNS = 3
PAGE = 8192
ROWS_PER_PAGE = 4       # of 1 kB, and room for one more version of one of them
MODES = {"direct": "data", "buffered": ""}

# load: stock time / ours, wanted with direct and with buffered I/O
GOALS = {"CHECKPOINT": (2.5, 0.95), "CREATE INDEX": (1.2, 0.95), "CREATE TABLE AS": (1.2, 0.95)}


def add_options(parser):
    parser.add_argument("--megabytes", type=int, default=2048,
                        help="size of the table, and nearly of its copy and its index; a checkpoint writes half of it "
                             "(%(default)s)")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this; may be repeated")
    parser.add_argument("--load", choices=GOALS, action="append", help="only this; may be repeated")


def run(bench):
    args = bench.args
    base = build(bench)
    runs = []
    try:
        for mode in args.mode or MODES:
            runs += measure(bench, base, mode)
    finally:
        pglib.remove(base)
    summary = {}
    for one in runs:
        key = f"{one['load']}, {one['mode']}"
        if key not in summary:
            of = {side: [run for run in runs if (run["load"], run["mode"], run["side"]) ==
                         (one["load"], one["mode"], side)] for side in SIDES}
            summary[key] = {**report.compare(*([run["seconds"] for run in of[side]] for side in SIDES)),
                            "writes": {side: report.median_of(of[side], "device", "writes") for side in SIDES},
                            "cpu_s": {side: report.median_of(of[side], "cpu_s") for side in SIDES}}
    report.table(f"Writing {args.megabytes} MB (a checkpoint: {args.megabytes // 2} MB); {args.io_method}, "
                 f"median of {args.runs}",
                 ["load", "stock s", "ours s", "ratio", "of pairs", "stock disk writes", "ours disk writes",
                  "stock CPU s", "ours CPU s"],
                 [[key, f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}",
                   f"{one['pair_min']:.2f}-{one['pair_max']:.2f}",
                   *(report.number(one["writes"][side]) for side in SIDES),
                   *(f"{one['cpu_s'][side]:.2f}" for side in SIDES)] for key, one in summary.items()])
    report.goals([(f"{load}, {mode}, stock time / ours", summary[f"{load}, {mode}"]["ratio"], wanted)
                  for load, wanted_by_mode in GOALS.items() for mode, wanted in zip(MODES, wanted_by_mode)
                  if f"{load}, {mode}" in summary])
    bench.finish(summary=summary, runs=runs)


def build(bench):
    """A table whose pages have four rows and are half full."""
    bench.step("building the table")
    base = bench.data("pristine-unfinished")
    cluster = pglib.Cluster(bench.installs["stock"], base, {"fsync": "off", "wal_level": "minimal",
                                                            "max_wal_senders": 0, "max_wal_size": "16GB"})
    cluster.initdb()
    rows = bench.args.megabytes * 1024 * 1024 // PAGE * ROWS_PER_PAGE
    with cluster:
        session = cluster.session()
        session.query("BEGIN; CREATE TABLE items (id int, n int, filler text STORAGE PLAIN) WITH (fillfactor = 50); "
                      f"INSERT INTO items SELECT i, 0, repeat('x', 950) FROM generate_series(0, {rows - 1}) i; COMMIT; "
                      "VACUUM (FREEZE, ANALYZE) items; CREATE EXTENSION pg_prewarm")
    return base


def measure(bench, base, mode):
    args = bench.args
    bench.step(f"{mode}: copying the data for both servers")
    settings = {"debug_io_direct": MODES[mode], "shared_buffers": f"{args.megabytes * 3 // 2}MB",
                "maintenance_work_mem": "4GB", "max_parallel_maintenance_workers": 0,
                "max_parallel_workers_per_gather": 0}
    loads = {
        "CHECKPOINT": ("SELECT pg_prewarm('items'); "
                       f"UPDATE items SET n = n + 1 WHERE id % {2 * ROWS_PER_PAGE} = 0", "CHECKPOINT", ""),
        "CREATE INDEX": ("CHECKPOINT", "CREATE INDEX items_id ON items (id) INCLUDE (filler)",
                         "DROP INDEX items_id; CHECKPOINT"),
        "CREATE TABLE AS": ("CHECKPOINT", "CREATE TABLE copy WITH (fillfactor = 50) AS SELECT * FROM items",
                            "DROP TABLE copy; CHECKPOINT"),
    }
    runs = []
    with bench.servers(base, settings) as clusters:
        sessions = {side: clusters[side].session() for side in SIDES}
        for load in args.load or loads:
            before, statement, after = loads[load]
            for turn in range(args.runs + 1):
                pair = {}
                for side in order(turn):
                    sessions[side].query(before)
                    pair[side] = timed(sessions[side], statement, bench.device)
                    sessions[side].query(after or "SELECT")
                if turn > 0:
                    runs += [{"load": load, "mode": mode, "turn": turn, "side": side, **pair[side]} for side in SIDES]
                bench.step(f"{load}, {mode}, {f'run {turn} of {args.runs}' if turn else 'warm-up'}: "
                           + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
    return runs
