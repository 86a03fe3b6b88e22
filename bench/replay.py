"""replay: how long crash recovery takes, of WAL that each server has written, by each of them in turn.

The WAL is that of two loads into a table with five random uuid indexes.  Recovery begins on equal data, with nothing in
memory; its time is what the server's log says.  With "page cache", all files are in the kernel's cache, which shows what
reading ahead costs where no disk is waited for.
"""

import contextlib
import re
import time

import pglib
import report
import tables
from harness import SIDES, order

HELP = "crash recovery of two loads into a table with five uuid indexes, of the WAL of each server, by each in turn"
RUNS = 3

# case: (disk, direct I/O, in the page cache, goal for our WAL, goal for stock's)
CASES = {
    "direct": ("plain", True, False, None, 5),
    "buffered": ("plain", False, False, None, None),
    "page cache": ("plain", False, True, None, None),
    "direct, 1 ms": ("slow", True, False, 15, 15),
}
DONE = re.compile(r"redo done at \S+ system usage: CPU: user: ([0-9.]+) s, system: ([0-9.]+) s, elapsed: ([0-9.]+) s")


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table (%(default)s)")
    parser.add_argument("--load", type=int, default=50_000, help="rows of each of the two loads (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--wal", choices=SIDES, action="append", help="only the WAL of this server")
    parser.add_argument("--concurrency", type=int, default=16, help="maintenance_io_concurrency (%(default)s)")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")


def run(bench):
    args = bench.args
    cases = args.case or [case for case in CASES if CASES[case][0] != "slow"]
    runs = []
    loads = {wal: crashed(bench, wal) for wal in args.wal or SIDES}
    try:
        for case in cases:
            with bench.on_disk(CASES[case][0]):
                for wal, (data, seconds) in loads.items():
                    for turn in range(1, args.runs + 1):
                        found = {side: recover(bench, side, data, case) for side in order(turn)}
                        if len({found[side]["result"] for side in SIDES}) > 1:
                            raise pglib.PgError(f"{case}: the servers differ: {found}")
                        bench.step(f"{case}, WAL of {wal}, run {turn} of {args.runs}: "
                                   + ", ".join(f"{side} {found[side]['seconds']:.2f} s" for side in SIDES))
                        runs += [{"case": case, "wal": wal, "turn": turn, "side": side, "load_s": seconds, **found[side]}
                                 for side in SIDES]
    finally:
        for data, _ in loads.values():
            pglib.remove(data)
    show(bench, runs)
    bench.finish(runs=runs)


def settings(bench, side, direct):
    return bench.settings(side, {"debug_io_direct": "data" if direct else "",
                                 "shared_buffers": bench.args.shared_buffers,
                                 "maintenance_io_concurrency": bench.args.concurrency})


def crashed(bench, side):
    """The data directory of a server that has crashed after two loads, and the time that these took."""
    args = bench.args
    data = bench.data(f"crashed-{side}")
    pglib.clone(tables.pristine(bench, args.rows), data)
    cluster = pglib.Cluster(bench.installs[side], data, settings(bench, side, True))
    seconds = 0
    try:
        cluster.start()
        session = cluster.session()
        session.query("CHECKPOINT")
        for seed in 1, 2:
            with tables.rows_file(bench, args.load, seed) as path:
                began = time.monotonic()
                session.query(f"COPY {tables.TABLE} FROM {pglib.quote(path)}")
                seconds += time.monotonic() - began
    finally:
        cluster.stop("immediate")
    bench.step(f"two loads of {args.load:,} rows took {side} {seconds:.1f} s")
    return data, seconds


def recover(bench, side, crashed, case):
    _, direct, cached, *_ = CASES[case]
    data = bench.data(side)
    try:
        pglib.clone(crashed, data)
        if cached:
            pglib.read_into_page_cache(data)
        cluster = pglib.Cluster(bench.installs[side], data, settings(bench, side, direct))
        with bench.slowly() if CASES[case][0] == "slow" else contextlib.nullcontext():
            cluster.start()
        with cluster.log.open(errors="replace") as log:
            log.seek(cluster.log_start)
            done = DONE.search(log.read())
        if not done:
            raise pglib.PgError(f"there was nothing to recover: see {cluster.log}")
        session = cluster.session()
        ahead, = session.query("SELECT prefetch, hit, skip_init, skip_new, skip_fpw, skip_rep FROM pg_stat_recovery_prefetch")
        result = session.value(f"SELECT count(*) FROM {tables.TABLE}")
        cluster.stop()
        user, system, elapsed = map(float, done.groups())
        return {"seconds": elapsed, "cpu_s": user + system, "user_s": user, "ahead": int(ahead[0]), "counts": ahead,
                "result": result}
    finally:
        pglib.Cluster(bench.installs[side], data).stop("immediate")
        pglib.remove(data)


def show(bench, runs):
    rows, goals = [], []
    for case, wal in dict.fromkeys((run["case"], run["wal"]) for run in runs):
        of = {side: [run for run in runs if (run["case"], run["wal"], run["side"]) == (case, wal, side)] for side in SIDES}
        one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
        rows.append([case, wal, f"{of['ours'][0]['load_s']:.1f}", f"{one['stock']:.2f}", f"{one['ours']:.2f}",
                     f"{one['ratio']:.2f}", f"{one['pair_min']:.2f}-{one['pair_max']:.2f}",
                     *(report.number(report.median_of(of[side], "cpu_s"), 2) for side in SIDES),
                     *(report.number(report.median_of(of[side], "ahead")) for side in SIDES)])
        goal = CASES[case][3 if wal == "ours" else 4]
        if goal:
            goals.append((f"{case}, WAL of {wal}, stock time / ours", one["ratio"], goal))
    report.table(f"Crash recovery; {bench.args.io_method}, median of {bench.args.runs}",
                 ["case", "WAL of", "load s", "stock s", "ours s", "ratio", "of pairs", "stock CPU s", "our CPU s",
                  "stock ahead", "our ahead"], rows)
    report.goals(goals)
