"""lookups: statements that find rows by index, nothing of what they need in memory, both servers in turn.

Every statement runs in a new session, when all shared buffers have been in use, so that the kernel has given them memory,
and are empty again.  The keys are those of random rows, in random order, so each lookup reads a leaf of the index and a
page of the table.  "plain" and "slow" are read with direct I/O; "buffered" with nothing in the kernel's page cache, and
"page cache" with everything in there.
"""

import contextlib

import cold
import harness
import pglib
import report
import tables
from harness import SIDES, order
from measure import has_task_stats, timed

HELP = "joins, scans, updates and deletes that find rows by index, cold, direct I/O, both servers in turn"
RUNS = 3
GOAL_BUFFERED = 3
GOAL_SLOW = 15

# what: (rows, statement, stock time / ours on the plain disk).  keys has the rows' keys.
BY_KEY = "items i WHERE i.u1 = k.key"
CASES = {
    "nested loop": (20_000, "SELECT count(i.u5) FROM keys k JOIN items i ON i.u1 = k.key", 3.5),
    "left join": (20_000, "SELECT count(i.u5) FROM keys k LEFT JOIN items i ON i.u1 = k.key", 3.5),
    "semi join": (20_000, f"SELECT count(*) FROM keys k WHERE EXISTS (SELECT FROM {BY_KEY} AND i.u5 IS NOT NULL)", 3.5),
    "index-only": (20_000, "SELECT count(i.u1) FROM keys k JOIN items i ON i.u1 = k.key", 3.5),
    "two joins": (20_000, "SELECT count(j.u5) FROM keys k JOIN items i ON i.u1 = k.key JOIN items j ON j.u2 = i.u2", 3.5),
    "index order": (23_000, "SELECT count(u5) FROM (SELECT u5 FROM items ORDER BY u1 LIMIT 23000) i", None),
    "index range": (23_000, "SELECT count(u5) FROM (SELECT u5 FROM items WHERE u1 < '00fb0000-0000-0000-0000-000000000000' "
                            "ORDER BY u1 OFFSET 0) i", 3.5),
    "delete": (20_000, "DELETE FROM items i USING keys k WHERE i.u1 = k.key", 3.5),
    "update": (10_000, "UPDATE items i SET u2 = md5(i.u2::text)::uuid, u3 = md5(i.u3::text)::uuid FROM keys k WHERE i.u1 = k.key", 6),
    "scalar subquery": (20_000, "SELECT count(x.v) FROM (SELECT (SELECT i.u5 FROM items i WHERE i.u1 = k.key) AS v FROM keys k OFFSET 0) x", 3.5),
    "any of an array": (20_000, "SELECT count(i.u5) FROM items i WHERE i.u1 = ANY (ARRAY(SELECT key FROM keys))", 3.5),
    "limit 1": (1, "SELECT i.u5 FROM keys k JOIN items i ON i.u1 = k.key LIMIT 1", 1),
    "limit 32": (32, "SELECT i.u5 FROM keys k JOIN items i ON i.u1 = k.key LIMIT 32", 1),
}
PLAN = "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = on; SET enable_bitmapscan = off; " \
       "SET max_parallel_workers_per_gather = 0; SET enable_memoize = off"


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=cold.DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--no-fio", action="store_true", help="do not measure the limits of the device")
    parser.add_argument("--fio-size", default="2g", help="size of the file that fio reads (%(default)s)")
    parser.add_argument("--fio-seconds", type=int, default=5, help="time for each of its patterns (%(default)s)")


def run(bench):
    args = bench.args
    data = tables.pristine(bench, args.rows)
    limits = {} if args.no_fio else bench.measure_limits(args.fio_size, args.fio_seconds)
    runs = []
    for disk in args.disk or cold.DISKS:
        # what is copied before would take an hour
        with (harness.slow_disk(bench, at_once=False) if disk == "slow" else contextlib.nullcontext(lambda: None)) as begin:
            runs += measure(bench, data, disk, begin)
    show(bench, runs, limits)
    bench.finish(runs=runs)


