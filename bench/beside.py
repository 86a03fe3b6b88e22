"""beside: pgbench on a database larger than memory, alone and beside a base backup: what the backup takes from it.

The server runs in a memory cgroup, so that a part of the database is in the page cache, which a backup may push out.
pgbench runs for longer than the backup takes, so that all of its cost counts, that of its sync at the end as well.  It
goes nowhere, or to plain files by each side's own program, on the disk that the server has.
"""

import contextlib
import functools
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pgbench
import pglib
import report
from harness import SIDES, order
from memory_group import MemoryGroup

HELP = "pgbench beside a base backup, buffered I/O, in a memory cgroup: throughput and latency that are lost"
RUNS = 3
GOAL = 2        # stock's loss / ours
LABELS = ("side", "turn", "target")
TARGETS = {"nowhere": ["--target=blackhole"], "to disk": ["--pgdata"]}


def add_options(parser):
    parser.add_argument("--scale", type=int, default=200, help="15 MB each (%(default)s)")
    parser.add_argument("--memory", type=int, default=1000, metavar="MB", help="limit of each server's cgroup (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="per run (%(default)s)")
    parser.add_argument("--rate", type=int, help="of transactions, which need not saturate the processors (as many as there can be)")
    parser.add_argument("--max-rate", default="100M", help="of the backup, as pg_basebackup has it (%(default)s)")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this; may be repeated")
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
                    runs += one(bench, clusters[side], side, turn, logs)
    finally:
        pglib.remove(base)
    show(bench, runs)


def one(bench, cluster, side, turn, logs):
    """Alone, then beside a backup to each target, by a server that has just been started and has warmed up."""
    args = bench.args
    load = functools.partial(pgbench.load, bench, cluster, f"{logs}/log",
                             ["-c", args.clients, "-j", "2", "-T", args.seconds, *(["-S"] if args.select_only else []),
                              *(["-R", args.rate] if args.rate else [])])
    runs = []
    with cluster:
        session = cluster.session()
        session.query("TRUNCATE pgbench_history; CHECKPOINT")
        load()
        for target in ["alone", *(args.target or TARGETS)]:
            for log in Path(logs).glob("*"):
                log.unlink()
            with ThreadPoolExecutor(1) as other:
                backup = other.submit(back_up, bench, cluster, side, target) if target in TARGETS else None
                run = {"side": side, "turn": turn, "target": target, **load()}
                if backup:
                    if not backup.done():
                        raise pglib.PgError(f"the backup takes longer than {args.seconds} s; give more --seconds")
                    run["backup_s"] = backup.result()
            runs.append(run)
            session.query("CHECKPOINT")
            bench.step(f"run {turn} of {args.runs}, {side}, {target}: {run['tps']:,.0f} tps, p99 {run['p99_ms']:.1f} ms"
                       + (f", backup {run['backup_s']:.1f} s" if backup else ""))
    return runs


def back_up(bench, cluster, side, target):
    """Take a backup; returns how many seconds that took."""
    copy = bench.data("copy")
    to_disk = target == "to disk"
    try:
        began = time.monotonic()
        pglib.run([bench.installs[side if to_disk else "stock"].program("pg_basebackup"), "--wal-method=none",
                   "--checkpoint=fast", "--max-rate", bench.args.max_rate, *TARGETS[target], *([copy] if to_disk else [])],
                  env=cluster.connection())
        return time.monotonic() - began
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def show(bench, runs):
    args = bench.args
    of = {(side, target): [one for one in runs if (one["side"], one["target"]) == (side, target)]
          for side in SIDES for target in ("alone", *(args.target or TARGETS))}
    median = {key: {what: statistics.median(one[what] for one in of[key]) for what in of[key][0] if what not in LABELS}
              for key in of}
    rows, goals = [], []
    for target in args.target or TARGETS:
        losses = {}
        for side in SIDES:
            alone, beside = median[side, "alone"], median[side, target]
            losses[side] = {"throughput": 1 - beside["tps"] / alone["tps"], "p99": beside["p99_ms"] / alone["p99_ms"] - 1}
            rows.append([target, side, *(f"{one[what]:,.{digits}f}" for what, digits in (("tps", 0), ("p99_ms", 1))
                                         for one in (alone, beside)),
                         *(f"{loss:.0%}" for loss in losses[side].values()), f"{beside['backup_s']:.1f}"])
        goals += [(f"{target}, {what}, stock's loss / ours", losses["stock"][what] / max(losses["ours"][what], 0.001), GOAL)
                  for what in losses["stock"]]
    report.table(f"pgbench, scale {args.scale}, {args.clients} clients, {args.memory} MB of memory, backup at {args.max_rate}; "
                 f"{args.io_method}, median of {args.runs}",
                 ["backup", "side", "tps alone", "beside", "p99 ms alone", "beside", "throughput lost", "p99 grown",
                  "backup s"], rows)
    report.goals(goals)
    bench.finish(runs=runs)
