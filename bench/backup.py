"""backup: how fast a server reads itself for a base backup, nothing of it in memory, or all in the page cache.

What is read goes nowhere: BASE_BACKUP's target is "blackhole", and the client is stock's pg_basebackup for both servers, so
that only the server is compared.  It computes checksums of pages and of files meanwhile, as ever.  "to disk", each has its
own client, which writes plain files to the same disk, and syncs them.

Tables of one size are received by one connection and by several, which stock's client does not have, on this machine and
by connections whose rate is limited or which are far away.
"""

import collections
import contextlib
import functools
import os
import shutil
import time
from pathlib import Path

import cold
import device
import pairs
import pglib
import relay
import report
import tables

HELP = "base backups, cold, to nowhere and to disk, both servers in turn"
RUNS = 3

GOALS = {("plain", "backup"): 1.3, ("slow", "backup"): 5, ("plain", "4 jobs, 50 MB/s"): 3.5}
# Options of pg_basebackup, the connections of our client, a round trip in microseconds, and a rate in MB/s.
Case = collections.namedtuple("Case", "options jobs round_trip_us mb_per_s", defaults=((), 1, 0, 0))
NOWHERE = "--target=blackhole"
ALONE = {"backup": Case([NOWHERE]), "no checksums": Case([NOWHERE, "--no-verify-checksums", "--manifest-checksums=none"]),
         "to disk": Case()}
# These are of the plain disk only.
SHARED = {"1 job": Case(), "4 jobs": Case(jobs=4),
          "1 job, 50 MB/s": Case(mb_per_s=50), "4 jobs, 50 MB/s": Case(jobs=4, mb_per_s=50),
          "1 job, 1 ms": Case(round_trip_us=1000), "4 jobs, 1 ms": Case(jobs=4, round_trip_us=1000)}
CASES = {**ALONE, **SHARED}
SMALL_TABLES, EQUAL_TABLES = 300, 24


def add_options(parser):
    parser.add_argument("--megabytes", type=int, default=3000, help="size of the large table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=cold.DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    pairs.add_fio_options(parser)


def run(bench):
    args = bench.args
    limit = None if args.no_fio else sequential_limit(bench)
    wanted = args.case or CASES
    runs = []
    for disk in args.disk or cold.DISKS:
        settings = {**cold.settings(disk, args.shared_buffers), "max_wal_senders": 10}
        for make, cases in ((one_large, ALONE), (of_one_size, SHARED if disk == "plain" else ())):
            cases = [case for case in cases if case in wanted]
            if cases:
                runs += pairs.measure(bench, disk, make(bench), settings, cases, functools.partial(one, bench))
    if limit:
        print(f"\nDevice, sequential reads of 256 kB, direct I/O, depth 16: {limit:,.0f} MB/s")
    pairs.show(bench, "Base backups", runs, lambda disk, case: GOALS.get((disk, case)), rates)
    bench.finish(runs=runs, sequential_limit=limit)


def sequential_limit(bench):
    bench.step("measuring the device with fio")
    return device.sequential_rate(bench.work, bench.args.fio_size, bench.args.fio_seconds)


def one_large(bench):
    megabytes = bench.args.megabytes
    return tables.made_by(
        bench, f"backup-{megabytes}",
        f"CREATE TABLE large AS SELECT i, repeat(md5(i::text), 30) AS filler FROM generate_series(1, {megabytes} * 1000) i; "
        f"DO $$ BEGIN FOR n IN 1..{SMALL_TABLES} LOOP "
        "EXECUTE format('CREATE TABLE small_%s AS SELECT i FROM generate_series(1, 1000) i', n); END LOOP; END $$; "
        "VACUUM (FREEZE)")


def of_one_size(bench):
    rows = bench.args.megabytes * 1000 // 3 // EQUAL_TABLES
    return tables.made_by(
        bench, f"backup-{EQUAL_TABLES}-{rows}",
        f"DO $$ BEGIN FOR n IN 1..{EQUAL_TABLES} LOOP EXECUTE format('CREATE TABLE equal_%s AS "
        f"SELECT i, repeat(md5(i::text), 30) AS filler FROM generate_series(1, {rows}) i', n); END LOOP; END $$; "
        "VACUUM (FREEZE)")


@contextlib.contextmanager
def reached(cluster, case):
    """The environment in which pg_basebackup reaches the server."""
    environment = cluster.connection()
    if not case.round_trip_us and not case.mb_per_s:
        yield environment
        return
    path = f"{cluster.socket_dir}/.s.PGSQL.{cluster.port}"
    with relay.running([path], case.round_trip_us, case.mb_per_s) as (port,):
        yield {**environment, "PGHOST": relay.HOST, "PGPORT": str(port)}


def one(bench, cluster, disk, side, case, _seed):
    """One backup with nothing in memory, or all in the page cache."""
    case = CASES[case]
    session = cluster.session()
    session.query("CHECKPOINT")
    pglib.drop_from_page_cache(cluster.data)
    if disk == "page cache":
        pglib.read_into_page_cache(cluster.data)
    to_disk = NOWHERE not in case.options
    copy = bench.data("copy")
    options = [*case.options, *(["--pgdata", copy] if to_disk else []),
               *([f"--jobs={case.jobs}"] if case.jobs > 1 and side == "ours" else [])]
    program = bench.installs[side if to_disk else "stock"].program("pg_basebackup")
    cached, cpu = page_cache(), cpu_seconds(cluster)
    try:
        with bench.slowly(), reached(cluster, case) as environment:
            began = time.monotonic()
            pglib.run([program, "--wal-method=none", "--checkpoint=fast", *options], env=environment)
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
