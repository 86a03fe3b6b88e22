"""keys: statements that look up a key for each row that they write, both servers in turn.

Cold, nothing of what they need is in memory: a table of 3M rows with a random uuid as its primary key, and another one
with an indexed foreign key to it.  In memory, a million rows refer to a table of as many, by one integer or by two.
"""

import contextlib

import cold
import harness
import pglib
import report
import tables
from harness import SIDES, order
from measure import has_task_stats, timed

HELP = "loads and deletes that check foreign keys, cold and in memory, both servers in turn"
RUNS = 3
GOAL_SLOW = 15
DISKS = ("plain", "slow", "buffered", "memory")
LOOK_UP = "SET plan_cache_mode = auto; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; " \
          "SET max_parallel_workers_per_gather = 0"
FEW = 5

# what: (rows, before, statement, what must be equal afterwards, goal on the plain disk); FILE has the rows of keys
COLD = {
    "copy": (50_000, "TRUNCATE loaded; COPY (SELECT n, key FROM keys ORDER BY n) TO FILE", "COPY loaded FROM FILE",
             "SELECT count(*), count(DISTINCT parent) FROM loaded", 3.5),
    "copy, few keys": (50_000, f"TRUNCATE loaded; COPY (SELECT k.n, p.key FROM keys k JOIN keys p ON p.n = 1 + k.n / {FEW} "
                               "ORDER BY hashint8(k.n)) TO FILE", "COPY loaded FROM FILE",
                       "SELECT count(*), count(DISTINCT parent) FROM loaded", 5),
    "delete parents": (20_000, "TRUNCATE loaded", "DELETE FROM parent p USING keys k WHERE p.id = k.key",
                       "SELECT count(*) FROM parent p JOIN keys k ON p.id = k.key", 3.5),
}

