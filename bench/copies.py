"""copies: what copies gigabytes from files to files: pg_combinebackup, pg_rewind, and CREATE DATABASE file by file.

Each side uses its own program or server, on the same files, which are synced as ever.  Nothing of what is read is in the
page cache at first, or all of it is ("warm").  What is left in the page cache is that of the files that were written.
"""

import contextlib
import functools
import resource
import subprocess
import time

import measure
import pairs
import pglib
import report
import tables

HELP = "pg_combinebackup, pg_rewind and CREATE DATABASE ... STRATEGY FILE_COPY of gigabytes"
RUNS = 3
CASES = ("combine", "combine, warm", "rewind", "rewind, warm", "create database")
LOGGED = {"wal_level": "replica", "summarize_wal": "on", "max_wal_senders": 10, "wal_keep_size": "8GB", "autovacuum": "off",
          "checkpoint_timeout": "1d", "max_wal_size": "8GB", "fsync": "off"}
# A tenth in one place, and single rows in the other pages.
UPDATE = "UPDATE large SET filler = reverse(filler) WHERE i <= {0} / 10 OR i % 200 = 0; CHECKPOINT"


def add_options(parser):
    parser.add_argument("--megabytes", type=int, default=3000, help="size of the table (%(default)s)")
    parser.add_argument("--case", choices=CASES, action="append", help="only this; may be repeated")


def run(bench):
    cases = bench.args.case or CASES
    rows = bench.args.megabytes * 1000
    data = tables.made_by(bench, f"copies-{bench.args.megabytes}", "CREATE TABLE large AS SELECT i, repeat(md5(i::text), 30) "
                          f"AS filler FROM generate_series(1, {rows}) i; VACUUM (FREEZE)")
    with contextlib.ExitStack() as stack:
        paths = {name: bench.data(f"copies-{name}") for name in ("full", "changed", "source", "target")}
        for path in (*paths.values(), bench.data("copy")):
            stack.callback(pglib.remove, path)
        if any(case.startswith("combine") for case in cases):
            back_up(bench, data, rows, paths)
        if any(case.startswith("rewind") for case in cases):
            diverge(bench, data, rows, paths)
        runs = pairs.measure(bench, "buffered", data, {"shared_buffers": "256MB"}, cases, functools.partial(one, bench, paths))
    pairs.show(bench, "Copies", runs, lambda disk, case: None, left)
    bench.finish(runs=runs)


def base_backup(cluster, path, *options):
    pglib.run_as_account([cluster.install.program("pg_basebackup"), "--pgdata", path, "--checkpoint=fast", "--no-sync", *options],
                         env=cluster.connection())


def back_up(bench, data, rows, paths):
    """A backup, and an incremental one when some of the table has changed."""
    bench.step("taking backups to combine")
    with copy_of(bench, data) as cluster:
        base_backup(cluster, paths["full"])
        cluster.session().query(UPDATE.format(rows))
        base_backup(cluster, paths["changed"], "--incremental", paths["full"] / "backup_manifest")


def diverge(bench, data, rows, paths):
    """A server that was promoted and has changed some of the table, and the one that it came from, which went on."""
    bench.step("making servers that have diverged")
    with copy_of(bench, data) as cluster:
        base_backup(cluster, paths["source"])
        cluster.session().query("UPDATE large SET filler = 'old' WHERE i % 1000 = 1; CHECKPOINT")
        cluster.stop()
        pglib.clone(cluster.data, paths["target"])
    pglib.run_as_account(["touch", paths["source"] / "standby.signal"])
    source = pglib.Cluster(cluster.install, paths["source"], LOGGED)
    with source:
        pglib.run_as_account([source.install.program("pg_ctl"), "-s", "-D", source.data, "-w", "promote"])
        source.session().query(UPDATE.format(rows))


@contextlib.contextmanager
def copy_of(bench, data):
    """A stock server, which runs, and goes."""
    try:
        pglib.clone(data, bench.data("pristine-unfinished"))
        with pglib.Cluster(bench.installs["stock"], bench.data("pristine-unfinished"), LOGGED) as cluster:
            yield cluster
    finally:
        pglib.remove(bench.data("pristine-unfinished"))


def one(bench, paths, cluster, _disk, side, case, _seed):
    if case == "create database":
        return create_database(bench, cluster)
    copy = bench.data("copy")
    pglib.remove(copy)
    if case.startswith("combine"):
        read = [paths["full"], paths["changed"]]
        command = ["pg_combinebackup", "--output", copy, *read]
    else:
        pglib.clone(paths["target"], copy)
        read = [paths["source"], copy]
        command = ["pg_rewind", "--target-pgdata", copy, "--source-pgdata", paths["source"]]
    for path in read:
        pglib.drop_from_page_cache(path)
        if case.endswith("warm"):
            pglib.read_into_page_cache(path)
    io, cpu = bench.device.sample(), resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    pglib.run_as_account([bench.installs[side].program(command[0]), *command[1:]])
    seconds, spent = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": seconds, "device": measure.disk.between(io, bench.device.sample()), "result": None,
            "cpu_s": spent.ru_utime + spent.ru_stime - cpu.ru_utime - cpu.ru_stime, "cached": cached(copy)}


def create_database(bench, cluster):
    """The session is elsewhere, since nobody may use the database that is copied."""
    for session in list(cluster.sessions):
        session.close()
        cluster.sessions.remove(session)
    session = cluster.session("template1")
    session.query("DROP DATABASE IF EXISTS copied")
    session.query("CHECKPOINT")
    pglib.drop_from_page_cache(cluster.data)
    found = measure.timed(session, "CREATE DATABASE copied TEMPLATE postgres STRATEGY file_copy", bench.device)
    copied = session.value("SELECT oid FROM pg_database WHERE datname = 'copied'")
    return {**found, "result": None, "cached": cached(cluster.data / "base" / copied)}


def cached(directory):
    """Bytes of the files below it that are in the page cache."""
    names = "\0".join(pglib.files_of(directory))
    said = subprocess.run(["xargs", "-0", "fincore", "--bytes", "--noheadings", "--output", "RES"], input=names, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return sum(map(int, said.split()))


def left(_disk, _case, of):
    """Further columns: what each side has left in the page cache of what it has written."""
    return {f"{side} cached MB": report.number(report.median_of(of[side], "cached") / 1e6) for side in of}
