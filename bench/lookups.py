"""lookups: statements that find rows by index, nothing of what they need in memory, both servers in turn.

Every statement runs in a new session, when all shared buffers have been in use, so that the kernel has given them memory,
and are empty again.  The keys are those of random rows, in random order, so each lookup reads a leaf of the index and a
page of the table.  "plain" and "slow" are read with direct I/O; "buffered" with nothing in the kernel's page cache, and
"page cache" with everything in there.
"""

import functools

import cold
import pairs
import tables
from measure import has_task_stats

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
    pairs.add_fio_options(parser)


def run(bench):
    args = bench.args
    data = tables.pristine(bench, args.rows)
    limits = pairs.measure_limits(bench)
    runs = []
    for disk in args.disk or cold.DISKS:
        runs += pairs.measure(bench, disk, data, cold.settings(disk, args.shared_buffers), args.case or list(CASES),
                              functools.partial(one, bench))
    pairs.show(bench, "Lookups", runs, goal, lambda _disk, case, _of: {"rows": f"{CASES[case][0]:,}"}, limits)
    bench.finish(runs=runs)


def goal(disk, case):
    wanted = CASES[case][2]
    if wanted is None or wanted <= 1:
        return wanted
    return {"plain": wanted, "slow": max(wanted, GOAL_SLOW), "buffered": GOAL_BUFFERED, "page cache": 1}[disk]


def one(bench, cluster, disk, side, case, seed):
    """One statement with nothing in memory; its result is digested to be compared."""
    rows, statement, _ = CASES[case]
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
    result = bench.timed(session, f"CREATE TEMP TABLE result AS {statement}" if statement.startswith("SELECT") else statement,
                         task_stats)
    result["result"] = (session.value("SELECT md5(string_agg(r::text, ',' ORDER BY r::text)) FROM result r")
                        if statement.startswith("SELECT") else
                        session.value("SELECT count(*) FROM keys k JOIN items i ON i.u1 = k.key"))
    return result
