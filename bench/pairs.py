"""Statements that both servers run in pairs, one directly after the other on equal data, and the table of their figures.

A run is a dictionary: disk, case, turn, side, and what measure.timed() returns, with a "result" that must be the same on
both sides.
"""

import pglib
import report
from harness import SIDES, order

COLUMNS = ["stock s", "ours s", "ratio", "of pairs", "stock reads", "our reads", "stock CPU s", "our CPU s"]


def add_fio_options(parser):
    parser.add_argument("--no-fio", action="store_true", help="do not measure the limits of the device")
    parser.add_argument("--fio-size", default="2g", help="size of the file that fio reads (%(default)s)")
    parser.add_argument("--fio-seconds", type=int, default=5, help="time for each of its patterns (%(default)s)")


def measure_limits(bench):
    """The device's rates by pattern, before anything else uses it; none if they are not wanted."""
    return {} if bench.args.no_fio else bench.measure_limits(bench.args.fio_size, bench.args.fio_seconds)


def measure(bench, disk, data, settings, cases, one):
    """Run cases on a disk, each --runs times on both servers; one(cluster, disk, side, case, seed) is one run.

    No two turns have the same seed: rows of another one may be there or gone.
    """
    runs = []
    if cases:
        with bench.on_disk(disk):
            bench.step(f"{disk}: copying the data for both servers")
            with bench.servers(data, settings) as clusters:
                for number, case in enumerate(cases):
                    for turn in range(1, bench.args.runs + 1):
                        runs += pair(bench, clusters, disk, case, turn, 1000 * number + turn, one)
    return runs


def pair(bench, clusters, disk, case, turn, seed, one):
    found = {}
    for side in order(turn):
        found[side] = one(clusters[side], disk, side, case, seed)
        # there are more runs than a server accepts sessions
        clusters[side].close_sessions()
    if len({str(found[side]["result"]) for side in SIDES}) > 1:
        raise pglib.PgError(f"{case}: the servers differ: {found}")
    bench.step(f"{disk}, {case}, run {turn} of {bench.args.runs}: "
               + ", ".join(f"{side} {found[side]['seconds']:.3f} s" for side in SIDES))
    return [{"disk": disk, "case": case, "turn": turn, "side": side, **found[side]} for side in SIDES]


def show(bench, title, runs, goal, more=None, limits=None):
    """Print a table for each disk, and the goals.

    goal(disk, case) is the ratio that is wanted, or None; more(disk, case, runs by side) gives further columns, as a
    dictionary of strings.  With limits, those of measure_limits(), the plain disk's table says which share of them the
    reads have reached.
    """
    if limits:
        print("\nDevice, random 8 kB direct I/O (I/Os per second): "
              + ", ".join(f"{label} {limits[label]:,.0f}" for label in limits if label.startswith("read")))
    entries = []
    for disk in dict.fromkeys(run["disk"] for run in runs):
        rows, columns = [], []
        for case in dict.fromkeys(run["case"] for run in runs if run["disk"] == disk):
            of = {side: [run for run in runs if (run["disk"], run["case"], run["side"]) == (disk, case, side)]
                  for side in SIDES}
            ratio, cells = figures(of)
            further = more(disk, case, of) if more else {}
            if limits and disk == "plain":
                further["stock of limit"], further["ours of limit"] = (share_of_limit(of[side], limits) for side in SIDES)
            columns = list(further)
            rows.append([case, *cells, *further.values()])
            if goal(disk, case):
                entries.append((f"{disk}, {case}, stock time / ours", ratio, goal(disk, case)))
        report.table(f"{title}, {disk}; {bench.args.io_method}, median of {bench.args.runs}",
                     ["case", *COLUMNS, *columns], rows)
    report.goals(entries)


def figures(of):
    """The ratio, and the cells of COLUMNS, of runs by side."""
    one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
    return one["ratio"], [
        f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}", f"{one['pair_min']:.2f}-{one['pair_max']:.2f}",
        *(report.number(report.median_of(of[side], "backend", "reads")) for side in SIDES),
        *(report.number(report.median_of(of[side], "cpu_s"), 2) for side in SIDES)]


def share_of_limit(runs, limits):
    """The rate of a side's reads, as a share of what the device can do at depth 64."""
    return report.percent(report.median_of(runs, "backend", "reads") / report.median_of(runs, "seconds") / limits["read QD64"])
