"""unique: loads into a table with a random uuid as its primary key and one more index, both servers in turn.

Cold, nothing of a table of 3M rows is in memory.  In memory, all of a smaller one is.  Beside a cold load, another session
inserts single rows into the table, each in a transaction of its own, and the longest that one of them takes is measured.
"""

import contextlib
import threading
import time

import cold
import harness
import pglib
import report
import tables
from harness import SIDES, order
from measure import has_task_stats, timed

HELP = "loads with random unique keys, cold and in memory, and what others wait meanwhile, both servers in turn"
RUNS = 3

# case: (disk, rows in the table or None for --rows, rows loaded, another session inserts, goal)
CASES = {
    "cold": ("plain", None, 50_000, False, 9),
    "cold, beside others": ("plain", None, 50_000, True, 3),
    "cold, 1 ms": ("slow", None, 50_000, False, 15),
    "in memory": ("memory", 1_000_000, 200_000, False, 1.5),
}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows in the cold table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="of the cold server (%(default)s)")


def run(bench):
    args = bench.args
    runs = []
    for case in args.case or CASES:
        disk, rows, *_ = CASES[case]
        data = pristine(bench, rows or args.rows)
        settings = {"shared_buffers": "1GB"} if disk == "memory" else cold.settings(disk, args.shared_buffers)
        with harness.slow_disk(bench, at_once=False) if disk == "slow" else contextlib.nullcontext(lambda: None) as begin:
            bench.step(f"{case}: copying the data for both servers")
            with bench.servers(data, settings) as clusters:
                begin()
                for turn in range(1, args.runs + 1):
                    pair = {}
                    for side in order(turn):
                        pair[side] = one(bench, clusters, side, case, turn)
                        runs.append({"case": case, "turn": turn, "side": side, **pair[side]})
                    if len({pair[side]["result"] for side in SIDES}) > 1:
                        raise pglib.PgError(f"{case}: the servers differ: {pair}")
                    bench.step(f"{case}, run {turn} of {args.runs}: "
                               + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
        (bench.work / "unique.copy").unlink(missing_ok=True)
    show(bench, runs)
    bench.finish(runs=runs)


def pristine(bench, rows):
    """The data directory of a stopped server with a table of that many rows."""
    data = bench.data(f"pristine-unique-{rows}")
    if not data.exists():
        bench.step(f"building a table of {rows:,} rows (once; kept in {data})")

        def build(session):
            session.query("BEGIN; CREATE TABLE target (id uuid, other uuid, n int); INSERT INTO target "
                          f"SELECT gen_random_uuid(), gen_random_uuid(), i FROM generate_series(1, {rows}) i; COMMIT")
            session.query("ALTER TABLE target ADD PRIMARY KEY (id); CREATE INDEX ON target (other); VACUUM (FREEZE, ANALYZE)")
        tables.build_pristine(bench, data, build)
    return data


def one(bench, clusters, side, case, turn):
    """One load.  The rows are the same on both sides, and no two loads have the same."""
    disk, _, rows, beside, _ = CASES[case]
    cluster = clusters[side]
    path = bench.work / "unique.copy"
    if side == order(turn)[0]:
        cluster.session().query(f"COPY (SELECT gen_random_uuid(), gen_random_uuid(), -{turn} FROM generate_series(1, {rows})) "
                                f"TO {pglib.quote(path)}")
    if disk == "memory":
        cluster.session().query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; CHECKPOINT; "
                                "SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^target'")
    else:
        cold.evict(cluster, disk, "target")
    session = cluster.session()
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs and the roots of the indexes are not what is measured.
    session.query("BEGIN; INSERT INTO target SELECT gen_random_uuid(), gen_random_uuid(), 0; ROLLBACK")
    with Neighbour(cluster) if beside else contextlib.nullcontext() as neighbour:
        result = timed(session, f"COPY target FROM {pglib.quote(path)}", bench.device, task_stats)
    if neighbour:
        result["neighbour"] = neighbour.seconds
    result["result"] = session.value(f"SELECT count(DISTINCT id) FROM target WHERE n = -{turn}")
    return result


class Neighbour:
    """A session that inserts one row after the other, until it is told to stop."""

    def __init__(self, cluster):
        self.session = cluster.session()
        self.seconds = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        while not self.stopped.is_set():
            began = time.monotonic()
            self.session.query("INSERT INTO target VALUES (gen_random_uuid(), gen_random_uuid(), 0)")
            self.seconds.append(time.monotonic() - began)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def show(bench, runs):
    args = bench.args
    table, waits, entries = [], [], []
    for case in args.case or CASES:
        of = {side: [run for run in runs if (run["case"], run["side"]) == (case, side)] for side in SIDES}
        one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
        table.append([case, f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}",
                      f"{one['pair_min']:.2f}-{one['pair_max']:.2f}",
                      *(report.number(report.median_of(of[side], "backend", "reads")) for side in SIDES),
                      *(f"{report.median_of(of[side], 'cpu_s'):.2f}" for side in SIDES)])
        entries.append((f"{case}, stock time / ours", one["ratio"], CASES[case][-1]))
        for side in SIDES:
            times = sorted(1000 * seconds for run in of[side] for seconds in run.get("neighbour", []))
            if times:
                waits.append([f"{case}, {side}", report.number(len(times)), f"{times[len(times) // 2]:.2f}",
                              f"{times[len(times) * 99 // 100]:.1f}", f"{times[-1]:.1f}"])
    report.table(f"Random unique keys; {args.io_method}, median of {args.runs}",
                 ["case", "stock s", "ours s", "ratio", "of pairs", "stock reads", "our reads", "stock CPU s", "our CPU s"],
                 table)
    if waits:
        report.table("Single rows that another session inserts meanwhile", ["", "rows", "median ms", "99% ms", "longest ms"],
                     waits)
    report.goals(entries)
