"""budgets: how much memory for index entries is worth while: one load, with stock and with several budgets, each on a
fresh copy of the same data."""

import contextlib
import statistics

import pglib
import report
import tables
from measure import timed

HELP = "COPY into a 6M-row table with five random uuid indexes, direct I/O, with several aio.index_batch_memory"
RUNS = 1
STOCK = "stock"
WARM_UP_ROWS = 10_000
NOT_WORSE = 0.9     # a larger budget than the load needs gains nothing, and must not cost


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table at the start (%(default)s)")
    parser.add_argument("--load", type=int, default=200_000, help="rows of the COPY (%(default)s)")
    parser.add_argument("--budgets", type=lambda text: text.split(","), metavar="SIZE,SIZE,...",
                        default=["0", "1MB", "4MB", "16MB", "64MB", "256MB"], help="(0,1MB,4MB,16MB,64MB,256MB)")
    parser.add_argument("--no-stock", action="store_true", help="leave stock out, which takes longest by far")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the rows loaded (%(default)s)")


def run(bench):
    args = bench.args
    pristine = tables.pristine(bench, args.rows)
    kinds = ([] if args.no_stock else [STOCK]) + args.budgets
    runs = []
    with tables.rows_file(bench, WARM_UP_ROWS, f"{args.seed}/warm-up", "warm-up.copy") as warm_up, \
            tables.rows_file(bench, args.load, args.seed) as file:
        for turn in range(1, args.runs + 1):
            for kind in kinds if turn % 2 else kinds[::-1]:
                with server(bench, pristine, kind) as session:
                    session.query(f"COPY {tables.TABLE} FROM {pglib.quote(warm_up)}; CHECKPOINT")
                    one = timed(session, f"COPY {tables.TABLE} FROM {pglib.quote(file)}", bench.device)
                runs.append({"turn": turn, "kind": kind, **one})
                bench.step(f"run {turn} of {args.runs}, {kind}: {one['seconds']:.3f} s")

    summary = {kind: {"seconds": statistics.median(one["seconds"] for one in runs if one["kind"] == kind),
                      **{name: report.median_of([one for one in runs if one["kind"] == kind], "backend", name)
                         for name in ("reads", "read_blocks", "writes")}} for kind in kinds}
    base = summary[kinds[0]]
    report.table(f"COPY of {args.load:,} rows into {args.rows:,}; {args.io_method}, median of {args.runs}",
                 ["aio.index_batch_memory", "s", f"{kinds[0]} / this", "reads", "pages", "fewer pages", "writes"],
                 [[kind, f"{one['seconds']:.3f}", f"{base['seconds'] / one['seconds']:.2f}",
                   report.number(one["reads"]), report.number(one["read_blocks"]),
                   f"{base['read_blocks'] / one['read_blocks']:.2f}", report.number(one["writes"])]
                  for kind, one in summary.items()])
    report.goals([(f"{larger} against {smaller}", summary[smaller]["seconds"] / summary[larger]["seconds"], NOT_WORSE)
                  for smaller, larger in zip(args.budgets, args.budgets[1:])])
    bench.finish(summary=summary, runs=runs)


@contextlib.contextmanager
def server(bench, pristine, kind):
    """A session on a fresh copy of the data, at a server of this kind; the copy goes at the end."""
    side = STOCK if kind == STOCK else "ours"
    settings = bench.settings(side, {"shared_buffers": bench.args.shared_buffers, "debug_io_direct": "data"})
    if kind != STOCK:
        settings["aio.index_batch_memory"] = kind
    data = bench.data(side)
    pglib.clone(pristine, data)
    try:
        with pglib.Cluster(bench.installs[side], data, settings) as cluster:
            session = cluster.session()
            bench.facts["settings"][kind] = report.changed_settings(session)
            yield session
    finally:
        pglib.remove(data)
