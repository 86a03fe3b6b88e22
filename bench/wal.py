"""wal: commits of one pipelined connection and of eight clients, and COPY into a logged table, on two disks."""

import itertools
import os
import re
import tempfile

import pglib
import report
from harness import SIDES, order
from measure import timed
from pgbench import pairs, percentile

HELP = "pipelined commits, eight clients, and COPY into a logged table without indexes, on two disks"
RUNS = 5
DISKS = ("plain", "slow")
IN_FLIGHT = 50
COMMITS = {"pipeline": 1, "one by one": 1, "clients": 8}
MODES = {"copy": {}, "copy, direct WAL": {"debug_io_direct": "wal"}}
GOALS = {("plain", "pipeline"): 4.0, ("plain", "clients"): 1.0, ("slow", "clients"): 1.3,
         ("plain", "clients, p99"): 1.0, ("plain", "copy, recycled"): 1.15}


def add_options(parser):
    parser.add_argument("--scale", type=int, default=10, help="of pgbench's tables (%(default)s)")
    parser.add_argument("--seconds", type=int, default=8, help="per run (%(default)s)")
    parser.add_argument("--rows", type=int, default=2_000_000, help="that COPY loads (%(default)s)")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")


def run(bench):
    args = bench.args
    base = build(bench)
    runs = []
    try:
        for disk in args.disk or DISKS:
            with bench.on_disk(disk), bench.slowly():
                runs += commits(bench, base, disk)
            if disk == "plain":
                runs += copies(bench, base)
    finally:
        pglib.remove(base)
    show(bench, runs)


def build(bench):
    bench.step(f"building the pgbench tables, scale {bench.args.scale}")
    base = bench.data("pristine-unfinished")
    cluster = pglib.Cluster(bench.installs["stock"], base, {"fsync": "off", "max_wal_size": "16GB"}).initdb()
    with cluster:
        cluster.run_client("pgbench", "-i", "-q", "-s", bench.args.scale)
        cluster.session().query("CREATE TABLE row (a int, b text); CREATE EXTENSION pg_prewarm")
    return base


# -- commits -----------------------------------------------------------------------------------------------------------

def scripts(directory):
    """What pgbench executes for each load; None is its own script."""
    insert = "INSERT INTO row VALUES (1, 'a row');\n"
    texts = {"pipeline": "\\startpipeline\n" + (insert + "\\syncpipeline\n") * IN_FLIGHT + "\\endpipeline\n",
             "one by one": insert}
    found = {"clients": None}
    for load, text in texts.items():
        found[load] = os.path.join(directory, load.replace(" ", "-"))
        with open(found[load], "w") as script:
            script.write(text)
    return found


def commits(bench, base, disk):
    args = bench.args
    bench.step(f"{disk} disk: copying the data for both servers")
    pgbench = bench.installs["stock"].program("pgbench")
    runs = []
    with bench.servers(base, {"shared_buffers": "512MB"}) as clusters, \
            tempfile.TemporaryDirectory(prefix="pgawait-") as directory:
        script = scripts(directory)
        sessions = {side: clusters[side].session() for side in SIDES}
        sessions["ours"].query("ALTER SYSTEM SET aio.pipelined_commits = on")
        sessions["ours"].query("SELECT pg_reload_conf()")
        # commits are compared here, not what it takes to read the tables
        for side in SIDES:
            sessions[side].query("SELECT pg_prewarm(oid) FROM pg_class WHERE relname LIKE 'pgbench%'")
        for turn in range(args.runs + 1):
            for load, clients in COMMITS.items():
                pair = {}
                for side in order(turn):
                    sessions[side].query("TRUNCATE row, pgbench_history; CHECKPOINT")
                    prefix = os.path.join(directory, f"{side}-{turn}-{clients}")
                    what = ["-f", script[load]] if script[load] else ["-N", "-l", f"--log-prefix={prefix}"]
                    said = pglib.run([pgbench, "-n", "-M", "prepared", "-c", clients, "-T", args.seconds, *what],
                                     env=clusters[side].connection())
                    rate = float(re.search(r"^tps = ([0-9.]+)", said, re.MULTILINE)[1])
                    pair[side] = {"seconds": 1 / rate / (IN_FLIGHT if load == "pipeline" else 1)}
                    if not script[load]:
                        pair[side]["p99_ms"] = percentile(prefix, 0.99)
                if turn > 0:
                    runs += [{"disk": disk, "load": load, "turn": turn, "side": side, **pair[side]} for side in SIDES]
                bench.step(f"{disk}, {load}, {f'run {turn} of {args.runs}' if turn else 'warm-up'}: "
                           + ", ".join(f"{side} {1 / pair[side]['seconds']:,.0f} commits/s" for side in SIDES))
    return runs


# -- COPY --------------------------------------------------------------------------------------------------------------

def copies(bench, base):
    args = bench.args
    file = bench.results / f"rows-{args.rows}.txt"
    runs = []
    for turn, (mode, settings) in itertools.product(range(args.runs), MODES.items()):
        # a new pair each time: the first load finds no segments to recycle
        with bench.servers(base, settings) as clusters:
            sessions = {side: clusters[side].session() for side in SIDES}
            if not file.exists():
                rows = (f"{i}\t{i * 7 % 1000003}\t{i:032x}\t{'x' * 60}\n" for i in range(args.rows))
                with open(file, "w") as out:
                    out.writelines(rows)
            for load in f"{mode}, new segments", f"{mode}, recycled":
                pair = {}
                for side in order(turn):
                    sessions[side].query("DROP TABLE IF EXISTS loaded; CREATE TABLE loaded (a int, b int, c text, d text); "
                                         "CHECKPOINT")
                    bench.touch_memory(4 * file.stat().st_size >> 20)
                    pair[side] = timed(sessions[side], f"COPY loaded FROM {pglib.quote(file)}", bench.device)
                runs += [{"disk": "plain", "load": load, "turn": turn, "side": side, **pair[side]} for side in SIDES]
                bench.step(f"{load}, run {turn + 1} of {args.runs}: "
                           + ", ".join(f"{side} {pair[side]['seconds']:.2f} s" for side in SIDES))
    return runs


def show(bench, runs):
    args = bench.args
    summary, rows = {}, []
    for disk, load in dict.fromkeys((one["disk"], one["load"]) for one in runs):
        of = {side: [one for one in runs if (one["disk"], one["load"], one["side"]) == (disk, load, side)]
              for side in SIDES}
        figures = {load: "seconds"}
        if "p99_ms" in of["ours"][0]:
            figures[f"{load}, p99"] = "p99_ms"
        for what, figure in figures.items():
            one = report.compare(*([run[figure] for run in of[side]] for side in SIDES))
            summary[disk, what] = one
            if figure == "p99_ms":
                shown = [f"{one[side]:.2f} ms" for side in SIDES]
            elif load in COMMITS:
                shown = [f"{1 / one[side]:,.0f}/s" for side in SIDES]
            else:
                shown = [f"{one[side]:.2f} s" for side in SIDES]
            rows.append([disk, what, *shown, f"{one['ratio']:.2f}", pairs(one)])
    report.table(f"Commits and COPY; {args.io_method}, slow disk {args.delay} us, median of {args.runs}",
                 ["disk", "load", "stock", "ours", "ratio", "of pairs"], rows)
    report.goals([(f"{disk}, {what}, ours against stock", summary[disk, what]["ratio"], wanted)
                  for (disk, what), wanted in GOALS.items() if (disk, what) in summary])
    bench.finish(summary={", ".join(key): one for key, one in summary.items()}, runs=runs)
