"""beside: pgbench on a database larger than memory, alone and beside a base backup: what the backup takes from it.

The server runs in a memory cgroup, so that a part of the database is in the page cache, which a backup may push out.  The
backup is that of each side's own programs, to plain files; when it is complete, the next begins, until pgbench ends.
"""

import contextlib
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
from pathlib import Path

import pgbench
import pglib
import report
from harness import SIDES, order
from memory_group import MemoryGroup

HELP = "pgbench beside a base backup, buffered I/O, in a memory cgroup: throughput and latency that are lost"
RUNS = 3
GOAL = 2        # stock's loss / ours


def add_options(parser):
    parser.add_argument("--scale", type=int, default=200, help="15 MB each (%(default)s)")
    parser.add_argument("--memory", type=int, default=1000, metavar="MB", help="limit of each server's cgroup (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--seconds", type=int, default=30, help="per run (%(default)s)")
    parser.add_argument("--max-rate", default="100M", help="of the backup, as pg_basebackup has it; 0: as fast as possible "
                        "(%(default)s)")
    parser.add_argument("--select-only", action="store_true", help="transactions that write nothing")


def run(bench):
    args = bench.args
    base = pgbench.build(bench)
    runs = []
    try:
        with bench.servers(base, {"shared_buffers": args.shared_buffers, "max_wal_senders": 10}) as clusters, \
                tempfile.TemporaryDirectory(prefix="pgawait-") as logs, contextlib.ExitStack() as stack:
            for side in SIDES:
                clusters[side].stop()
                clusters[side].memory_group = stack.enter_context(MemoryGroup(side, args.memory << 20))
                stack.callback(clusters[side].stop)
            for turn in range(1, args.runs + 1):
                for side in order(turn):
                    runs.append({"side": side, "turn": turn, **one(bench, clusters[side], side, logs)})
                    bench.step(f"run {turn} of {args.runs}, {side}: " + ", ".join(
                        f"{when} {runs[-1][when]['tps']:,.0f} tps, p99 {runs[-1][when]['p99_ms']:.1f} ms"
                        for when in ("alone", "beside")) + f", {runs[-1]['backups']:.1f} backups")
    finally:
        pglib.remove(base)
    show(bench, runs)


def one(bench, cluster, side, logs):
    """Alone, then beside a backup, by a server that has just been started; each begins when it has warmed up."""
    args = bench.args
    options = ["-c", args.clients, "-j", "2", *(["-S"] if args.select_only else [])]
    with cluster:
        cluster.session().query("TRUNCATE pgbench_history; CHECKPOINT")
        pgbench.load(bench, cluster, f"{logs}/warm", [*options, "-T", args.seconds])
        alone = pgbench.load(bench, cluster, f"{logs}/alone", [*options, "-T", args.seconds])
        with backups(bench, cluster, side) as done:
            beside = pgbench.load(bench, cluster, f"{logs}/beside", [*options, "-T", args.seconds])
    for log in Path(logs).glob("*"):
        log.unlink()
    return {"alone": alone, "beside": beside, "backups": done[0]}


@contextlib.contextmanager
def backups(bench, cluster, side):
    """One backup after the other, within the block; the list's item is how many were completed, the last one in part."""
    args = bench.args
    done, ended = [0], threading.Event()
    copy = bench.data("copy")
    command = [bench.installs[side].program("pg_basebackup"), "--wal-method=none", "--checkpoint=fast", "--pgdata", copy,
               *([] if args.max_rate == "0" else ["--max-rate", args.max_rate])]
    processes = []

    def repeat():
        while not ended.is_set():
            shutil.rmtree(copy, ignore_errors=True)
            processes[:] = [subprocess.Popen([str(word) for word in command], env=cluster.connection(),
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
            if processes[0].wait() == 0:
                done[0] += 1
            elif not ended.is_set():
                done[0] = float("nan")      # the figures are worth nothing then
                return

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        for process in processes:
            process.send_signal(signal.SIGINT)
        thread.join()
        shutil.rmtree(copy, ignore_errors=True)


def show(bench, runs):
    args = bench.args
    of = {side: [one for one in runs if one["side"] == side] for side in SIDES}
    losses, rows = {}, []
    for side in SIDES:
        losses[side] = {"throughput": statistics.median(1 - one["beside"]["tps"] / one["alone"]["tps"] for one in of[side]),
                        "p99": statistics.median(one["beside"]["p99_ms"] / one["alone"]["p99_ms"] - 1 for one in of[side])}
        rows.append([side, *(f"{statistics.median(one[when][what] for one in of[side]):,.{digits}f}"
                             for what, digits in (("tps", 0), ("p99_ms", 1)) for when in ("alone", "beside")),
                     f"{losses[side]['throughput']:.0%}", f"{losses[side]['p99']:.0%}",
                     f"{statistics.median(one['backups'] for one in of[side]):.1f}"])
    report.table(f"pgbench, scale {args.scale}, {args.clients} clients, {args.memory} MB of memory, backup at {args.max_rate}; "
                 f"{args.io_method}, median of {args.runs}",
                 ["side", "tps alone", "beside", "p99 ms alone", "beside", "throughput lost", "p99 grown", "backups"], rows)
    report.goals([(f"{what}, stock's loss / ours", losses["stock"][what] / max(losses["ours"][what], 0.001), GOAL)
                  for what in ("throughput", "p99")])
    bench.finish(losses=losses, runs=runs)
