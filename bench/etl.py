"""etl: many streams of COPY into one table without indexes, on this disk and on one with latency."""

import contextlib
import re
import subprocess
import sys
import threading
import time

import harness
import pglib
import report
from harness import SIDES, order

sys.path.insert(0, str(pglib.REPO / "demo"))
import inputs    # noqa: E402  (the demo's data: lineitem)

HELP = "1 to 32 streams of TPC-H lineitem into one table without indexes, logged and unlogged, on two disks"
RUNS = 3
FILES = 32
KINDS = {"unlogged": "UNLOGGED", "logged": ""}
DISKS = ("plain", "slow")
EXTENT = re.compile(r": (\d+) extents? found")

# stock time / ours
GOAL_PLAIN = 0.95
GOAL_SLOW = 2.0
GOAL_SLOW_STREAMS = 8
# stock's time under the extension lock / ours
GOAL_LOCK = 5.0


def add_options(parser):
    parser.add_argument("--streams", type=harness.numbers, default=[1, 2, 4, 8, 16, 32],
                        help="numbers of streams (1,2,4,8,16,32)")
    parser.add_argument("--rows", type=int, default=1_200_000, help="rows in all, plain disk (%(default)s)")
    parser.add_argument("--slow-rows", type=int, default=600_000, help="rows in all, slow disk (%(default)s)")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this; may be repeated")
    parser.add_argument("--shared-buffers", default="64MB", help="(%(default)s)")


def run(bench):
    args = bench.args
    base = bench.data("pristine-unfinished")
    pglib.Cluster(bench.installs["stock"], base).initdb()
    runs, locks = [], []
    try:
        for disk in args.disk or DISKS:
            files = input_files(bench, args.rows if disk == "plain" else args.slow_rows)
            with bench.on_disk(disk), bench.slowly():
                found = measure(bench, base, disk, files)
            runs += found[0]
            locks += found[1]
    finally:
        pglib.remove(base)
    show(bench, runs, locks)