# what: (table, file's query, goal)
MEMORY_ROWS = 1_000_000
RANDOM = f"1 + (hashint4(i) & 2147483647) % {MEMORY_ROWS}"
MEMORY = {
    "one column, in order": ("c1", "SELECT i, i", 2.5),
    "one column": ("c1", f"SELECT i, {RANDOM}", 2.5),
    "one column, 1,000 keys": ("c1", "SELECT i, 1 + i % 1000", 2.5),
    "two columns": ("c2", f"SELECT i, ({RANDOM}) / 1000, ({RANDOM}) % 1000", 2),
    "no foreign key": ("c0", f"SELECT i, {RANDOM}", None),
}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows in the referenced table (%(default)s)")
    parser.add_argument("--case", choices=[*COLD, *MEMORY], action="append", help="only this; may be repeated")
    parser.add_argument("--disk", choices=DISKS, action="append", help="only this; may be repeated")
    parser.add_argument("--delay", type=int, default=1000, help="latency of the slow disk, microseconds (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="(%(default)s)")


def run(bench):
    args = bench.args
    runs = []
    for disk in args.disk or DISKS:
        if disk == "memory":
            runs += measure(bench, disk, in_memory(bench), {"shared_buffers": "1GB"}, MEMORY, one_in_memory)
            continue
        # what is copied before would take an hour
        with (harness.slow_disk(bench, at_once=False) if disk == "slow" else contextlib.nullcontext(lambda: None)) as begin:
            runs += measure(bench, disk, on_disk(bench, args.rows), cold.settings(disk, args.shared_buffers), COLD,
                            one_cold, begin)
    show(bench, runs)
    bench.finish(runs=runs)


def on_disk(bench, rows):
    return pristine(
        bench, f"keys-{rows}", rows,
        "BEGIN; CREATE TABLE parent (id uuid, v int); "
        f"INSERT INTO parent SELECT gen_random_uuid(), i FROM generate_series(1, {rows}) i; "
        "CREATE TABLE child (n int, parent uuid, filler uuid); "
        "INSERT INTO child SELECT v, id, gen_random_uuid() FROM parent WHERE v % 2 = 0 ORDER BY id; COMMIT",
        "ALTER TABLE parent ADD PRIMARY KEY (id); CREATE INDEX ON child (parent); "
        "ALTER TABLE child ADD FOREIGN KEY (parent) REFERENCES parent; "
        "CREATE TABLE loaded (n bigint, parent uuid REFERENCES parent); VACUUM (FREEZE, ANALYZE)")


def in_memory(bench):
    return pristine(
        bench, f"keys-in-memory-{MEMORY_ROWS}", MEMORY_ROWS,
        f"CREATE TABLE p1 (id int PRIMARY KEY, v int); INSERT INTO p1 SELECT i, i FROM generate_series(1, {MEMORY_ROWS}) i; "
        f"CREATE TABLE p2 (a int, b int, v int, PRIMARY KEY (a, b)); "
        f"INSERT INTO p2 SELECT i / 1000, i % 1000, i FROM generate_series(1, {MEMORY_ROWS}) i; "
        "CREATE TABLE c0 (n int, p int); CREATE TABLE c1 (n int, p int REFERENCES p1); "
        "CREATE TABLE c2 (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES p2); VACUUM (FREEZE, ANALYZE)")


def pristine(bench, name, rows, *scripts):
    """The data directory of a stopped server in which these scripts have been executed."""
    data = bench.data(f"pristine-{name}")
    if not data.exists():
        bench.step(f"building tables of {rows:,} rows (once; kept in {data})")

        def build(session):
            for script in scripts:
                session.query(script)
        tables.build_pristine(bench, data, build)
    return data


def measure(bench, disk, data, settings, cases, one, begin=lambda: None):
    args = bench.args
    wanted = [case for case in args.case or cases if case in cases]
    if not wanted:
        return []
    bench.step(f"{disk}: copying the data for both servers")
    runs = []
    with bench.servers(data, settings) as clusters:
        begin()
        for number, case in enumerate(wanted):
            for turn in range(1, args.runs + 1):
                seed = 1000 * number + turn
                pair = {side: one(bench, clusters[side], disk, side, case, seed) for side in order(turn)}
                if len({str(pair[side]["result"]) for side in SIDES}) > 1:
                    raise pglib.PgError(f"{case}: the servers differ: {pair}")
                runs += [{"disk": disk, "case": case, "turn": turn, "side": side, **pair[side]} for side in SIDES]
                bench.step(f"{disk}, {case}, run {turn} of {args.runs}: "
                           + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
    return runs


def one_cold(bench, cluster, disk, side, case, seed):
    """One statement with nothing in memory."""
    rows, before, statement, check, _ = COLD[case]
    path = bench.work / "keys.copy"
    session = cluster.session()
    session.query(f"DROP TABLE IF EXISTS keys; CREATE TABLE keys AS SELECT row_number() OVER () AS n, id AS key FROM "
                  f"(SELECT id FROM parent TABLESAMPLE BERNOULLI (5) REPEATABLE ({seed}) WHERE v % 2 = 1 ORDER BY hashint4(v)) p "
                  f"LIMIT {rows}; CREATE INDEX ON keys (n); ANALYZE keys")
    session.query(before.replace("FILE", pglib.quote(path)))
    cold.evict(cluster, disk, "child")
    session = cluster.session()
    session.query(LOOK_UP)
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs, the roots of the indexes and the plans of the triggers are not what is measured.
    session.query("SELECT FROM parent WHERE id = '00000000-0000-0000-0000-000000000000'; "
                  "SELECT FROM child WHERE parent = '00000000-0000-0000-0000-000000000000'; "
                  "BEGIN; INSERT INTO loaded SELECT 0, id FROM parent LIMIT 10; ROLLBACK")
    result = timed(session, statement.replace("FILE", pglib.quote(path)), bench.device, task_stats)
    result["result"] = session.query(check)
    path.unlink(missing_ok=True)
    return result


def one_in_memory(bench, cluster, disk, side, case, seed):
    table, rows, _ = MEMORY[case]
    path = bench.work / "keys.copy"
    session = cluster.session()
    session.query(f"TRUNCATE c0, c1, c2; COPY ({rows} FROM generate_series(1, {MEMORY_ROWS}) i) TO {pglib.quote(path)}")
    session.query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm(oid) FROM pg_class WHERE relname ~ '^p[12]'")
    session.query("VACUUM p1, p2")
    session.query("CHECKPOINT")
    result = timed(session, f"COPY {table} FROM {pglib.quote(path)}", bench.device, side == "ours" and has_task_stats(session))
    result["result"] = session.query(f"SELECT count(*), sum(n::bigint) FROM {table}")
    path.unlink()
    return result


def show(bench, runs):
    args = bench.args
    entries = []
    for disk in args.disk or DISKS:
        cases = MEMORY if disk == "memory" else COLD
        rows = []
        for case in args.case or cases:
            of = {side: [run for run in runs if (run["disk"], run["case"], run["side"]) == (disk, case, side)]
                  for side in SIDES}
            if not of["ours"]:
                continue
            one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
            reads = {side: report.median_of(of[side], "backend", "reads") for side in SIDES}
            rows.append([case, f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}",
                         f"{one['pair_min']:.2f}-{one['pair_max']:.2f}", report.number(reads["stock"]),
                         report.number(reads["ours"]), f"{report.median_of(of['stock'], 'cpu_s'):.2f}",
                         f"{report.median_of(of['ours'], 'cpu_s'):.2f}"])
            goal = cases[case][-1]
            if goal:
                entries.append((f"{disk}, {case}, stock time / ours", one["ratio"], GOAL_SLOW if disk == "slow" else goal))
        if rows:
            report.table(f"Keys, {disk}; {args.io_method}, median of {args.runs}",
                         ["case", "stock s", "ours s", "ratio", "of pairs", "stock reads", "our reads", "stock CPU s",
                          "our CPU s"], rows)
    report.goals(entries)
