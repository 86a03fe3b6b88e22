"""upserts: 20,000 rows, half of which are there already, into a table with five uuid indexes, both servers in turn.

Cold, nothing of what they need is in memory; the keys are random.  In memory, all of the table and its indexes is.
"""

import functools

import cold
import pairs
import tables
from measure import has_task_stats

HELP = "INSERT ... ON CONFLICT and MERGE, cold and in memory, both servers in turn"
RUNS = 3
GOAL_SLOW = 15
DISKS = ("plain", "slow", "memory")
PLAN = "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0"

# what: (statement, goal on the plain disk); u5 is indexed, so an update is not a heap-only one
CASES = {
    "do update": ("INSERT INTO items SELECT * FROM keys ON CONFLICT (u1) DO UPDATE SET u5 = excluded.u5", 3.5),
    "do nothing": ("INSERT INTO items SELECT * FROM keys ON CONFLICT (u1) DO NOTHING", 3.5),
    "merge": ("MERGE INTO items i USING keys k ON i.u1 = k.u1 WHEN MATCHED THEN UPDATE SET u5 = k.u5 "
              "WHEN NOT MATCHED THEN INSERT VALUES (k.u1, k.u2, k.u3, k.u4, k.u5)", 3.5),
    "not exists": ("INSERT INTO items SELECT * FROM keys k WHERE NOT EXISTS (SELECT FROM items i WHERE i.u1 = k.u1)", 3.5),
}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table (%(default)s)")
    parser.add_argument("--load", type=int, default=20_000, help="rows of each statement (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="but for what is in memory (%(default)s)")


def run(bench):
    args = bench.args
    data = pristine(bench, args.rows)
    runs = []
    for disk in args.disk or DISKS:
        settings = {"shared_buffers": "3GB", "max_wal_size": "16GB"} if disk == "memory" else cold.settings(disk, args.shared_buffers)
        runs += pairs.measure(bench, disk, data, settings, args.case or list(CASES), functools.partial(one, bench))
    pairs.show(bench, "Upserts", runs, lambda disk, case: {"plain": CASES[case][1], "slow": GOAL_SLOW, "memory": 1}[disk])
    bench.finish(runs=runs)


def pristine(bench, rows):
    """The table of the other benchmarks, with a primary key."""
    data = bench.data(f"pristine-{rows}-with-key")
    if not data.exists():
        source = tables.pristine(bench, rows)
        bench.step(f"making {data} of it (once)")
        tables.build_pristine(bench, data, lambda session: session.query(
            "DROP INDEX items_u1; ALTER TABLE items ADD PRIMARY KEY (u1); VACUUM (FREEZE, ANALYZE) items"), source)
    return data


def one(bench, cluster, disk, side, case, seed):
    statement, load = CASES[case][0], bench.args.load
    session = cluster.session()
    new = ", ".join(f"md5('{seed} {column} ' || n)::uuid AS {column}" for column in tables.COLUMNS[1:])
    session.query(
        "DROP TABLE IF EXISTS keys; CREATE TABLE keys AS "
        f"SELECT CASE WHEN n % 2 = 0 THEN u1 ELSE md5('{seed} ' || n)::uuid END AS u1, {new} FROM "
        f"(SELECT row_number() OVER () AS n, u1 FROM (SELECT u1 FROM items TABLESAMPLE BERNOULLI (1) REPEATABLE ({seed}) "
        f"ORDER BY md5(u1::text) LIMIT {load}) s) i")
    session.query("ANALYZE keys")
    if disk == "memory":
        session.query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^items'; CHECKPOINT")
    else:
        cold.evict(cluster, disk, "items")
    session = cluster.session()
    session.query(PLAN)
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs and the roots of the indexes are not what is measured.
    unknown = "'00000000-0000-0000-0000-000000000000'"
    session.query("; ".join(f"SELECT FROM items WHERE {column} = {unknown}" for column in tables.COLUMNS) + f"; EXPLAIN {statement}")
    result = bench.timed(session, statement, task_stats)
    result["result"] = session.query("SELECT count(*), count(*) FILTER (WHERE i.u5 = k.u5) FROM keys k JOIN items i ON i.u1 = k.u1")
    return result