def input_files(bench, rows):
    """So many rows of lineitem in files of equal length."""
    directory = bench.results / f"lineitem-{rows}"
    if not directory.exists():
        bench.step(f"writing {rows:,} rows of lineitem")
        inputs.fetch(inputs.LINEITEM, Steps(bench))
        if not inputs.LINEITEM.real and not inputs.LINEITEM.directory.exists():
            raise pglib.PgError("no rows: ./pgawait demo invents some if the package cannot be had")
        lines = []
        for file in inputs.LINEITEM.files("base"):
            with open(file) as source:
                source.readline()
                lines += source.readlines()
            if len(lines) >= rows:
                break
        with inputs.new_directory(directory) as unfinished:
            for number in range(FILES):
                first, end = (rows * n // FILES for n in (number, number + 1))
                (unfinished / f"{number:02}.csv").write_text("".join(lines[first:end]))
    return sorted(directory.glob("*.csv"))


class Steps:
    """What inputs.fetch() reports to."""

    def __init__(self, bench):
        self.note = bench.step

    @contextlib.contextmanager
    def step(self, text):
        self.note(text)
        yield


def measure(bench, base, disk, files):
    args = bench.args
    bench.step(f"{disk} disk: copying the data for both servers")
    settings = {"debug_io_direct": "data", "shared_buffers": args.shared_buffers}
    runs, locks = [], []
    with bench.servers(base, settings) as clusters:
        for kind in args.kind or KINDS:
            for streams in args.streams:
                for turn in range(1, args.runs + 1):
                    pair = {}
                    for side in order(turn):
                        pair[side] = {"disk": disk, "kind": kind, "streams": streams, "side": side, "turn": turn,
                                      **load(clusters[side], kind, streams, files)}
                    runs += pair.values()
                    bench.step(f"{disk}, {kind}, {streams} streams, run {turn} of {args.runs}: "
                               + ", ".join(f"{side} {pair[side]['seconds']:.2f} s" for side in SIDES))
        if can_probe(bench):
            for side in SIDES:
                with lock_times(bench, side) as lock:
                    load(clusters[side], "unlogged", GOAL_SLOW_STREAMS, files)
                locks.append({"disk": disk, "side": side, **lock})
    return runs, locks


def load(cluster, kind, streams, files):
    """Load all files in so many sessions at the same time, into a new table."""
    control = cluster.session()
    control.query(f"DROP TABLE IF EXISTS lineitem; "
                  f"{inputs.LINEITEM.create_sql.replace('CREATE', 'CREATE ' + KINDS[kind], 1)}; CHECKPOINT")
    sessions = [cluster.session() for _ in range(streams)]
    errors = []

    def work(number):
        try:
            for file in files[number::streams]:
                sessions[number].query(f"COPY lineitem FROM {pglib.quote(file)} (FORMAT csv)")
        except pglib.PgError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(streams)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    if errors:
        raise errors[0]
    for session in sessions:
        session.close()
        cluster.sessions.remove(session)
    blocks, path, used = control.query(
        "SELECT pg_relation_size('lineitem') / 8192, pg_relation_filepath('lineitem'), "
        "(SELECT count(DISTINCT (ctid::text::point)[0]) FROM lineitem)")[0]
    control.query("CHECKPOINT")
    file = cluster.data / path
    result = {"seconds": seconds, "blocks": int(blocks), "unused_blocks": int(blocks) - int(used),
              "allocated_blocks": file.stat().st_blocks * 512 // 8192, "extents": extents(file)}
    control.close()
    cluster.sessions.remove(control)
    return result


def extents(file):
    """In how many pieces a file is; of one on the slow disk, the file that it shows."""
    behind = pglib.Path(str(file).replace("/slow/", "/slow.files/"))
    try:
        found = EXTENT.search(pglib.run(["filefrag", behind]))
    except pglib.PgError:
        found = None
    return int(found[1]) if found else None


# -- time under the extension lock -------------------------------------------------------------------------------------

def can_probe(bench):
    """May this user count calls of a server's functions?"""
    try:
        subprocess.run(["perf", "probe", "-l"], check=True, capture_output=True)
        return True
    except (OSError, subprocess.CalledProcessError):
        bench.step("without the time under the extension lock, as perf cannot set probes here")
        return False


@contextlib.contextmanager
def lock_times(bench, side):
    """From the return of LockRelationForExtension() to the call of UnlockRelationForExtension(), in each process."""
    program = bench.installs[side].program("postgres")
    record = bench.results / "lock.perf"
    found = {}
    perf("probe", "-q", "-d", "pgawait:*", check=False)
    for probe in "locked=LockRelationForExtension%return", "unlock=UnlockRelationForExtension":
        perf("probe", "-q", "-x", program, f"pgawait:{probe}")
    try:
        recorder = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "pgawait:*", "-o", str(record)],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        yield found
        recorder.terminate()
        recorder.wait()
        since, held = {}, []
        for line in perf("script", "-i", record, "-F", "tid,time,event").splitlines():
            words = line.split()
            tid, when, event = words[0], float(words[1].rstrip(":")), words[2]
            if "locked" in event:
                since[tid] = when
            elif tid in since:
                held.append(when - since.pop(tid))
        held.sort()
        found.update(times=len(held), total_ms=sum(held) * 1000,
                     median_us=held[len(held) // 2] * 1e6 if held else None)
    finally:
        perf("probe", "-q", "-d", "pgawait:*", check=False)
        record.unlink(missing_ok=True)


def perf(*words, check=True):
    done = subprocess.run(["perf", *map(str, words)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise pglib.PgError(f"perf {words[0]}: {done.stderr.strip()}")
    return done.stdout


# -- the tables --------------------------------------------------------------------------------------------------------

def show(bench, runs, locks):
    args = bench.args
    summary, rows, goals = {}, [], []
    for disk in args.disk or DISKS:
        for kind in args.kind or KINDS:
            for streams in args.streams:
                of = {side: [one for one in runs if (one["disk"], one["kind"], one["streams"], one["side"]) ==
                             (disk, kind, streams, side)] for side in SIDES}
                one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
                for what in "blocks", "unused_blocks", "allocated_blocks", "extents":
                    one[what] = {side: report.median_of(of[side], what) for side in SIDES
                                 if of[side][0][what] is not None}
                summary[f"{disk}, {kind}, {streams}"] = one
                rows.append([disk, kind, str(streams), f"{one['stock']:.2f}", f"{one['ours']:.2f}", f"{one['ratio']:.2f}",
                             f"{one['pair_min']:.2f}-{one['pair_max']:.2f}",
                             *(report.number(one[what][side]) if side in one[what] else "n/a"
                               for what in ("blocks", "unused_blocks", "extents") for side in SIDES)])
                wanted = GOAL_SLOW if disk == "slow" and streams >= GOAL_SLOW_STREAMS else GOAL_PLAIN
                goals.append((f"{disk}, {kind}, {streams} streams, stock time / ours", one["ratio"], wanted))
    report.table(f"lineitem, {args.rows:,} rows ({args.slow_rows:,} on the slow disk, {args.delay} us); {args.io_method}, "
                 f"median of {args.runs}",
                 ["disk", "table", "streams", "stock s", "ours s", "ratio", "of pairs", "stock blocks", "ours blocks",
                  "stock unused", "ours unused", "stock extents", "ours extents"], rows)
    for disk in args.disk or DISKS:
        pieces = {side: [run["extents"] for run in runs if (run["disk"], run["side"]) == (disk, side)] for side in SIDES}
        if all(all(counts) for counts in pieces.values()):
            goals.append((f"{disk}, extents of all tables, stock / ours", sum(pieces["stock"]) / sum(pieces["ours"]), 1))
    if locks:
        report.table(f"Extension lock, {GOAL_SLOW_STREAMS} streams, unlogged",
                     ["disk", "server", "times", "held, ms in all", "held, median us"],
                     [[one["disk"], one["side"], report.number(one["times"]), f"{one['total_ms']:.1f}",
                       f"{one['median_us']:.1f}"] for one in locks])
        for disk in args.disk or DISKS:
            total = {one["side"]: one["total_ms"] for one in locks if one["disk"] == disk}
            goals.append((f"{disk}, time under the extension lock, stock / ours", total["stock"] / total["ours"],
                          GOAL_LOCK))
    report.goals(goals)
    bench.finish(summary=summary, runs=runs, locks=locks)
