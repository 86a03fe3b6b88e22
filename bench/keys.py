"""keys: statements that look up a key for each row that they write, both servers in turn.

Cold, nothing of what they need is in memory: a table of 3M rows with a random uuid as its primary key, another one
with an indexed foreign key to it, one with a unique key that is deferrable, and a materialized view of half as many rows.
In memory, a million rows refer to a table of as many, by one integer or by two.
"""

import functools

import cold
import pairs
import pglib
import tables
from measure import has_task_stats

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
    "deferrable key": (20_000, "TRUNCATE loaded; DROP TABLE IF EXISTS numbers; CREATE TABLE numbers AS SELECT n, gen_random_uuid() AS number FROM keys",
                       "INSERT INTO numbered SELECT * FROM numbers",
                       "SELECT count(*), count(DISTINCT number) FROM numbered", 3.5),
    "deferred checks": (20_000, "TRUNCATE loaded", "SET CONSTRAINTS ALL IMMEDIATE",
                        "SELECT count(*), count(DISTINCT number) FROM numbered", 3.5),
    "validate": (20_000, "TRUNCATE loaded; DROP TABLE IF EXISTS loose; CREATE TABLE loose AS SELECT n, key AS parent FROM keys ORDER BY n; "
                         "DO $$ BEGIN CREATE ROLE validator; EXCEPTION WHEN duplicate_object THEN END $$; "
                         "GRANT USAGE, CREATE ON SCHEMA public TO validator; GRANT REFERENCES ON parent TO validator; "
                         "ALTER TABLE loose OWNER TO validator",
                 "ALTER TABLE loose ADD FOREIGN KEY (parent) REFERENCES parent",
                 "SELECT count(*) FROM pg_constraint WHERE conrelid = 'loose'::regclass AND convalidated", 1),
    "refresh": (20_000, "TRUNCATE loaded; UPDATE base b SET code = md5(code::text)::uuid FROM keys k WHERE b.id = k.key",
                "REFRESH MATERIALIZED VIEW CONCURRENTLY listed", "SELECT count(*) FROM listed l JOIN base b USING (id, code)", 1),
    "refresh, few changes": (1_000, "TRUNCATE loaded; UPDATE base b SET code = md5(code::text)::uuid FROM keys k WHERE b.id = k.key",
                             "REFRESH MATERIALIZED VIEW CONCURRENTLY listed",
                             "SELECT count(*) FROM listed l JOIN base b USING (id, code)", 1),
}

# what has been done in the transaction of the statement
BEGUN = {
    # who may not read the referenced table has each row checked
    "validate": "BEGIN; SET LOCAL ROLE validator",
    "deferred checks": "BEGIN; UPDATE numbered x SET number = y.number FROM (SELECT n, number, lead(n, 1, first) OVER (ORDER BY h) AS of "
                       "FROM (SELECT n, number, hashint4(n) AS h, first_value(n) OVER (ORDER BY hashint4(n)) AS first FROM numbered "
                       "WHERE n % 150 = 7 AND n > 20000) z ORDER BY h DESC) y WHERE x.n = y.of",
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
    pairs.add_fio_options(parser)


def run(bench):
    args = bench.args
    limits = pairs.measure_limits(bench)
    runs = []
    for disk in args.disk or DISKS:
        cases, one = (MEMORY, one_in_memory) if disk == "memory" else (COLD, one_cold)
        chosen = [case for case in args.case or cases if case in cases]
        if chosen:
            data = in_memory(bench) if disk == "memory" else on_disk(bench, args.rows)
            settings = {"shared_buffers": "1GB"} if disk == "memory" else cold.settings(disk, args.shared_buffers)
            runs += pairs.measure(bench, disk, data, settings, chosen, functools.partial(one, bench))
    pairs.show(bench, "Keys", runs,
               lambda disk, case: GOAL_SLOW if disk == "slow" else (MEMORY if disk == "memory" else COLD)[case][-1],
               limits=limits)
    bench.finish(runs=runs)


def on_disk(bench, rows):
    return tables.made_by(
        bench, f"keys-{rows}-deferrable",
        "BEGIN; CREATE TABLE parent (id uuid, v int); "
        f"INSERT INTO parent SELECT gen_random_uuid(), i FROM generate_series(1, {rows}) i; "
        "CREATE TABLE child (n int, parent uuid, filler uuid); "
        "INSERT INTO child SELECT v, id, gen_random_uuid() FROM parent WHERE v % 2 = 0 ORDER BY id; COMMIT",
        "ALTER TABLE parent ADD PRIMARY KEY (id); CREATE INDEX ON child (parent); "
        "ALTER TABLE child ADD FOREIGN KEY (parent) REFERENCES parent; "
        "CREATE TABLE loaded (n bigint, parent uuid REFERENCES parent); "
        "CREATE TABLE numbered (n int, number uuid); INSERT INTO numbered SELECT v, gen_random_uuid() FROM parent; "
        "ALTER TABLE numbered ADD UNIQUE (number) DEFERRABLE INITIALLY DEFERRED; CREATE INDEX ON numbered (n); "
        "CREATE TABLE base AS SELECT id, gen_random_uuid() AS code, repeat('x', 100) AS pad FROM parent WHERE v % 2 = 1; "
        "ALTER TABLE base ADD PRIMARY KEY (id); CREATE MATERIALIZED VIEW listed AS TABLE base; "
        "CREATE UNIQUE INDEX ON listed (id); CREATE INDEX ON listed (code); VACUUM (FREEZE, ANALYZE)")


def in_memory(bench):
    return tables.made_by(
        bench, f"keys-in-memory-{MEMORY_ROWS}",
        f"CREATE TABLE p1 (id int PRIMARY KEY, v int); INSERT INTO p1 SELECT i, i FROM generate_series(1, {MEMORY_ROWS}) i; "
        f"CREATE TABLE p2 (a int, b int, v int, PRIMARY KEY (a, b)); "
        f"INSERT INTO p2 SELECT i / 1000, i % 1000, i FROM generate_series(1, {MEMORY_ROWS}) i; "
        "CREATE TABLE c0 (n int, p int); CREATE TABLE c1 (n int, p int REFERENCES p1); "
        "CREATE TABLE c2 (n int, a int, b int, FOREIGN KEY (a, b) REFERENCES p2); VACUUM (FREEZE, ANALYZE)")


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
    if "refresh" not in case:
        session.query(LOOK_UP)
    task_stats = side == "ours" and has_task_stats(session)
    # The catalogs, the roots of the indexes and the plans of the triggers are not what is measured.
    session.query("SELECT FROM parent WHERE id = '00000000-0000-0000-0000-000000000000'; "
                  "SELECT FROM child WHERE parent = '00000000-0000-0000-0000-000000000000'; "
                  "BEGIN; INSERT INTO loaded SELECT 0, id FROM parent LIMIT 10; ROLLBACK")
    if case in BEGUN:
        session.query(BEGUN[case])
        cold.evict(cluster, disk, "child")
    result = bench.timed(session, statement.replace("FILE", pglib.quote(path)), task_stats)
    if case in BEGUN:
        session.query("COMMIT")
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
    result = bench.timed(session, f"COPY {table} FROM {pglib.quote(path)}", side == "ours" and has_task_stats(session))
    result["result"] = session.query(f"SELECT count(*), sum(n::bigint) FROM {table}")
    path.unlink()
    return result
