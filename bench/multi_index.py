"""multi-index: COPY into a table whose five random btree indexes are far larger than shared_buffers.

Nearly every index insert misses the cache, so the load waits for the disk: stock one read at a time, ours many.
"""

import statistics

import harness
import pglib
import report
import tables
from harness import SIDES, order
from measure import has_task_stats, timed

HELP = "COPY into a 6M-row table with five random uuid indexes, direct I/O, both servers in turn"
RUNS = 5
FULLY_GROWN_PERCENT = 8         # beyond this, leaves built with the default fillfactor begin to split

# rows: stock time / ours, pages that stock reads / ours
GOALS = {10000: (1.7, None), 50000: (3, 1.7), 400000: (80, 8)}
AGED_SHARE = 0.7        # of these, on aged indexes


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table at the start (%(default)s)")
    parser.add_argument("--batches", type=harness.numbers, default=[100, 1000, 10000, 50000], metavar="N,N,...",
                        help="rows per COPY (100,1000,10000,50000)")
    state = parser.add_mutually_exclusive_group()
    state.add_argument("--fresh-only", action="store_true", help="only on freshly created indexes")
    state.add_argument("--aged-only", action="store_true", help="only on indexes grown by random inserts")
    parser.add_argument("--growth", type=int, default=30, metavar="PERCENT",
                        help="how far aged indexes have grown (%(default)s)")
    parser.add_argument("--fillfactor", type=int, metavar="PERCENT",
                        help="fillfactor from which they grew (such that splits are under way now)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows loaded (%(default)s)")
    parser.add_argument("--no-fio", action="store_true", help="do not measure the limits of the device")
    parser.add_argument("--fio-size", default="2g", help="size of the file that fio reads (%(default)s)")
    parser.add_argument("--fio-seconds", type=int, default=5, help="time for each of its patterns (%(default)s)")


def run(bench):
    args = bench.args
    fillfactor = args.fillfactor or tables.split_fillfactor(args.growth)
    bench.facts["parameters"]["fillfactor"] = fillfactor
    # Data first: what a build leaves dirty in the page cache must be gone when the device is measured.
    pristine = {}
    if not args.aged_only:
        pristine["fresh"] = tables.pristine(bench, args.rows)
    if not args.fresh_only:
        pristine["aged"] = tables.aged(bench, args.rows, args.growth, fillfactor)
    limits = {} if args.no_fio else bench.measure_limits(args.fio_size, args.fio_seconds)

    runs, summary = [], {}
    for state, data in pristine.items():
        measured = measure(bench, state, data)
        runs += measured
        summary[state] = {rows: summarize([run for run in measured if run["rows"] == rows], limits)
                          for rows in args.batches}
    show(bench, summary, limits)
    bench.finish(summary=summary, runs=runs)


