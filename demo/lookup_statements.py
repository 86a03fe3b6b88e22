"""Statements that find their rows by index, with lookups ahead of need off and on, under one io_method after another.

They run on the two copies into which new rows have been loaded, and which are equal. Nothing that a statement needs is
in shared buffers when it begins, and each run has keys of its own. The rows of both sides are compared; what is left in
the tables after UPDATE and DELETE is compared by verify.py.
"""

from dataclasses import dataclass, field

import measure
import prepare
import race
from device import Device
from pglib import Cluster
from prepare import SIDES
from verify import checksum

TURNS = 2
# Leave the planner nested loops that look up an index, and scans in its order.
PLAN = ("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
        "SET enable_sort = off; SET enable_memoize = off; SET enable_material = off; "
        "SET max_parallel_workers_per_gather = 0")


@dataclass
class Statement:
    """One to run for several keys, which it finds in a table, or for a range that depends on {number}."""
    title: str
    index: str              # which it must use
    sql: str
    keys: str = ""

    @property
    def changes(self):
        return not self.sql.startswith("SELECT")


def some(values, count):
    """A query for some of these values, others for each number, in no order."""
    return f"SELECT v AS key FROM ({values}) v (v) ORDER BY hashtextextended(v::text, {{number}}) LIMIT {count}"


PLANES = "SELECT DISTINCT tailnum FROM flights WHERE tailnum IS NOT NULL"
PARTS = "SELECT generate_series(1, 200000)"

STATEMENTS = {
    "flights": [
        Statement("all flights of 100 planes", "flights_tailnum",
                  "SELECT f.* FROM keys JOIN flights f ON f.tailnum = key", some(PLANES, 100)),
        Statement("flights by number, in its order", "flights_flight",
                  "SELECT row_number() OVER (), f.* FROM (SELECT * FROM flights WHERE flight BETWEEN 150 * {number} "
                  "AND 150 * {number} + 69 ORDER BY flight, time_hour) f"),
    ],
    "lineitem": [
        Statement("all lines of 300 parts", "lineitem_part_supp",
                  "SELECT l.* FROM keys JOIN lineitem l ON l.l_partkey = key", some(PARTS, 300)),
        Statement("1,000 parts: which were never returned?", "lineitem_part_supp",
                  "SELECT key FROM keys WHERE NOT EXISTS (SELECT FROM lineitem WHERE l_partkey = key AND "
                  "l_returnflag = 'R')", some(PARTS, 1000)),
        Statement("lines of 3 days, in the order of days and parts", "lineitem_ship_part",
                  "SELECT row_number() OVER (), l.* FROM (SELECT * FROM lineitem WHERE l_shipdate BETWEEN "
                  "date '1995-01-01' + 10 * {number} AND date '1995-01-03' + 10 * {number} "
                  "ORDER BY l_shipdate, l_partkey) l"),
        Statement("UPDATE of all lines of 50 parts", "lineitem_part_supp",
                  "UPDATE lineitem l SET l_receiptdate = l_receiptdate + 1 FROM keys WHERE l.l_partkey = key",
                  some(PARTS, 50)),
        Statement("DELETE of all lines of 300 parts", "lineitem_part_supp",
                  "DELETE FROM lineitem l USING keys WHERE l.l_partkey = key", some(PARTS, 300)),
    ],
}


@dataclass
class Run:
    rows: int               # that were found
    checksum: str           # of what SELECT returns
    seconds: float
    reads: int
    disk_reads_in_flight: float     # as the block device counts them; None where it cannot be asked


@dataclass
class Result:
    """A statement under one io_method: the runs of each side, in the order in which they ran."""
    new: object
    statement: Statement
    method: str
    runs: dict = field(default_factory=lambda: {side: [] for side in SIDES})
    faults: list = field(default_factory=list)

    def seconds(self, side):
        return sum(run.seconds for run in self.runs[side])

    def rows(self):
        return sum(run.rows for run in self.runs["on"])

    def reads(self, side):
        return sum(run.reads for run in self.runs[side])

    def ratio(self):
        return self.seconds("off") / self.seconds("on")

    def disk_reads_in_flight(self, side):
        runs = self.runs[side]
        if any(run.disk_reads_in_flight is None for run in runs):
            return None
        return sum(run.disk_reads_in_flight * run.seconds for run in runs) / self.seconds(side)


def measure_lookups(install, new, methods, progress):
    """Run the statements of an input under every method that can look ahead; return a Result for each."""
    results = []
    for place, method in enumerate(method for method in methods if method != "sync"):
        settings = {**race.SETTINGS, "shared_buffers": new.shared_buffers, "io_method": method}
        with Cluster(install, prepare.DATA, settings) as cluster, \
                progress.step(f"looking up {new.name} with io_method {method}, lookups ahead off and on"):
            sessions = {side: cluster.session(f"{new.name}_{side}") for side in SIDES}
            for side, value in (("off", "0"), ("on", "DEFAULT")):
                sessions[side].query(f"{PLAN}; SET aio.lookup_ahead = {value}")
            device = Device(prepare.DATA)
            for statement in STATEMENTS[new.name]:
                results.append(measure_one(sessions, device, Result(new, statement, method), place * TURNS))
    return results


def measure_one(sessions, device, result, first):
    for turn in range(TURNS):
        # Who goes first changes with each turn, or whatever favours the second would favour one side.
        for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
            result.runs[side].append(run(sessions[side], device, result, first + turn))
        off, on = (result.runs[side][-1] for side in SIDES)
        if (off.rows, off.checksum) != (on.rows, on.checksum):
            result.faults.append(f"the two sides differ: {off.rows:,} and {on.rows:,} rows, checksums {off.checksum} "
                                 f"and {on.checksum}")
    return result


def run(session, device, result, number):
    statement = result.statement
    sql = statement.sql.format(number=number)
    if statement.keys:
        session.query(f"CREATE TABLE keys AS {statement.keys.format(number=number)}; ANALYZE keys")
    plan = "\n".join(row[0] for row in session.query(f"EXPLAIN {sql}"))
    if statement.index not in plan:
        result.faults.append("the planner did not use the index")
    session.query("CHECKPOINT; SELECT FROM pg_buffercache_evict_all()")
    timed = measure.timed(session, (sql if statement.changes else f"CREATE TEMP TABLE found AS {sql}") +
                          ";\n\\set found :ROW_COUNT", device)
    rows, total = int(session.value("SELECT :found")), ""
    if not statement.changes:
        rows, total = checksum(session, "SELECT count(*), sum(hash_record_extended(found, 0)) FROM found")
        session.query("DROP TABLE found")
    session.query("DROP TABLE IF EXISTS keys")
    return Run(rows, total, timed["seconds"], timed["backend"]["reads"], timed["device"].get("read_depth_avg"))
