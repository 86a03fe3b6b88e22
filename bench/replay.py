"""replay: how long crash recovery takes, of WAL that each server has written, by each of them in turn.

The WAL is that of two loads into a table with five random uuid indexes, or of pgbench's transactions on tables larger
than memory.  Recovery begins on equal data, with nothing in memory; its time is what the server's log says.  With "page
cache", all files are in the kernel's cache, which shows what reading ahead costs where no disk is waited for.
"""

import contextlib
import re
import time

import pglib
import report
import tables
from harness import SIDES, order

HELP = "crash recovery of two loads into a table with five uuid indexes, and of pgbench, by both servers in turn"
RUNS = 3


class Copies:
    """Two loads into the table under test."""

    settings = {}
    result = f"SELECT count(*) FROM {tables.TABLE}"

    @staticmethod
    def pristine(bench):
        return tables.pristine(bench, bench.args.rows)

    @staticmethod
    def run(bench, cluster):
        """Return the seconds that it took."""
        seconds = 0
        session = cluster.session()
        for seed in 1, 2:
            with tables.rows_file(bench, bench.args.load, seed) as path:
                began = time.monotonic()
                session.query(f"COPY {tables.TABLE} FROM {pglib.quote(path)}")
                seconds += time.monotonic() - began
        return seconds


class Tpcb:
    """pgbench's own transactions: each changes a random row of a table that is larger than memory."""

    settings = {"synchronous_commit": "off"}
    result = "SELECT sum(bbalance), (SELECT count(*) FROM pgbench_history) FROM pgbench_branches"

    @staticmethod
    def pristine(bench):
        scale = bench.args.scale
        data = bench.data(f"pristine-pgbench-{scale}")
        if not data.exists():
            bench.step(f"building pgbench's tables, scale {scale} (once; kept in {data})")
            tables.build_pristine(bench, data,
                                  lambda session: session.cluster.run_client("pgbench", "-i", "-q", "-s", scale))
        return data

    @staticmethod
    def run(bench, cluster):
        clients = 8
        began = time.monotonic()
        cluster.run_client("pgbench", "-n", "-c", clients, "-j", 2, "-t", bench.args.transactions // clients,
                           "--random-seed", 1)
        return time.monotonic() - began


class TpcbWithoutImages(Tpcb):
    settings = {**Tpcb.settings, "full_page_writes": "off"}


# case: (what is replayed, disk, direct I/O, in the page cache, goal for our WAL, goal for stock's)
CASES = {
    "direct": (Copies, "plain", True, False, None, 5),
    "buffered": (Copies, "plain", False, False, None, None),
    "page cache": (Copies, "plain", False, True, None, None),
    "direct, 1 ms": (Copies, "slow", True, False, 15, 15),
    "TPC-B, direct": (Tpcb, "plain", True, False, 2, 2),
    "TPC-B, buffered": (Tpcb, "plain", False, False, 1, 1),
    "TPC-B, no full pages, direct": (TpcbWithoutImages, "plain", True, False, 5, 5),
    "TPC-B, no full pages, buffered": (TpcbWithoutImages, "plain", False, False, 1, 1),
}
DONE = re.compile(r"redo done at \S+ system usage: CPU: user: ([0-9.]+) s, system: ([0-9.]+) s, elapsed: ([0-9.]+) s")


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table (%(default)s)")
    parser.add_argument("--load", type=int, default=50_000, help="rows of each of the two loads (%(default)s)")
    parser.add_argument("--scale", type=int, default=200, help="of pgbench's tables, 15 MB each (%(default)s)")
    parser.add_argument("--transactions", type=int, default=200_000, help="of pgbench (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--wal", choices=SIDES, action="append", help="only the WAL of this server")
    parser.add_argument("--concurrency", type=int, default=16, help="maintenance_io_concurrency (%(default)s)")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")


def run(bench):
    args = bench.args
    cases = args.case or [case for case in CASES if CASES[case][1] != "slow"]
    runs = []
    for work in dict.fromkeys(CASES[case][0] for case in cases):
        loads = {wal: crashed(bench, wal, work) for wal in args.wal or SIDES}
        try:
            for case in (case for case in cases if CASES[case][0] is work):
                with bench.on_disk(CASES[case][1]):
                    for wal, (data, seconds) in loads.items():
                        for turn in range(1, args.runs + 1):
                            runs += pair(bench, case, wal, data, seconds, turn)
        finally:
            for data, _ in loads.values():
                pglib.remove(data)
    show(bench, runs)
    bench.finish(runs=runs)


def pair(bench, case, wal, data, load_s, turn):
    found = {side: recover(bench, side, data, case) for side in order(turn)}
    if len({str(found[side]["result"]) for side in SIDES}) > 1:
        raise pglib.PgError(f"{case}: the servers differ: {found}")
    bench.step(f"{case}, WAL of {wal}, run {turn} of {bench.args.runs}: "
               + ", ".join(f"{side} {found[side]['seconds']:.2f} s" for side in SIDES))
    return [{"case": case, "wal": wal, "turn": turn, "side": side, "load_s": load_s, **found[side]} for side in SIDES]


def settings(bench, side, direct):
    return bench.settings(side, {"debug_io_direct": "data" if direct else "",
                                 "shared_buffers": bench.args.shared_buffers,
                                 "maintenance_io_concurrency": bench.args.concurrency})


def crashed(bench, side, work):
    """The data directory of a server that has crashed after its work, and the time that this took."""
    data = bench.data(f"crashed-{side}")
    pglib.clone(work.pristine(bench), data)
    cluster = pglib.Cluster(bench.installs[side], data, {**settings(bench, side, True), **work.settings})
    try:
        cluster.start()
        cluster.session().query("CHECKPOINT")
        seconds = work.run(bench, cluster)
    finally:
        cluster.stop("immediate")
    bench.step(f"what is to be replayed took {side} {seconds:.1f} s")
    return data, seconds


def recover(bench, side, crashed, case):
    work, disk, direct, cached, *_ = CASES[case]
    data = bench.data(side)
    try:
        pglib.clone(crashed, data)
        if cached:
            pglib.read_into_page_cache(data)
        cluster = pglib.Cluster(bench.installs[side], data, settings(bench, side, direct))
        with bench.slowly() if disk == "slow" else contextlib.nullcontext():
            cluster.start(seconds=3600)
        with cluster.log.open(errors="replace") as log:
            log.seek(cluster.log_start)
            done = DONE.search(log.read())
        if not done:
            raise pglib.PgError(f"there was nothing to recover: see {cluster.log}")
        session = cluster.session()
        ahead, = session.query("SELECT prefetch, hit, skip_init, skip_new, skip_fpw, skip_rep FROM pg_stat_recovery_prefetch")
        result = session.query(work.result)[0]
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
        goal = CASES[case][4 if wal == "ours" else 5]
        if goal:
            goals.append((f"{case}, WAL of {wal}, stock time / ours", one["ratio"], goal))
    report.table(f"Crash recovery; {bench.args.io_method}, median of {bench.args.runs}",
                 ["case", "WAL of", "load s", "stock s", "ours s", "ratio", "of pairs", "stock CPU s", "our CPU s",
                  "stock ahead", "our ahead"], rows)
    report.goals(goals)
