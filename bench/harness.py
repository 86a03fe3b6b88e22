"""What every benchmark needs: the two servers on equal data, a place to work, and the facts to record.

A benchmark holds the lock on build/bench while it runs: two at once would measure each other.
"""

import argparse
import contextlib
import fcntl
import sys
import time

import device
import measure
import pglib
import report
from pglib import Cluster, PgError

SIDES = ("stock", "ours")


def order(turn):
    """Who goes first in a pair changes with each turn, or whatever favours the second would favour one side."""
    return SIDES if turn % 2 else SIDES[::-1]


def add_common_options(parser, runs):
    parser.add_argument("--runs", type=int, default=runs, help="timed runs of each load on each server (%(default)s)")
    parser.add_argument("--io-method", default="io_uring", help="io_method of both servers (%(default)s)")
    parser.add_argument("--set", action="append", default=[], type=setting, metavar="NAME=VALUE",
                        help="a setting for both servers; may be repeated")
    parser.add_argument("--ours-set", action="append", default=[], type=setting, metavar="NAME=VALUE",
                        help="a setting for our server only, such as aio.await_index_inserts=off as a control")
    parser.add_argument("--ours", metavar="DIR", help="our installation (build/install)")
    parser.add_argument("--stock", metavar="DIR", help="the installation to compare with (build/stock)")
    parser.add_argument("--dir", metavar="DIR", help="where data directories go, hence which disk is measured "
                                                     "(build/bench)")


def setting(text):
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


class Bench:
    def __init__(self, name, args):
        if args.runs < 1:
            raise PgError("--runs must be at least 1")
        self.name = name
        self.args = args
        self.installs = {"stock": pglib.stock_install(args.stock).require(),
                         "ours": pglib.our_install(args.ours).require()}
        self.results = pglib.make_directory(report.RESULTS)
        self.work = pglib.make_directory(args.dir or self.results).resolve()
        self.lock = open(self.work / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PgError(f"another benchmark is running in {self.work}: wait for its end or give another --dir"
                          ) from None
        self.device = device.Device(self.work)
        self.slowly = contextlib.nullcontext    # within `with bench.slowly():`, a slow disk is slow
        self.facts = {"benchmark": name, "started": time.strftime("%Y-%m-%d %H:%M:%S %z"),
                      "revision": report.revision(), "machine": report.machine(),
                      "parameters": dict(vars(args)),
                      "versions": {side: install.version() for side, install in self.installs.items()},
                      "settings": {}}
        self.began = time.monotonic()
        self._clear_leftovers()

    def _clear_leftovers(self):
        """A run that was killed outright may have left servers behind; ours is the lock, so they are stale."""
        for side in SIDES:
            Cluster(self.installs[side], self.data(side)).stop("immediate")
            pglib.remove(self.data(side))
        Cluster(self.installs["stock"], self.data("pristine-unfinished")).stop("immediate")
        pglib.remove(self.data("pristine-unfinished"))

    def data(self, name):
        return self.work / "data" / name

    def step(self, text):
        """Tell what goes on now; on standard error, so that the tables can be redirected alone."""
        print(f"[{time.monotonic() - self.began:5.0f} s] {text}", file=sys.stderr, flush=True)

    def settings(self, side, settings):
        chosen = {"autovacuum": "off", "checkpoint_timeout": "1d", "max_wal_size": "32GB", "min_wal_size": "4GB",
                  **settings, "io_method": self.args.io_method, **dict(self.args.set)}
        if side == "ours":
            chosen.update(self.args.ours_set)
        return chosen

    @contextlib.contextmanager
    def servers(self, pristine, settings):
        """Both servers, each on its own copy of the same pristine data directory; the copies go at the end."""
        try:
            with contextlib.ExitStack() as stack:
                clusters = {}
                for side in SIDES:
                    pglib.clone(pristine, self.data(side))
                    clusters[side] = stack.enter_context(
                        Cluster(self.installs[side], self.data(side), self.settings(side, settings)))
                    session = clusters[side].session()
                    self.facts["settings"][side] = report.changed_settings(session)
                    session.close()
                yield clusters
        finally:
            for side in SIDES:
                pglib.remove(self.data(side))

    def on_disk(self, name):
        """Have data directories on the disk of this name meanwhile: the slow one, or whatever --dir is on."""
        return slow_disk(self) if name == "slow" else contextlib.nullcontext()

    def timed(self, session, statement, task_stats=False):
        """measure.timed() on this disk, which is as fast as it can be before and afterwards."""
        with self.slowly():
            return measure.timed(session, statement, self.device, task_stats)

    def touch_memory(self, megabytes):
        """Have so much free memory present.  A virtual machine may have given it back to its host, and whoever gets it for
        the page cache pays for the faults: that can be half the time of a load, now on one side and now on the other."""
        file = self.work / "touched"
        try:
            with open(file, "wb") as out:
                for _ in range(megabytes):
                    out.write(bytes(1 << 20))
        finally:
            file.unlink()

    def measure_limits(self, size, seconds):
        self.step(f"measuring the device with fio: {len(device.PATTERNS)} patterns, {seconds} s each")
        self.facts["device_limits"] = device.measure_limits(self.work, size, seconds)
        return self.facts["device_limits"]

    def finish(self, **measured):
        self.facts["took_seconds"] = round(time.monotonic() - self.began, 1)
        report.write_json(self.name, {**self.facts, **measured})


def numbers(text):
    """A comma-separated list of positive numbers, as an option's value."""
    try:
        values = [int(word) for word in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list such as 100,1000")
    return values


@contextlib.contextmanager
def slow_disk(bench):
    """Data directories are on a disk of our own meanwhile, which is slow within `with bench.slowly():` only.

    With nothing in memory, it takes hours to copy a data directory, or to choose rows, while each I/O takes a millisecond.
    """
    work = bench.work
    mount = work / "slow"
    tool = pglib.REPO / "tools" / "fault-disk"
    pglib.run([tool, "mount", mount, "-o", "durable"])

    @contextlib.contextmanager
    def slowly():
        pglib.run([tool, "control", mount, "delay", "disk", f"latency={bench.args.delay}"])
        try:
            yield
        finally:
            pglib.run([tool, "control", mount, "remove", "all"])

    try:
        bench.work, bench.slowly = mount, slowly
        yield
    finally:
        bench.work, bench.slowly = work, contextlib.nullcontext
        pglib.run([tool, "umount", mount])
        pglib.remove(mount.with_name("slow.files"))
