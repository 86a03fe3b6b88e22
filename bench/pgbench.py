"""pgbench: transactions on a database larger than shared_buffers, direct and buffered: throughput and latency."""

import glob
import os
import re
import statistics
import tempfile

import pglib
import report
from harness import SIDES, order

HELP = "pgbench's own transactions, scale beyond shared_buffers, direct and buffered I/O: throughput and 99th percentile"
RUNS = 5
MODES = {"direct": "data", "buffered": ""}
GOAL_RATIO = 0.97       # not slower, as far as the noise of a run allows to tell


def add_options(parser):
    parser.add_argument("--scale", type=int, default=40, help="15 MB each (%(default)s)")
    parser.add_argument("--shared-buffers", default="128MB", help="(%(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--seconds", type=int, default=15, help="per run (%(default)s)")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this; may be repeated")


def run(bench):
    args = bench.args
    base = build(bench)
    runs = []
    try:
        for mode in args.mode or MODES:
            runs += measure(bench, base, mode)
    finally:
        pglib.remove(base)
    summary = {}
    for mode in args.mode or MODES:
        of = {side: [one for one in runs if one["mode"] == mode and one["side"] == side] for side in SIDES}
        for what, figure in ("throughput", lambda one: 1 / one["tps"]), ("p99", lambda one: one["p99_ms"]):
            summary[f"{mode}, {what}"] = report.compare(*([figure(one) for one in of[side]] for side in SIDES))
        summary[f"{mode}, throughput"]["tps"] = {side: statistics.median(one["tps"] for one in of[side]) for side in SIDES}
    report.table(f"pgbench, scale {args.scale}, {args.clients} clients, shared_buffers {args.shared_buffers}; "
                 f"{args.io_method}, median of {args.runs}",
                 ["I/O", "stock tps", "ours tps", "ratio", "of pairs", "stock p99 ms", "ours p99 ms", "p99 ratio",
                  "of pairs"],
                 [[mode, *(f"{summary[f'{mode}, throughput']['tps'][side]:,.0f}" for side in SIDES),
                   f"{summary[f'{mode}, throughput']['ratio']:.2f}", pairs(summary[f"{mode}, throughput"]),
                   *(f"{summary[f'{mode}, p99'][side]:.2f}" for side in SIDES),
                   f"{summary[f'{mode}, p99']['ratio']:.2f}", pairs(summary[f"{mode}, p99"])]
                  for mode in args.mode or MODES])
    report.goals([(f"{key}, ours against stock", one["ratio"], GOAL_RATIO) for key, one in summary.items()])
    bench.finish(summary=summary, runs=runs)


def pairs(one):
    return f"{one['pair_min']:.2f}-{one['pair_max']:.2f}"


def build(bench):
    bench.step(f"building the pgbench tables, scale {bench.args.scale}")
    base = bench.data("pristine-unfinished")
    cluster = pglib.Cluster(bench.installs["stock"], base, {"fsync": "off", "max_wal_size": "16GB"})
    cluster.initdb()
    with cluster:
        cluster.run_client("pgbench", "-i", "-q", "-s", bench.args.scale)
    return base


def measure(bench, base, mode):
    args = bench.args
    bench.step(f"{mode}: copying the data for both servers")
    settings = {"debug_io_direct": MODES[mode], "shared_buffers": args.shared_buffers}
    runs = []
    with bench.servers(base, settings) as clusters, \
            tempfile.TemporaryDirectory(prefix="pgawait-") as logs:
        sessions = {side: clusters[side].session() for side in SIDES}
        for turn in range(args.runs + 1):
            pair = {}
            for side in order(turn):
                sessions[side].query("TRUNCATE pgbench_history; CHECKPOINT")
                prefix = os.path.join(logs, f"{side}-{turn}")
                pair[side] = load(bench, clusters[side], prefix, ["-c", args.clients, "-j", "2", "-T", args.seconds])
                sessions[side].query("CHECKPOINT")
            if turn > 0:
                runs += [{"mode": mode, "turn": turn, "side": side, **pair[side]} for side in SIDES]
            bench.step(f"{mode}, {f'run {turn} of {args.runs}' if turn else 'warm-up'}: "
                       + ", ".join(f"{side} {pair[side]['tps']:,.0f} tps, p99 {pair[side]['p99_ms']:.2f} ms"
                                   for side in SIDES))
    return runs


def load(bench, cluster, prefix, options):
    """Transactions of pgbench, which is stock's for both servers; its logs, whose names begin so, are kept."""
    said = pglib.run([bench.installs["stock"].program("pgbench"), "-n", "-M", "prepared", *options, "-l",
                      f"--log-prefix={prefix}"], env=cluster.connection())
    return {"tps": float(re.search(r"^tps = ([0-9.]+)", said, re.MULTILINE)[1]), "p99_ms": percentile(prefix, 0.99)}


def percentile(prefix, share):
    """Of the latencies in pgbench's transaction logs, in milliseconds."""
    latencies = []
    for path in glob.glob(f"{prefix}.*"):
        with open(path) as log:
            latencies += [int(line.split()[2]) for line in log]
    latencies.sort()
    return latencies[int(len(latencies) * share)] / 1000
