"""The measurement: the same slices loaded with awaiting off and on, in turns, under one io_method after another.

Within an input both sides see the same slices in the same order and start from equal copies, so their indexes stay
equally old. A checkpoint before each load leaves nobody with another's dirty pages to write. Everything is asked
of the server itself: an observing session samples how many rows are in and how many reads are in flight.
"""

import threading
import time
from dataclasses import dataclass, field

import measure
import prepare
from device import Device
from pglib import Cluster, PgError
from prepare import SIDES

SAMPLE_S = 0.05
SLICES_MIN, SLICES_MAX = 2, 4
METHODS = ("sync", "worker", "io_uring")

# The background writer is as eager as it can be: a load that finds only dirty pages to reuse waits for its own writes.
# The process limits are low because each process's fair share of a small buffer pool bounds what it may pin.
SETTINGS = {
    "debug_io_direct": "data", "autovacuum": "off", "checkpoint_timeout": "1d", "max_wal_size": "8GB",
    "bgwriter_delay": "10ms", "bgwriter_lru_maxpages": 1000,
    "max_connections": 6, "superuser_reserved_connections": 0, "max_worker_processes": 0, "max_wal_senders": 0,
    "autovacuum_worker_slots": 1,
    "timezone": "UTC",
}

SAMPLE_SQL = """
SELECT extract(epoch FROM clock_timestamp() - s.query_start), p.tuples_processed,
       (SELECT count(*) FROM pg_aios a WHERE a.pid = p.pid AND a.operation = 'readv' AND a.state = 'SUBMITTED')
FROM pg_stat_progress_copy p, pg_stat_get_activity(p.pid) s"""


@dataclass
class Load:
    """One COPY: what it took, and the samples (seconds since its start, rows so far, reads in flight)."""
    rows: int
    seconds: float
    reads: int
    writes: int                     # of dirty pages whose buffers it needed
    disk_reads_in_flight: float     # as the block device counts them; None where it cannot be asked
    tasks: dict
    samples: list


@dataclass
class Result:
    """One input under one io_method: the loads of each side, in the order in which they ran."""
    new: object
    method: str
    loads: dict = field(default_factory=lambda: {side: [] for side in SIDES})

    def seconds(self, side):
        return sum(load.seconds for load in self.loads[side])

    def reads(self, side):
        return sum(load.reads for load in self.loads[side])

    def writes(self, side):
        return sum(load.writes for load in self.loads[side])

    def rows_per_s(self, side):
        return sum(load.rows for load in self.loads[side]) / self.seconds(side)

    def ratio(self):
        return self.rows_per_s("on") / self.rows_per_s("off")

    def reads_in_flight(self, side):
        """As the server counts them: time average while tasks waited. Without tasks there is one or none."""
        waited = [load for load in self.loads[side] if load.tasks["tasks_suspended"] > 0]
        if not waited:
            return None
        return (sum(load.tasks["avg_reads_in_flight"] * load.seconds for load in waited) /
                sum(load.seconds for load in waited))

    def disk_reads_in_flight(self, side):
        loads = self.loads[side]
        if any(load.disk_reads_in_flight is None for load in loads):
            return None
        return sum(load.disk_reads_in_flight * load.seconds for load in loads) / self.seconds(side)


def probe_methods(install, progress):
    """Which io_methods this machine allows; for the others, the reason why not."""
    available, refused = [], {}
    for method in METHODS:
        with progress.step(f"starting a server with io_method {method}"):
            try:
                with Cluster(install, prepare.DATA, {**SETTINGS, "io_method": method}):
                    available.append(method)
            except PgError as error:
                if method == "sync":
                    raise
                refused[method] = reason(error)
        if method in refused:
            progress.note(f"io_method {method} is not available here: {refused[method]}")
    return available, refused


def reason(error):
    """What the server said last before it gave up."""
    said = [line.partition(level)[2].strip() for line in str(error).splitlines() for level in ("LOG:", "FATAL:")
            if level in line and not line.endswith("contains errors")]
    return said[-1] if said else str(error).splitlines()[0]


def race(install, new, methods, slices, budget_s, progress):
    """Load slices under every method and return a Result for each.  Files are taken from the iterator `slices`."""
    results = []
    for method in methods:
        settings = {**SETTINGS, "shared_buffers": new.shared_buffers, "io_method": method}
        with Cluster(install, prepare.DATA, settings) as cluster, \
                progress.step(f"loading {new.name} with io_method {method}, awaiting off and on"):
            if not results:
                prepare.copy_template(cluster, new)
            results.append(race_method(cluster, new, method, slices, budget_s, progress))
    return results


def race_method(cluster, new, method, slices, budget_s, progress):
    result = Result(new, method)
    device = Device(prepare.DATA)
    sessions = {}
    for side in SIDES:
        sessions[side] = cluster.session(f"{new.name}_{side}")
        sessions[side].query(f"SET aio.await_index_inserts = {side}")
    observer = Observer(cluster.session())
    began = time.monotonic()
    for turn in range(SLICES_MAX):
        file = next(slices)
        # Who goes first changes with each turn, or whatever favours the second would favour one side.
        for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
            sessions[side].query("CHECKPOINT")
            with observer:
                timed = measure.timed(sessions[side], f"COPY {new.name} FROM {new.source_sql(file)}", device, task_stats=True)
            result.loads[side].append(Load(
                rows=new.slice_rows, seconds=timed["seconds"], samples=observer.samples, tasks=timed["tasks"],
                reads=timed["backend"]["reads"], writes=timed["backend"]["writes"],
                disk_reads_in_flight=timed["device"].get("read_depth_avg")))
            progress.update(f"{result.rows_per_s(side):,.0f} rows/s {side}")
        done = turn + 1
        if done >= SLICES_MIN and (time.monotonic() - began) * (done + 1) / done > budget_s:
            break
    return result


class Observer:
    """Samples the running COPY from a session of its own, in a thread, inside a `with` block."""

    def __init__(self, session):
        self.session = session
        self.samples = []

    def __enter__(self):
        self.samples = []
        self.done = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self._observe, daemon=True)
        self.thread.start()

    def __exit__(self, kind, _value, _traceback):
        self.done.set()
        if kind is None:
            self.thread.join()
            if self.failure:
                raise self.failure

    def _observe(self):
        try:
            while not self.done.wait(SAMPLE_S):
                for at, rows, in_flight in self.session.query(SAMPLE_SQL):
                    self.samples.append((float(at), int(rows), int(in_flight)))
        except PgError as error:
            self.failure = error
