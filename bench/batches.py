"""batches: kinds of keys, of tables and of statements, all cached: where index entries are collected, where they are
not, and where collecting must not cost anything."""

import pglib
import report
from harness import SIDES, order
from measure import timed

HELP = "loads of many kinds, everything in shared_buffers: what collecting index entries gains, and what it costs"
RUNS = 5
GROUND = 0.99       # nothing may be lost

# name: (definition of table t, statement, wanted ratio); ROWS and FILE are replaced
LOADS = {
    "COPY, one random key": ("CREATE TABLE t (LIKE source); CREATE INDEX ON t (u)", "COPY t FROM FILE", GROUND),
    "COPY, one growing key": ("CREATE TABLE t (LIKE source); CREATE INDEX ON t (id)", "COPY t FROM FILE", GROUND),
    "INSERT, one growing key": ("CREATE TABLE t (LIKE source); CREATE INDEX ON t (id)",
                                "INSERT INTO t SELECT * FROM source", GROUND),
    "COPY, growing primary key": ("CREATE TABLE t (LIKE source, PRIMARY KEY (id))", "COPY t FROM FILE", GROUND),
    "COPY, random primary key and two more": (
        "CREATE TABLE t (LIKE source, PRIMARY KEY (u)); CREATE INDEX ON t (v); CREATE INDEX ON t (id)",
        "COPY t FROM FILE", GROUND),
    "INSERT, random primary key": ("CREATE TABLE t (LIKE source, PRIMARY KEY (u))",
                                   "INSERT INTO t SELECT * FROM source", GROUND),
    "COPY, few different keys": ("CREATE TABLE t (LIKE source); CREATE INDEX ON t (few)", "COPY t FROM FILE", GROUND),
    "COPY, wide keys": ("CREATE TABLE t (LIKE source); CREATE INDEX ON t (wide)", "COPY t FROM FILE", GROUND),
    "COPY, hash": ("CREATE TABLE t (LIKE source); CREATE INDEX ON t USING hash (u)", "COPY t FROM FILE", GROUND),
    "COPY, GIN without a pending list": (
        "CREATE TABLE t (LIKE source); CREATE INDEX ON t USING gin (string_to_array(u::text, '-')) WITH (fastupdate = off)",
        "COPY t FROM FILE", GROUND),
    "COPY, 32 partitions": (
        "CREATE TABLE t (LIKE source) PARTITION BY HASH (id); "
        + "; ".join(f"CREATE TABLE t{n} PARTITION OF t FOR VALUES WITH (MODULUS 32, REMAINDER {n})" for n in range(32))
        + "; CREATE INDEX ON t (u); CREATE INDEX ON t (v)", "COPY t FROM FILE", GROUND),
    "COPY, no index": ("CREATE TABLE t (LIKE source)", "COPY t FROM FILE", GROUND),
}
for size in (1, 10, 100, 1000, 3000):
    LOADS[f"INSERT of {size:,} row{'s' if size > 1 else ''}, again and again"] = (
        "CREATE TABLE t (LIKE source); CREATE INDEX ON t (u); CREATE INDEX ON t (v)",
        f"DO 'BEGIN FOR i IN 0 .. ROWS - 1 BY {size * (8 if size == 1 else 1)} LOOP "
        f"INSERT INTO t SELECT * FROM source WHERE id > i AND id <= i + {size}; END LOOP; END'", GROUND)


def add_options(parser):
    parser.add_argument("--rows", type=int, default=200_000, help="rows per load (%(default)s)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only loads whose names contain this")
    parser.add_argument("--shared-buffers", default="4GB", help="(%(default)s)")


def run(bench):
    args = bench.args
    bench.step("creating a database")
    base = bench.data("pristine-unfinished")
    pglib.Cluster(bench.installs["stock"], base).initdb()
    file = bench.work / "rows.copy"
    runs = []
    try:
        with bench.servers(base, {"shared_buffers": args.shared_buffers, "synchronous_commit": "off"}) as clusters:
            sessions = {side: clusters[side].session() for side in SIDES}
            prepare(sessions, args.rows, file)
            for load in (load for load in LOADS if args.only in load):
                runs += measure(bench, sessions, load, file)
    finally:
        pglib.remove(base)
        file.unlink(missing_ok=True)
    summary = {load: report.compare(*([one["seconds"] for one in runs if one["load"] == load and one["side"] == side]
                                      for side in SIDES))
               for load in dict.fromkeys(one["load"] for one in runs)}
    report.table(f"{args.rows:,} rows, all in shared_buffers; {args.io_method}, median of {args.runs}",
                 ["load", "stock s", "ours s", "ratio", "of pairs", "median pair"],
                 [[load, f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.3f}",
                   f"{one['pair_min']:.3f}-{one['pair_max']:.3f}", f"{one['pair_median']:.3f}"]
                  for load, one in summary.items()])
    report.goals([(load, one["ratio"], LOADS[load][2]) for load, one in summary.items()])
    bench.finish(summary=summary, runs=runs)


def prepare(sessions, rows, file):
    """The same random rows for both: made by one server, read by the other."""
    table = "CREATE TABLE source (id bigint PRIMARY KEY, u uuid, v uuid, few int, wide text)"
    for side, session in sessions.items():
        session.query(table)
        if side == "stock":
            session.query(f"INSERT INTO source SELECT n, gen_random_uuid(), gen_random_uuid(), n * 7919 % 100, "
                          f"repeat(md5(random()::text), 6) FROM generate_series(1, {rows}) n")
            session.query(f"COPY source TO {pglib.quote(file)}")
        else:
            session.query(f"COPY source FROM {pglib.quote(file)}")
        session.query("VACUUM (FREEZE, ANALYZE) source")


def measure(bench, sessions, load, file):
    definition, statement, _ = LOADS[load]
    statement = statement.replace("FILE", pglib.quote(file)).replace("ROWS", str(bench.args.rows))
    runs = []
    for session in sessions.values():
        session.query(f"DROP TABLE IF EXISTS t; {definition}")
    for turn in range(bench.args.runs + 1):
        pair = {}
        for side in order(turn):
            sessions[side].query("TRUNCATE t; CHECKPOINT")
            pair[side] = timed(sessions[side], statement)
            if turn > 0:
                runs.append({"load": load, "turn": turn, "side": side, **pair[side]})
        if turn > 0:
            bench.step(f"{load}, run {turn} of {bench.args.runs}: "
                       + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
    return runs