def measure(bench, state, data):
    """All runs on one state of the data: every batch size once a round, each on both servers in turn."""
    args = bench.args
    bench.step(f"{state} indexes: copying the data for both servers")
    settings = {"shared_buffers": args.shared_buffers, "debug_io_direct": "data"}
    runs = []
    with bench.servers(data, settings) as clusters:
        sessions = {side: clusters[side].session() for side in SIDES}
        task_stats = {side: side == "ours" and has_task_stats(sessions[side]) for side in SIDES}
        rows_before = int(sessions["stock"].value(f"SELECT count(*) FROM {tables.TABLE}"))
        # The first load fills shared_buffers, the catalog caches and the pool of WAL segments.
        todo = [(0, max(args.batches))]
        todo += [(turn, rows) for turn in range(1, args.runs + 1) for rows in args.batches]
        loaded = sum(rows for _, rows in todo)
        if state == "fresh" and loaded * 100 > rows_before * FULLY_GROWN_PERCENT:
            bench.step(f"note: {loaded:,} rows are more than {FULLY_GROWN_PERCENT} % of the table, "
                       f"its leaves will split: fresh indexes do not stay fresh")
        for number, (turn, rows) in enumerate(todo):
            with tables.rows_file(bench, rows, f"{args.seed}/{state}/{number}") as file:
                pair = {side: load(sessions[side], file, bench.device, task_stats[side]) for side in order(turn)}
            if turn > 0:
                runs += [{"state": state, "turn": turn, "rows": rows, "side": side, **pair[side]} for side in SIDES]
            bench.step(f"{state}, {f'run {turn} of {args.runs}' if turn else 'warm-up'}, {rows:,} rows: "
                       + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
        for side in SIDES:
            found = int(sessions[side].value(f"SELECT count(*) FROM {tables.TABLE}"))
            if found != rows_before + loaded:
                raise pglib.PgError(f"{side} has {found:,} rows in {tables.TABLE}, not {rows_before + loaded:,}: "
                                      f"its figures are worth nothing")
    return runs


def load(session, file, device, task_stats):
    """One COPY. A checkpoint before, so that all pay for full page images; one after, so that the server is quiet
    while the other is measured."""
    session.query("CHECKPOINT")
    pages = tables.index_pages(session)
    result = timed(session, f"COPY {tables.TABLE} FROM {pglib.quote(file)}", device, task_stats)
    result["index_pages_added"] = tables.index_pages(session) - pages
    session.query("CHECKPOINT")
    return result


def summarize(runs, limits):
    """The figures of one batch size: medians over its runs."""
    of = {side: [run for run in runs if run["side"] == side] for side in SIDES}
    rows = runs[0]["rows"]
    result = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
    for side in SIDES:
        def typical(*path):
            return report.median_of(of[side], *path)
        def share(limit, *counters):
            """I/Os per second by the server's own counters: the device's also count what others do on it."""
            rates = [sum(run["backend"][counter] for counter in counters) / run["seconds"] for run in of[side]]
            return statistics.median(rates) / limits[limit] if limits else None
        result[f"{side}_side"] = {
            "rows_per_s": rows / result[side], "cpu_s": typical("cpu_s"),
            "reads": typical("backend", "reads"), "read_pages": typical("backend", "read_blocks"), "writes": typical("backend", "writes"),
            "device_reads": typical("device", "reads"), "device_writes": typical("device", "writes"),
            "device_read_depth_avg": typical("device", "read_depth_avg"),
            "device_depth_avg": typical("device", "depth_avg"),
            "share_of_read_limit": share("read QD64", "reads"),
            "share_of_mixed_limit": share("read+write QD64", "reads", "writes", "bgwriter_writes"),
            "reads_in_flight_avg": typical("tasks", "avg_reads_in_flight"),
            "splits_per_1000_rows": typical("index_pages_added") * 1000 / rows,
        }
    return result


def show(bench, summary, limits):
    args = bench.args
    if limits:
        print("\nDevice, random 8 kB direct I/O (I/Os per second): "
              + ", ".join(f"{label} {limits[label]:,.0f}" for label in limits
                          if label.startswith("read")))
    for state, sizes in summary.items():
        what = ("freshly created indexes" if state == "fresh" else
                f"indexes grown by {args.growth} % from fillfactor {bench.facts['parameters']['fillfactor']}")
        report.table(f"COPY into {args.rows:,} rows, {what}; {args.io_method}, median of {args.runs}",
                     ["rows", "stock s", "ours s", "ratio", "of pairs", "stock rows/s", "ours rows/s",
                      "splits/1000 rows"],
                     [[f"{rows:,}", f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}",
                       f"{one['pair_min']:.2f}-{one['pair_max']:.2f}",
                       report.number(one["stock_side"]["rows_per_s"]), report.number(one["ours_side"]["rows_per_s"]),
                       report.number(one["ours_side"]["splits_per_1000_rows"], 1)]
                      for rows, one in sizes.items()])
        report.table(f"What it cost ({state})",
                     ["rows", "side", "reads", "pages", "writes", "in flight", "disk reads", "disk depth", "of read limit",
                      "of mixed limit", "CPU s", "us/page"],
                     [[f"{rows:,}", side, report.number(cost["reads"]), report.number(cost["read_pages"]), report.number(cost["writes"]),
                       report.number(cost["reads_in_flight_avg"], 1), report.number(cost["device_reads"]),
                       report.number(cost["device_depth_avg"], 1), report.percent(cost["share_of_read_limit"]),
                       report.percent(cost["share_of_mixed_limit"]), f"{cost['cpu_s']:.2f}",
                       report.number(cost["cpu_s"] / max(cost["read_pages"], 1) * 1e6, 1)]
                      for rows, one in sizes.items() for side, cost in
                      ((side, one[f"{side}_side"]) for side in SIDES)])
    if len(summary) == 2:
        report.table("Aged against fresh", ["rows", "fresh ratio", "aged ratio", "aged / fresh"],
                     [[f"{rows:,}", f"{one['ratio']:.2f}", f"{summary['aged'][rows]['ratio']:.2f}",
                       report.percent(summary["aged"][rows]["ratio"] / one["ratio"])]
                      for rows, one in summary["fresh"].items()])
    report.goals(goals(summary))


def goals(summary):
    entries = []
    for state, share in ("fresh", 1), ("aged", AGED_SHARE):
        for rows, (ratio, pages) in GOALS.items():
            one = summary.get(state, {}).get(rows)
            if one:
                entries.append((f"{state}, {rows:,} rows, stock time / ours", one["ratio"], ratio * share))
            if one and pages:
                entries.append((f"{state}, {rows:,} rows, stock pages read / ours",
                                one["stock_side"]["read_pages"] / one["ours_side"]["read_pages"], pages * share))
    return entries
