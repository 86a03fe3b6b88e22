"""The disk under a directory: its counters while a load runs, and what fio says it can do at most.

Counters are those of /sys/dev/block/*/stat (Linux: Documentation/block/stat.rst).
"""

import json
import os
import shutil
import time
from pathlib import Path

from pglib import PgError, run

SECTOR_BYTES = 512
# label, fio pattern, depth: the shape of an unaided load, of the best one, and of a load that evicts what it dirtied.
PATTERNS = (("read QD1", "randread", 1), ("read QD64", "randread", 64), ("read+write QD64", "randrw", 64))


class Device:
    """Counters of the block device that holds `path`; without one (tmpfs, overlay) every figure is None."""

    def __init__(self, path):
        self.stat = self._find(path)

    @staticmethod
    def _find(path):
        number = os.stat(path).st_dev
        stat = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/stat")
        if stat.exists():
            return stat
        # btrfs and its like show a device number of their own; the mount table knows the disk.
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, rest = line.partition(" - ")
            source = rest.split()[1]
            if fields.split()[2] == f"{os.major(number)}:{os.minor(number)}" and source.startswith("/dev/"):
                disk = os.stat(source).st_rdev
                return Path(f"/sys/dev/block/{os.major(disk)}:{os.minor(disk)}/stat")
        return None

    def sample(self):
        if self.stat is None:
            return None
        counters = [int(word) for word in self.stat.read_text().split()]
        return {"at": time.monotonic(), "reads": counters[0], "read_sectors": counters[2], "read_ms": counters[3],
                "writes": counters[4], "write_sectors": counters[6], "write_ms": counters[7],
                "in_queue_ms": counters[10]}


def between(before, after):
    """What the device did between two samples. A depth is the time requests spent in it, per time that passed."""
    if before is None:
        return {}
    seconds = after["at"] - before["at"]
    delta = {name: after[name] - before[name] for name in before}
    return {
        "reads": delta["reads"],
        "writes": delta["writes"],
        "read_bytes": delta["read_sectors"] * SECTOR_BYTES,
        "write_bytes": delta["write_sectors"] * SECTOR_BYTES,
        "read_depth_avg": delta["read_ms"] / 1000 / seconds,
        "write_depth_avg": delta["write_ms"] / 1000 / seconds,
        "depth_avg": delta["in_queue_ms"] / 1000 / seconds,
    }


def _fio(path, pattern):
    """What fio says of one job on this file, which is made if it is not there."""
    if shutil.which("fio") is None:
        raise PgError("fio is not installed, so the limit of the device cannot be measured: install it "
                      "(apt-get install fio) or give --no-fio")
    said = run(["fio", "--name=limit", f"--filename={path}", "--ioengine=io_uring", "--direct=1", "--time_based",
                "--ramp_time=1", "--fallocate=none", "--output-format=json", *pattern])
    # fio may say something before the JSON.
    return json.loads(said[said.index("{"):])["jobs"][0]


def measure_limits(directory, size, seconds):
    """Random 8 kB direct I/O through io_uring on a file in `directory`: I/Os per second by label."""
    path = Path(directory) / "fio.dat"
    limits = {"file": size, "seconds": seconds}
    try:
        for label, pattern, depth in PATTERNS:
            job = _fio(path, [f"--rw={pattern}", "--bs=8k", f"--iodepth={depth}", "--norandommap", f"--size={size}",
                              f"--runtime={seconds}"])
            limits[label] = job["read"]["iops"] + job["write"]["iops"]
        limits["fio"] = run(["fio", "--version"]).strip()
    finally:
        path.unlink(missing_ok=True)
    return limits


def sequential_rate(directory, size, seconds):
    """Megabytes a second of sequential direct reads, 16 of 256 kB in flight, of a file in `directory`."""
    path = Path(directory) / "fio.dat"
    try:
        job = _fio(path, ["--rw=read", "--bs=256k", "--iodepth=16", f"--size={size}", f"--runtime={seconds}"])
        return job["read"]["bw_bytes"] / 1e6
    finally:
        path.unlink(missing_ok=True)
