"""streams: statements that write gigabytes, with buffered I/O, where memory is short and where it is not.

What is written passes through the page cache, and has to leave it.  So the kernel's time on all processors counts, not
only the backend's: whoever writes back dirty pages works for the statement.  Each statement is followed by a CHECKPOINT,
or who leaves the most behind would be the fastest.
"""

import contextlib
import os
import statistics
from pathlib import Path

import pglib
import report
from harness import SIDES, order
from measure import timed
from memory_group import MemoryGroup

HELP = "CREATE TABLE AS, COPY and CREATE INDEX of gigabytes, buffered I/O, also in a memory cgroup of 1 GB"
RUNS = 3
STATEMENTS = {"CREATE TABLE AS": "CREATE TABLE made AS SELECT * FROM source",
              "COPY": "COPY empty FROM {file}",
              "CREATE INDEX": "CREATE INDEX made_index ON source (i, filler)"}
MEMORY = ("short", "plenty")
GOAL_TIME, GOAL_KERNEL, NOT_SLOWER = 1.2, 4 / 3, 0.97
ROW_BYTES = 165     # of a page, for each row


def add_options(parser):
    parser.add_argument("--megabytes", type=int, default=4000, help="size of the table (%(default)s)")
    parser.add_argument("--group", type=int, default=1000, metavar="MB", help="limit of the cgroup (%(default)s)")
    parser.add_argument("--shared-buffers", default="128MB", help="(%(default)s)")
    parser.add_argument("--memory", choices=MEMORY, action="append", help="only this; may be repeated")
    parser.add_argument("--statement", choices=STATEMENTS, action="append", help="only this; may be repeated")


def run(bench):
    args = bench.args
    base, file = bench.data("pristine-unfinished"), bench.work / "source.copy"
    runs = []
    try:
        build(bench, base, file)
        for memory in args.memory or MEMORY:
            runs += measure(bench, base, file, memory)
    finally:
        pglib.remove(base)
        file.unlink(missing_ok=True)
    show(bench, runs)


def build(bench, base, file):
    """The table, and a file of its rows."""
    bench.step("building the table")
    rows = bench.args.megabytes * 10 ** 6 // ROW_BYTES
    cluster = pglib.Cluster(bench.installs["stock"], base, {"fsync": "off", "max_wal_size": "16GB"}).initdb()
    with cluster:
        session = cluster.session()
        session.query("CREATE TABLE empty (i bigint, k int, m text, filler text); CREATE TABLE source (LIKE empty); "
                      "INSERT INTO source SELECT i, i % 1000, md5(i::text), repeat('x', 80) "
                      f"FROM generate_series(1, {rows}) i; VACUUM (FREEZE, ANALYZE) source")
        session.query(f"COPY source TO {pglib.quote(file)}")


@contextlib.contextmanager
def limited(bench, memory, clusters):
    """The servers, restarted in a group of their own where memory is short."""
    with contextlib.ExitStack() as stack:
        if memory == "short":
            for side, cluster in clusters.items():
                cluster.stop()
                cluster.memory_group = stack.enter_context(MemoryGroup(side, bench.args.group << 20))
                cluster.start()
        try:
            yield
        finally:
            for cluster in clusters.values():
                cluster.stop()


def measure(bench, base, file, memory):
    bench.step(f"{memory}: copying the data for both servers")
    settings = {"shared_buffers": bench.args.shared_buffers, "maintenance_work_mem": "64MB", "max_wal_size": "4GB",
                "max_parallel_workers_per_gather": "0", "max_parallel_maintenance_workers": "0"}
    runs = []
    with bench.servers(base, settings) as clusters, limited(bench, memory, clusters):
        for name in bench.args.statement or STATEMENTS:
            for turn in range(1, bench.args.runs + 1):
                pair = {side: one(bench, clusters[side], name, file) for side in order(turn)}
                runs += [{"memory": memory, "statement": name, "turn": turn, "side": side, **pair[side]} for side in SIDES]
                bench.step(f"{memory}, {name}, run {turn} of {bench.args.runs}: " + ", ".join(
                    f"{side} {pair[side]['seconds']:.1f} s, kernel {pair[side]['kernel_s']:.1f} s" for side in SIDES))
    return runs


def one(bench, cluster, name, file):
    """One statement and a CHECKPOINT, with nothing of its data in the page cache."""
    session = cluster.session()
    session.query("DROP TABLE IF EXISTS made; DROP INDEX IF EXISTS made_index; TRUNCATE empty; CHECKPOINT")
    pglib.drop_from_page_cache(cluster.data)
    with open(file, "rb") as rows:
        os.posix_fadvise(rows.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    kernel = kernel_seconds()
    found = timed(session, STATEMENTS[name].format(file=pglib.quote(file)) + "; CHECKPOINT", bench.device)
    found["kernel_s"] = kernel_seconds() - kernel
    session.close()
    cluster.sessions.remove(session)
    return found


def kernel_seconds():
    """Of all processors: system, interrupts, and those of the network and of disks."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return sum(int(fields[field]) for field in (3, 6, 7)) / os.sysconf("SC_CLK_TCK")


def show(bench, runs):
    args = bench.args
    goals = []
    for memory in args.memory or MEMORY:
        rows = []
        for name in args.statement or STATEMENTS:
            of = {side: [one for one in runs if (one["memory"], one["statement"], one["side"]) == (memory, name, side)]
                  for side in SIDES}
            time = report.compare(*([one["seconds"] for one in of[side]] for side in SIDES))
            kernel = report.compare(*([one["kernel_s"] for one in of[side]] for side in SIDES))
            rows.append([name, f"{time['stock']:.1f}", f"{time['ours']:.1f}", f"{time['ratio']:.2f}", pairs(time),
                         f"{kernel['stock']:.1f}", f"{kernel['ours']:.1f}", f"{kernel['ratio']:.2f}", pairs(kernel),
                         *(f"{statistics.median(one['cpu_s'] for one in of[side]):.1f}" for side in SIDES)])
            goals.append((f"{memory}, {name}, stock time / ours", time["ratio"], NOT_SLOWER))
            if memory == "short":
                goals.append((f"{name}, time by {GOAL_TIME}, or kernel's CPU by {GOAL_KERNEL:.2f}",
                              max(time["ratio"] / GOAL_TIME, kernel["ratio"] / GOAL_KERNEL), 1))
        report.table(f"{args.megabytes:,} MB, buffered, memory: {memory}; {args.io_method}, median of {args.runs}",
                     ["statement", "stock s", "ours s", "ratio", "of pairs", "stock kernel s", "ours kernel s", "ratio",
                      "of pairs", "stock backend CPU s", "ours"], rows)
    report.goals(goals)
    bench.finish(runs=runs)


def pairs(one):
    return f"{one['pair_min']:.2f}-{one['pair_max']:.2f}"
