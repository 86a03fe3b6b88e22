"""Statements that run on both copies of a database, which differ in settings only, under one io_method after another.

They come in chapters. The copies are those into which new rows have been loaded, and are equal. Nothing that a statement
needs is in shared buffers when it begins, and each run has keys and rows of its own. The number of rows, and the rows
that SELECT returns, are compared between the sides; what is left in the tables is compared by verify.py.
"""

from dataclasses import dataclass, field

import measure
import prepare
import race
from device import Device
from pglib import Cluster
from prepare import SIDES
from verify import checksum

TURNS = 2       # runs of each statement on each side


@dataclass
class Chapter:
    name: str               # also of its figure
    heading: str
    caption: str            # of its table on the terminal
    switch: str             # what is off and on, in a few words
    difference: str         # the settings, and their values on either side
    about: str              # for the report
    settings: dict          # SQL for the session of each side
    statements: dict        # by the name of the input


@dataclass
class Statement:
    """In its SQL {number} differs from run to run, and {file} is a slice of {rows} new rows as COPY takes it."""
    title: str
    sql: str
    index: str = ""         # which the plan must use
    before: str = ""        # not measured; the tables that it makes are "keys" and temporary ones

    @property
    def loads(self):
        return "{file}" in self.before + self.sql

    @property
    def is_select(self):
        return self.sql.startswith("SELECT")


@dataclass
class Run:
    rows: int               # that were found or written
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

    def growth(self):
        """By how many rows the table must have grown."""
        if self.statement.loads:
            return self.new.slice_rows * len(self.runs["on"])
        return -self.rows() if self.statement.sql.startswith("DELETE") else 0

    def reads(self, side):
        return sum(run.reads for run in self.runs[side])

    def ratio(self):
        return self.seconds("off") / self.seconds("on")

    def disk_reads_in_flight(self, side):
        runs = self.runs[side]
        if any(run.disk_reads_in_flight is None for run in runs):
            return None
        return sum(run.disk_reads_in_flight * run.seconds for run in runs) / self.seconds(side)


def add_constraints(install, new, progress):
    """Give both copies their keys and foreign keys, which the loads before were to do without."""
    with Cluster(install, prepare.DATA, {**race.SETTINGS, "shared_buffers": new.shared_buffers}) as cluster, \
            progress.step(f"adding constraints to {new.name}"):
        for side in SIDES:
            cluster.session(f"{new.name}_{side}").query("; ".join(new.constraints_sql()))


def measure_chapter(install, chapter, new, methods, slices, progress):
    """Run the statements for an input under every method that can look ahead; return a Result for each.

    The iterator `slices` gives the files that have not been loaded yet.
    """
    results = []
    for place, method in enumerate(method for method in methods if method != "sync"):
        settings = {**race.SETTINGS, "shared_buffers": new.shared_buffers, "io_method": method}
        with Cluster(install, prepare.DATA, settings) as cluster, \
                progress.step(f"{chapter.name} of {new.name} with io_method {method}, {chapter.switch} off and on"):
            sessions = {side: cluster.session(f"{new.name}_{side}") for side in SIDES}
            for side in SIDES:
                sessions[side].query(chapter.settings[side])
            device = Device(prepare.DATA)
            for statement in chapter.statements[new.name]:
                results.append(measure_one(sessions, device, Result(new, statement, method), place * TURNS, slices))
    return results


def measure_one(sessions, device, result, first, slices):
    for turn in range(TURNS):
        names = {"number": first + turn, "rows": result.new.slice_rows,
                 "file": result.new.source_sql(next(slices)) if result.statement.loads else ""}
        # Who goes first changes with each turn, or whatever favours the second would favour one side.
        for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
            result.runs[side].append(run(sessions[side], device, result, names))
        off, on = (result.runs[side][-1] for side in SIDES)
        if (off.rows, off.checksum) != (on.rows, on.checksum):
            result.faults.append(f"the two sides differ: {off.rows:,} and {on.rows:,} rows, checksums {off.checksum} "
                                 f"and {on.checksum}")
    return result


def run(session, device, result, names):
    statement = result.statement
    sql = statement.sql.format(**names)
    session.query(statement.before.format(**names))
    if statement.index:
        plan = "\n".join(row[0] for row in session.query(f"EXPLAIN {sql}"))
        if statement.index not in plan:
            result.faults.append("the planner did not use the index")
    session.query("CHECKPOINT; SELECT FROM pg_buffercache_evict_all()")
    timed = measure.timed(session, (f"CREATE TEMP TABLE found AS {sql}" if statement.is_select else sql) +
                          ";\n\\set found :ROW_COUNT", device)
    rows, total = int(session.value("SELECT :found")), ""
    if statement.is_select:
        rows, total = checksum(session, "SELECT count(*), sum(hash_record_extended(found, 0)) FROM found")
    session.query("DROP TABLE IF EXISTS keys; DISCARD TEMP")
    return Run(rows, total, timed["seconds"], timed["backend"]["reads"], timed["device"].get("read_depth_avg"))
