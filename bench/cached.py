"""cached: loads and transactions that never wait for a read, where all that we add is overhead.

Without fsync on commit (synchronous_commit=off): the noise of a disk's flushes would hide a per cent of CPU time.
"""

import re

import pglib
import report
import tables
from harness import SIDES, order
from measure import reaped_cpu_seconds, timed

HELP = "everything in shared_buffers: COPY, INSERT ... SELECT and pgbench -N, both servers in turn"

RUNS = 9        # many short ones: a per cent is to be seen, and the machine drifts by more
GOAL_LOAD_RATIO, GOAL_PGBENCH_RATIO = 6, 0.99


def add_options(parser):
    parser.add_argument("--rows", type=int, default=400_000, help="rows per load (%(default)s)")
    parser.add_argument("--prefill", type=int, default=0, metavar="ROWS",
                        help="rows in the table before each load (%(default)s)")
    parser.add_argument("--shared-buffers", default="4GB", help="(%(default)s)")
    parser.add_argument("--pgbench-scale", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--pgbench-clients", type=int, default=2, help="(%(default)s)")
    parser.add_argument("--pgbench-seconds", type=int, default=10, help="per run (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows loaded (%(default)s)")


def run(bench):
    args = bench.args
    bench.step("creating a database")
    base = bench.data("pristine-unfinished")
    pglib.Cluster(bench.installs["stock"], base).initdb()
    settings = {"shared_buffers": args.shared_buffers, "synchronous_commit": "off"}
    try:
        with bench.servers(base, settings) as clusters, tables.rows_file(bench, args.rows, args.seed) as file:
            runs = measure_loads(bench, clusters, file) + measure_pgbench(bench, clusters)
    finally:
        pglib.remove(base)
    summary = {load: summarize([run for run in runs if run["load"] == load])
               for load in dict.fromkeys(run["load"] for run in runs)}
    show(bench, summary)
    bench.finish(summary=summary, runs=runs)


def measure_loads(bench, clusters, file):
    args = bench.args
    sessions = {side: clusters[side].session() for side in SIDES}
    for session in sessions.values():
        session.query(f"{tables.create_sql('source')}; COPY source FROM {pglib.quote(file)}")
        session.query(f"{tables.create_sql('prefill')}; {tables.fill_sql(args.prefill, 'prefill')}")
        session.query(f"{tables.create_sql()}; {tables.index_sql()}")
        session.query("VACUUM (FREEZE, ANALYZE) source")
    loads = {"COPY": f"COPY {tables.TABLE} FROM {pglib.quote(file)}",
             "INSERT ... SELECT": f"INSERT INTO {tables.TABLE} SELECT * FROM source"}
    runs = []
    # Turn 0 is the warm-up: it touches shared memory for the first time.
    for turn in range(args.runs + 1):
        for load, statement in loads.items():
            pair = {}
            for side in order(turn):
                sessions[side].query(f"TRUNCATE {tables.TABLE}; INSERT INTO {tables.TABLE} SELECT * FROM prefill; "
                                     f"CHECKPOINT")
                pair[side] = timed(sessions[side], statement)
                sessions[side].query("CHECKPOINT")
                if turn > 0:
                    runs.append({"load": load, "turn": turn, "side": side, "figure": pair[side]["seconds"],
                                 **pair[side]})
            bench.step(f"{load}, {f'run {turn} of {args.runs}' if turn else 'warm-up'}: "
                       + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
    for session in sessions.values():
        session.query(f"TRUNCATE {tables.TABLE}")
    return runs


def measure_pgbench(bench, clusters):
    """Transactions as pgbench -N has them; one and the same pgbench, the stock one, drives both servers."""
    args = bench.args
    bench.step(f"filling the pgbench tables, scale {args.pgbench_scale}")
    sessions = {side: clusters[side].session() for side in SIDES}
    pgbench = bench.installs["stock"].program("pgbench")
    for side in SIDES:
        pglib.run([pgbench, "-i", "-q", "-s", args.pgbench_scale], env=clusters[side].connection())
    runs = []
    for turn in range(args.runs + 1):
        pair = {}
        for side in order(turn):
            sessions[side].query("TRUNCATE pgbench_history")
            sessions[side].query("VACUUM pgbench_accounts")
            sessions[side].query("CHECKPOINT")
            cpu = reaped_cpu_seconds(clusters[side])
            said = pglib.run([pgbench, "-n", "-N", "-M", "prepared", "-c", args.pgbench_clients,
                              "-j", args.pgbench_clients, "-T", args.pgbench_seconds if turn else 2],
                             env=clusters[side].connection())
            sessions[side].query("CHECKPOINT")
            pair[side] = float(re.search(r"^tps = ([0-9.]+)", said, re.MULTILINE)[1])
            transactions = int(re.search(r"actually processed: (\d+)", said)[1])
            if turn > 0:
                runs.append({"load": "pgbench -N", "turn": turn, "side": side, "figure": 1 / pair[side],
                             "tps": pair[side], "transactions": transactions,
                             "cpu_s": (reaped_cpu_seconds(clusters[side]) - cpu) / transactions})
        bench.step(f"pgbench -N, {f'run {turn} of {args.runs}' if turn else 'warm-up'}: "
                   + ", ".join(f"{side} {pair[side]:,.0f} tps" for side in SIDES))
    return runs


def summarize(runs):
    of = {side: [run for run in runs if run["side"] == side] for side in SIDES}
    result = report.compare(*([run["figure"] for run in of[side]] for side in SIDES))
    cpu = {side: report.median_of(of[side], "cpu_s") for side in SIDES}
    result["cpu_ratio"] = None if None in cpu.values() else cpu["stock"] / cpu["ours"]
    result["reads"] = {side: report.median_of(of[side], "backend", "reads") for side in SIDES}
    return result


def show(bench, summary):
    args = bench.args

    def rate(load, seconds):
        return f"{(1 if load.startswith('pgbench') else args.rows) / seconds:,.0f}"
    report.table(f"All in shared_buffers: loads of {args.rows:,} rows with five uuid indexes (rows/s), "
                 f"pgbench (transactions/s); {args.io_method}, median of {args.runs}",
                 ["load", "stock", "ours", "ratio", "of pairs", "median pair", "by CPU time", "stock reads",
                  "ours reads"],
                 [[load, rate(load, one["stock"]), rate(load, one["ours"]), f"{one['ratio']:.3f}",
                   f"{one['pair_min']:.3f}-{one['pair_max']:.3f}", f"{one['pair_median']:.3f}",
                   report.number(one["cpu_ratio"], 3), report.number(one["reads"]["stock"]),
                   report.number(one["reads"]["ours"])]
                  for load, one in summary.items()])
    report.goals([(f"{load}, ours / stock", one["ratio"],
                   GOAL_PGBENCH_RATIO if load.startswith("pgbench") else GOAL_LOAD_RATIO)
                  for load, one in summary.items()])
