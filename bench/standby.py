"""standby: how far a standby is behind a primary that loads without end, each on half of the machine.

The primary is ours for both: it is what a standby has to keep up with.  It loads 50,000 rows at a time into a table with
five random uuid indexes, larger than the memory of either server.  Once a second it is noted where the end of WAL is, and
up to where the standby has replayed it.  Afterwards both must have the same rows.
"""

import contextlib
import os
import statistics
import time

import pglib
import report
import tables
from harness import SIDES
from repeated import Repeated

HELP = "how far a standby is behind a primary of ours that loads without end, stock's and ours, one after the other"
RUNS = 1
ROWS_OF_TABLE, BAR_WIDTH = 10, 30


def add_options(parser):
    parser.add_argument("--rows", type=int, default=6_000_000, help="rows in the table at the start (%(default)s)")
    parser.add_argument("--load", type=int, default=50_000, help="rows of each COPY (%(default)s)")
    parser.add_argument("--seconds", type=int, default=600, help="for how long, for each standby (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="of each server (%(default)s)")
    parser.add_argument("--max-wal-size", default="16GB", help="of each server (%(default)s)")
    parser.add_argument("--concurrency", type=int, default=16, help="maintenance_io_concurrency (%(default)s)")
    parser.add_argument("--side", choices=SIDES, action="append", help="only the standby of this server")


def run(bench):
    args = bench.args
    runs = [measure(bench, side, turn) for turn in range(args.runs) for side in args.side or SIDES]
    show(bench, runs)
    bench.finish(runs=runs)


def half(cluster, cpu):
    """Have all processes of a server run on one of this machine's processors, those it starts later as well."""
    postmaster = int((cluster.data / "postmaster.pid").read_text().split()[0])
    children = pglib.run(["ps", "-o", "pid=", "--ppid", postmaster]).split()
    for pid in [postmaster, *map(int, children)]:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, cpu)


def halves():
    cpus = sorted(os.sched_getaffinity(0))
    return set(cpus[:len(cpus) // 2] or cpus), set(cpus[len(cpus) // 2:])


@contextlib.contextmanager
def servers(bench, side):
    """A primary of ours and a standby of this side, with the same data."""
    args = bench.args
    common = {"shared_buffers": args.shared_buffers, "debug_io_direct": "data", "checkpoint_timeout": "5min",
              "max_wal_size": args.max_wal_size, "min_wal_size": "1GB", "maintenance_io_concurrency": args.concurrency}
    where = {"primary": bench.data("ours"), "standby": bench.data("stock")}
    try:
        pglib.clone(tables.pristine(bench, args.rows), where["primary"])
        primary = pglib.Cluster(bench.installs["ours"], where["primary"], bench.settings(
            "ours", {**common, "wal_level": "replica", "max_wal_senders": 4, "wal_keep_size": "100GB"}))
        with primary:
            pass    # a standby does not begin with what was made with wal_level = minimal
        pglib.clone(where["primary"], where["standby"])
        with primary:
            standby = pglib.Cluster(bench.installs[side], where["standby"], bench.settings(side, {
                **common, "hot_standby": "on",
                "primary_conninfo": f"host={primary.socket_dir} port={primary.port} user=postgres"}))
            pglib.give_to_account(touch(standby.data / "standby.signal"))
            with standby:
                for cluster, cpu in zip((primary, standby), halves()):
                    half(cluster, cpu)
                yield primary, standby
    finally:
        for data in where.values():
            pglib.remove(data)


def touch(path):
    path.touch()
    return path


def measure(bench, side, turn):
    args = bench.args
    with servers(bench, side) as (primary, standby), contextlib.ExitStack() as stack:
        files = [stack.enter_context(tables.rows_file(bench, args.load, f"{turn}/{n}", f"rows{n}.copy")) for n in range(8)]
        session, replayer = primary.session(), standby.session()
        samples = []
        began = time.monotonic()
        loads = [f"COPY {tables.TABLE} FROM {pglib.quote(file)}" for file in files]
        with Repeated(primary.session(), loads) as loader:
            while (now := time.monotonic() - began) < args.seconds:
                time.sleep(1)
                samples.append((now, int(session.value("SELECT pg_current_wal_lsn() - '0/0'")),
                                int(replayer.value("SELECT pg_last_wal_replay_lsn() - '0/0'"))))
        began = time.monotonic()
        end = session.value("SELECT pg_current_wal_lsn()")
        replayer.query(f"DO $$ BEGIN WHILE pg_last_wal_replay_lsn() < {pglib.quote(end)} LOOP PERFORM pg_sleep(0.01); "
                       "END LOOP; END $$")
        behind = time.monotonic() - began
        result = [one.value(f"SELECT count(*) FROM {tables.TABLE}") for one in (session, replayer)]
        if len(set(result)) > 1:
            raise pglib.PgError(f"the standby has {result[1]} rows, its primary {result[0]}")
        bench.step(f"{side}: {len(loader.seconds)} loads, then {behind:.1f} s behind")
        return {"side": side, "turn": turn, "loads": loader.seconds, "behind": behind, "lag": lags(samples)}


def lags(samples):
    """How far the standby was behind: (seconds since the beginning, bytes, seconds)."""
    found = []
    first = 0
    for now, position, replayed in samples:
        # The primary's position was then what the standby has replayed now.
        while samples[first][1] < replayed:
            first += 1
        found.append((now, position - replayed, max(0, now - samples[first][0])))
    return found


def show(bench, runs):
    most = max(size for run in runs for _, size, _ in run["lag"]) or 1
    for run in runs:
        step = bench.args.seconds / ROWS_OF_TABLE
        rows = []
        for number in range(ROWS_OF_TABLE):
            inside = [one for one in run["lag"] if number * step <= one[0] < (number + 1) * step]
            if inside:
                size, seconds = (statistics.mean(one[column] for one in inside) for column in (1, 2))
                rows.append([f"{(number + 1) * step:.0f}", report.number(size / 1e6), f"{seconds:.1f}",
                             ("#" * round(BAR_WIDTH * size / most)).ljust(BAR_WIDTH)])
        report.table(f"Standby of {run['side']}, {len(run['loads'])} loads of {bench.args.load:,} rows, "
                     f"{statistics.mean(run['loads']):.1f} s each; {bench.args.io_method}",
                     ["until s", "MB behind", "s behind", ""], rows)
        print(f"When the loads had ended it took {run['behind']:.1f} s to catch up.")
    report.table("How much further behind it gets in a minute", ["standby of", "MB", "s"],
                 [[run["side"], *(f"{60 * growth(run['lag'], column):+.1f}" for column in (1, 2))] for run in runs])


def growth(lag, column):
    """MB, or seconds, by which the lag grows in a second, of all that was seen but the first tenth."""
    late = lag[len(lag) // 10:]
    slope = statistics.linear_regression([one[0] for one in late], [one[column] for one in late]).slope
    return slope / 1e6 if column == 1 else slope
