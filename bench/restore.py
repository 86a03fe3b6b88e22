"""restore: pg_restore, into a table that has its indexes, and of a whole database, both servers in turn.

The program is stock's for both servers.  "data" loads rows into the table under test, which has five indexes on random
keys, with nothing in memory.  "database" makes the table, loads it, and creates the indexes, as pg_restore does.
"""

import contextlib
import time

import cold
import measure
import pairs
import pglib
import tables

HELP = "pg_restore of rows into an indexed table, cold, and of a whole database"
RUNS = 3
GOALS = {"data": 5, "database": None}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=50_000, help="rows restored into the table (%(default)s)")
    parser.add_argument("--table-rows", type=int, default=6_000_000, help="rows in the table at the start (%(default)s)")
    parser.add_argument("--database-rows", type=int, default=1_000_000, help="rows of the database (%(default)s)")
    parser.add_argument("--case", choices=GOALS, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=cold.DISKS[:3], action="append", help="only this; may be repeated (plain)")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")


def run(bench):
    args = bench.args
    data = tables.pristine(bench, args.table_rows)
    runs = []
    with contextlib.ExitStack() as stack:
        dumps = {case: stack.enter_context(dump(bench, case)) for case in args.case or GOALS}
        for disk in args.disk or ["plain"]:
            runs += pairs.measure(bench, disk, data, cold.settings(disk, args.shared_buffers), list(dumps),
                                  lambda *run: one(bench, dumps, *run))
    pairs.show(bench, "pg_restore", runs, lambda disk, case: GOALS[case] if disk == "plain" else None)
    bench.finish(runs=runs)


@contextlib.contextmanager
def dump(bench, case):
    """The file of a dump, of a database that exists for a moment."""
    rows = bench.args.rows if case == "data" else bench.args.database_rows
    path = bench.work / f"{case}.dump"
    bench.step(f"dumping {rows:,} rows")
    cluster = pglib.Cluster(bench.installs["stock"], bench.data("pristine-unfinished"), {"fsync": "off"}).initdb()
    try:
        with cluster:
            cluster.session().query(f"{tables.create_sql()}; {tables.fill_sql(rows)}; {tables.index_sql()}")
            cluster.run_client("pg_dump", "--format=custom", "--compress=none", "--file", path)
        pglib.remove(cluster.data)
        yield path
    finally:
        pglib.remove(cluster.data)
        path.unlink(missing_ok=True)


def one(bench, dumps, cluster, disk, _side, case, _seed):
    """One restore; what it has added to the table stays there."""
    session = cluster.session()
    session.query("DROP DATABASE IF EXISTS restored")
    session.query("CREATE DATABASE restored")
    cold.evict(cluster, disk, tables.TABLE)
    database, options = ("postgres", ["--data-only"]) if case == "data" else ("restored", [])
    command = [bench.installs["stock"].program("pg_restore"), *options, "--dbname", database, dumps[case]]
    cpu, io = measure.reaped_cpu_seconds(cluster), bench.device.sample()
    with bench.slowly():
        began = time.monotonic()
        pglib.run(command, env=cluster.connection(database))
        seconds = time.monotonic() - began
    found = {"seconds": seconds, "device": measure.disk.between(io, bench.device.sample()),
             "result": cluster.run_client("psql", "-AtXc", f"SELECT count(*) FROM {tables.TABLE}", database=database)}
    # By now the session of pg_restore has ended.
    return {**found, "cpu_s": measure.reaped_cpu_seconds(cluster) - cpu}