def measure(bench, data, disk, begin):
    args = bench.args
    bench.step(f"{disk} disk: copying the data for both servers")
    runs = []
    with bench.servers(data, cold.settings(disk, args.shared_buffers)) as clusters:
        begin()
        for number, case in enumerate(args.case or CASES):
            rows, statement, _ = CASES[case]
            for turn in range(1, args.runs + 1):
                # other rows each time: those of another seed may be gone
                seed = 1000 * number + turn
                pair = {side: one(clusters[side], disk, side, rows, statement, seed, bench.device) for side in order(turn)}
                if len({pair[side]["result"] for side in SIDES}) > 1:
                    raise pglib.PgError(f"{case}: the servers differ: {pair}")
                runs += [{"disk": disk, "case": case, "turn": turn, "side": side, **pair[side]} for side in SIDES]
                bench.step(f"{disk}, {case}, run {turn} of {args.runs}: "
                           + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
    return runs


def one(cluster, disk, side, rows, statement, seed, device):
    """One statement with nothing in memory; its result is digested to be compared."""
    session = cluster.session()
    session.query(f"DROP TABLE IF EXISTS keys; CREATE TABLE keys AS SELECT u1 AS key FROM "
                  f"(SELECT u1, u2 FROM items TABLESAMPLE BERNOULLI (0.5) REPEATABLE ({seed})) i "
                  f"ORDER BY u2 LIMIT {rows if rows > 32 else 1000}; ANALYZE keys")
    cold.evict(cluster, disk, "items")
    session = cluster.session()
    session.query(PLAN)
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs, the root of the index and the plan's first pages are not what is measured.
    unknown = "'00000000-0000-0000-0000-000000000000'"
    session.query(f"SELECT FROM items WHERE u1 = {unknown}; SELECT FROM items WHERE u2 = {unknown}; "
                  f"EXPLAIN {statement}")
    result = timed(session, f"CREATE TEMP TABLE result AS {statement}" if statement.startswith("SELECT") else statement,
                   device, task_stats)
    result["result"] = (session.value("SELECT md5(string_agg(r::text, ',' ORDER BY r::text)) FROM result r")
                        if statement.startswith("SELECT") else
                        session.value("SELECT count(*) FROM keys k JOIN items i ON i.u1 = k.key"))
    return result


def show(bench, runs, limits):
    args = bench.args
    if limits:
        print("\nDevice, random 8 kB direct I/O (I/Os per second): "
              + ", ".join(f"{label} {limits[label]:,.0f}" for label in limits if label.startswith("read")))
    entries = []
    for disk in args.disk or cold.DISKS:
        rows = []
        for case in args.case or CASES:
            of = {side: [run for run in runs if (run["disk"], run["case"], run["side"]) == (disk, case, side)]
                  for side in SIDES}
            one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
            reads = {side: report.median_of(of[side], "backend", "reads") for side in SIDES}
            share = reads["ours"] / one["ours"] / limits["read QD64"] if limits and disk == "plain" else None
            rows.append([case, f"{CASES[case][0]:,}", f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}",
                         f"{one['pair_min']:.2f}-{one['pair_max']:.2f}", report.number(reads["stock"]),
                         report.number(reads["ours"]), report.percent(share) if share else "",
                         f"{report.median_of(of['stock'], 'cpu_s'):.2f}", f"{report.median_of(of['ours'], 'cpu_s'):.2f}"])
            goal = CASES[case][2]
            if goal:
                goal = {"plain": goal, "slow": max(goal, GOAL_SLOW), "buffered": GOAL_BUFFERED, "page cache": 1}[disk] if goal > 1 else 1
                entries.append((f"{disk}, {case}, stock time / ours", one["ratio"], goal))
        report.table(f"Lookups, {disk} disk; {args.io_method}, median of {args.runs}",
                     ["case", "rows", "stock s", "ours s", "ratio", "of pairs", "stock reads", "our reads", "of limit",
                      "stock CPU s", "our CPU s"], rows)
    report.goals(entries)
