"""backup: how fast a server reads itself for a base backup, nothing of it in memory, or all in the page cache.

What is read goes nowhere: BASE_BACKUP's target is "blackhole", and the client is stock's pg_basebackup for both servers, so
that only the server is compared.  It computes checksums of pages and of files meanwhile, as ever.  "to disk", each has its
own client, which writes plain files to the same disk, and syncs them.
"""

import functools
import os
import shutil
import time
from pathlib import Path

import cold
import device
import pairs
import pglib
import report
import tables

HELP = "base backups, cold, to nowhere and to disk, both servers in turn"
RUNS = 3

# disk: goal
GOALS = {"plain": 1.3, "slow": 5, "buffered": None, "page cache": None}
NOWHERE = "--target=blackhole"
CASES = {"backup": [NOWHERE], "no checksums": [NOWHERE, "--no-verify-checksums", "--manifest-checksums=none"],
         "to disk": []}
SMALL_TABLES = 300


def add_options(parser):
    parser.add_argument("--megabytes", type=int, default=3000, help="size of the large table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=GOALS, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    pairs.add_fio_options(parser)


def run(bench):
    args = bench.args
    limit = None if args.no_fio else sequential_limit(bench)
    data = pristine(bench, args.megabytes)
    runs = []
    for disk in args.disk or GOALS:
        runs += pairs.measure(bench, disk, data, cold.settings(disk, args.shared_buffers), args.case or list(CASES),
                              functools.partial(one, bench))
    if limit:
        print(f"\nDevice, sequential reads of 256 kB, direct I/O, depth 16: {limit:,.0f} MB/s")
    pairs.show(bench, "Base backups", runs, lambda disk, case: GOALS[disk] if case == "backup" else None, rates)
    bench.finish(runs=runs, sequential_limit=limit)


def sequential_limit(bench):
    bench.step("measuring the device with fio")
    return device.sequential_rate(bench.work, bench.args.fio_size, bench.args.fio_seconds)


def pristine(bench, megabytes):
    return tables.made_by(
        bench, f"backup-{megabytes}",
        f"CREATE TABLE large AS SELECT i, repeat(md5(i::text), 30) AS filler FROM generate_series(1, {megabytes} * 1000) i; "
        f"DO $$ BEGIN FOR n IN 1..{SMALL_TABLES} LOOP "
        "EXECUTE format('CREATE TABLE small_%s AS SELECT i FROM generate_series(1, 1000) i', n); END LOOP; END $$; "
        "VACUUM (FREEZE)")


def one(bench, cluster, disk, side, case, _seed):
    """One backup with nothing in memory, or all in the page cache."""
    session = cluster.session()
    session.query("CHECKPOINT")
    pglib.drop_from_page_cache(cluster.data)
    if disk == "page cache":
        pglib.read_into_page_cache(cluster.data)
    to_disk = NOWHERE not in CASES[case]
    copy = bench.data("copy")
    options = [*CASES[case], *(["--pgdata", copy] if to_disk else [])]
    program = bench.installs[side if to_disk else "stock"].program("pg_basebackup")
    cached, cpu = page_cache(), cpu_seconds(cluster)
    try:
        with bench.slowly():
            began = time.monotonic()
            pglib.run([program, "--wal-method=none", "--checkpoint=fast", *options], env=cluster.connection())
            seconds = time.monotonic() - began
        cached = page_cache() - cached
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return {"seconds": seconds, "cached": cached, "cpu_s": cpu_seconds(cluster) - cpu,
            "bytes": sum(os.path.getsize(name) for name in pglib.files_of(cluster.data) if "/pg_wal/" not in name),
            "result": None}


def page_cache():
    """Bytes of files that are in the kernel's page cache, shared memory apart."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return 1024 * (int(fields["Cached"].split()[0]) - int(fields["Shmem"].split()[0]))


def cpu_seconds(cluster):
    """Seconds of the processor that a server's processes, also those that have ended, have used since it was started."""
    postmaster = int((cluster.data / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == postmaster:
            ticks += sum(map(int, fields[11:15]))
        elif int(fields[1]) == postmaster:
            ticks += sum(map(int, fields[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def rates(_disk, _case, of):
    """Further columns: the rate of each side, and what it has left in the page cache."""
    return {**{f"{side} MB/s": report.number(report.median_of(of[side], "bytes") / 1e6 / report.median_of(of[side], "seconds"))
               for side in of},
            **{f"{side} cached MB": report.number(report.median_of(of[side], "cached") / 1e6) for side in of}}
