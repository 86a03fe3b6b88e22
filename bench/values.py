"""values: statements that fetch values stored out of line, nothing of them in memory, both servers in turn.

A table has 100,000 rows with a text of 4 kB each, whose TOAST table has them in random order: so each value is one or two
random reads.  Another one has one value of 64 MB.  All is read with direct I/O, except on the disk "buffered".
"""

import functools

import cold
import pairs
import pglib
import tables
from measure import has_task_stats

HELP = "COPY TO, pg_dump and other statements that fetch values stored out of line, cold, both servers in turn"
RUNS = 3
GOAL = 3
GOAL_SLOW = 15
DISKS = ("plain", "slow", "buffered")

# what: (statement, goal on the plain disk); FILE is written.  A statement is None if a program is run.
CASES = {
    "copy": ("COPY items TO FILE", GOAL),
    "dump": (None, GOAL),
    "copy query": ("COPY (SELECT * FROM items) TO FILE", GOAL),
    "create table as": ("CREATE UNLOGGED TABLE made AS SELECT * FROM items", None),
    "aggregate": ("SELECT count(v), sum(hashtext(v)) FROM items", GOAL),
    "condition": ("SELECT count(*) FROM items WHERE v LIKE '%0000%'", GOAL),
    "index order": ("COPY (SELECT * FROM items WHERE id <= 20000 ORDER BY id) TO FILE", GOAL),
    "large value": ("SELECT md5(v) FROM large", None),
}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=100_000, help="rows in the table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")


def run(bench):
    args = bench.args
    data = pristine(bench, args.rows)
    runs = []
    for disk in args.disk or DISKS:
        runs += pairs.measure(bench, disk, data, cold.settings(disk, args.shared_buffers), args.case or list(CASES),
                              functools.partial(one, bench))
    pairs.show(bench, "Values out of line", runs, goal)
    bench.finish(runs=runs)


def goal(disk, case):
    wanted = CASES[case][1]
    return wanted and {"plain": wanted, "slow": GOAL_SLOW, "buffered": None}[disk]


def pristine(bench, rows):
    """New versions of rows are on the pages of the old ones, so that values, and not rows, are in random order."""
    return tables.made_by(
        bench, f"values-{rows}",
        "CREATE TABLE items (id int PRIMARY KEY, v text STORAGE EXTERNAL) WITH (fillfactor = 30); "
        f"INSERT INTO items SELECT i, NULL FROM generate_series(1, {rows}) i; "
        "SET enable_hashjoin = off; SET enable_mergejoin = off; "
        "UPDATE items SET v = (SELECT string_agg(gen_random_uuid()::text, '') FROM generate_series(1, 114) j WHERE k.id > 0) "
        "FROM (SELECT id FROM items ORDER BY hashint4(id) OFFSET 0) k WHERE k.id = items.id",
        "CREATE TABLE large (v text STORAGE EXTERNAL); "
        "INSERT INTO large SELECT string_agg(md5(i::text), '') FROM generate_series(1, 2097152) i; VACUUM (FREEZE, ANALYZE)")


def one(bench, cluster, disk, side, case, _seed):
    """One statement with nothing in memory."""
    statement = CASES[case][0]
    path = bench.work / "values.out"
    session = cluster.session()
    session.query("DROP TABLE IF EXISTS made")
    if float(session.value("SELECT abs(corr(n, value)) FROM (SELECT row_number() OVER (ORDER BY ctid) AS n, "
                           "pg_column_toast_chunk_id(v)::bigint AS value FROM items) i")) > 0.1:
        raise pglib.PgError("values are in the order of the rows")
    cold.evict(cluster, disk, session.value("SELECT reltoastrelid::regclass FROM pg_class WHERE relname = 'items'"))
    session = cluster.session()
    task_stats = side == "ours" and has_task_stats(session)

    # Catalogs are not what is measured.
    session.query("SET max_parallel_workers_per_gather = 0; SELECT md5(v) FROM large LIMIT 0; SELECT hashtext(v) FROM items LIMIT 0")
    if statement is None:
        result = bench.timed(session, "SELECT", task_stats)
        with bench.slowly():
            began = float(session.value("SELECT extract(epoch FROM clock_timestamp())"))
            cluster.run_client("pg_dump", "-f", path, "-t", "items", "--restrict-key=bench")
            result["seconds"] = float(session.value("SELECT extract(epoch FROM clock_timestamp())")) - began
    else:
        result = bench.timed(session, statement.replace("FILE", pglib.quote(path)), task_stats)
    result["result"] = path.stat().st_size if path.exists() else None
    path.unlink(missing_ok=True)
    return result
