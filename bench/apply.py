"""apply: logical replication to a subscriber that has nothing in memory, stock and ours, from the same publisher.

A table of 3M rows with a random uuid as its primary key and one more index.  Each transaction is committed at the publisher
while the subscriptions are disabled; what is measured is the time from enabling one of them until its server has it.  Then
the publisher updates rows at a steady rate, for one subscriber after the other, and it is seen how far that one is behind.
"""

import contextlib
import statistics
import time

import cold
import pglib
import report
import tables
from harness import SIDES, order
from pglib import Cluster

HELP = "logical replication of updates and deletions to a cold subscriber, both servers in turn"
RUNS = 3
GOAL = 3.5
BATCHES_A_SECOND = 10
TABLE = "replicated"

CASES = {
    "update": f"UPDATE {TABLE} r SET plain = r.plain + 1 FROM keys k WHERE r.id = k.id",
    "update, indexed": f"UPDATE {TABLE} r SET indexed = gen_random_uuid() FROM keys k WHERE r.id = k.id",
    "delete": f"DELETE FROM {TABLE} r USING keys k WHERE r.id = k.id",
}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows in the table (%(default)s)")
    parser.add_argument("--changes", type=int, default=20_000, help="rows that a transaction changes (%(default)s)")
    parser.add_argument("--case", choices=[*CASES, "rate"], action="append", help="only this; may be repeated")
    parser.add_argument("--rate", type=int, default=5000, help="rows updated a second (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="for how long, for each subscriber (%(default)s)")
    parser.add_argument("--shared-buffers", default="256MB", help="of the subscribers (%(default)s)")


def run(bench):
    args = bench.args
    data = pristine(bench, args.rows)
    settings = {**cold.settings("plain", args.shared_buffers), "wal_level": "logical"}
    runs, lags = [], []
    with bench.servers(data, settings) as clusters, publisher(bench, data) as source:
        session = subscribe(source, clusters)
        wanted = args.case or [*CASES, "rate"]
        for case in (case for case in CASES if case in wanted):
            for turn in range(1, args.runs + 1):
                runs += one_transaction(bench, session, clusters, case, turn)
        if "rate" in wanted:
            lags = [one_rate(bench, session, clusters, side) for side in SIDES]
        compare_contents(session, clusters)
    show(bench, runs, lags)
    bench.finish(runs=runs, lags=lags)


def pristine(bench, rows):
    """The data directory of a stopped server with the table, before anything is replicated."""
    data = bench.data(f"pristine-apply-{rows}")
    if not data.exists():
        bench.step(f"building a table of {rows:,} rows (once; kept in {data})")

        def build(session):
            session.query(f"BEGIN; CREATE TABLE {TABLE} (id uuid, indexed uuid, plain int, filler text); INSERT INTO {TABLE} "
                          "SELECT gen_random_uuid(), gen_random_uuid(), i, repeat('x', 100) "
                          f"FROM generate_series(1, {rows}) i; COMMIT")
            session.query(f"ALTER TABLE {TABLE} ADD PRIMARY KEY (id); CREATE INDEX ON {TABLE} (indexed); "
                          "CREATE TABLE marker (n int PRIMARY KEY); VACUUM (FREEZE, ANALYZE)")
        tables.build_pristine(bench, data, build)
    return data


@contextlib.contextmanager
def publisher(bench, data):
    """A stock server that has the table in memory, so that it is not what is measured."""
    where = bench.data("publisher")
    try:
        pglib.remove(where)
        pglib.clone(data, where)
        settings = bench.settings("stock", {"wal_level": "logical", "shared_buffers": "1536MB"})
        with Cluster(bench.installs["stock"], where, settings) as cluster:
            yield cluster
    finally:
        pglib.remove(where)


def subscribe(source, clusters):
    session = source.session()
    session.query("CREATE EXTENSION IF NOT EXISTS pg_prewarm; SELECT pg_prewarm(oid) FROM pg_class "
                  f"WHERE relname ~ '^{TABLE}' AND relkind IN ('r', 'i'); "
                  f"CREATE PUBLICATION pub FOR TABLE {TABLE}, marker")
    for side in SIDES:
        session.query(f"SELECT pg_create_logical_replication_slot('{side}', 'pgoutput')")
        clusters[side].session().query(
            f"CREATE SUBSCRIPTION sub CONNECTION 'host={source.socket_dir} port={source.port} user=postgres dbname=postgres' "
            f"PUBLICATION pub WITH (connect = false, enabled = false, slot_name = '{side}', streaming = off)")
        # What a refresh would find out, without the tables being copied.
        clusters[side].session().query("ALTER SUBSCRIPTION sub ENABLE; "
                                       "ALTER SUBSCRIPTION sub REFRESH PUBLICATION WITH (copy_data = false); "
                                       "ALTER SUBSCRIPTION sub DISABLE")
    return session


def choose_keys(session, rows):
    session.query(f"DROP TABLE IF EXISTS keys; CREATE TABLE keys AS SELECT id FROM {TABLE} TABLESAMPLE BERNOULLI (5) "
                  f"ORDER BY random() LIMIT {rows}; ANALYZE keys")


def wait_for(session, marker):
    session.query("DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM marker WHERE n = "
                  f"{marker}) LOOP PERFORM pg_sleep(0.002); END LOOP; END $$")


def next_marker(session):
    return int(session.value("SELECT coalesce(max(n), 0) + 1 FROM marker"))


def disable(session):
    session.query("ALTER SUBSCRIPTION sub DISABLE; DO $$ BEGIN WHILE EXISTS (SELECT FROM pg_stat_subscription WHERE pid > 0) "
                  "LOOP PERFORM pg_sleep(0.002); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$")


def io_of_workers(session):
    """Reads that the workers have waited for, or begun, so far."""
    return int(session.value("SELECT coalesce(sum(reads), 0) FROM pg_stat_io WHERE backend_type = 'background worker' "
                             "AND object = 'relation'"))


def one_transaction(bench, source, clusters, case, turn):
    choose_keys(source, bench.args.changes)
    marker = next_marker(source)
    source.query(f"BEGIN; {CASES[case]}; INSERT INTO marker VALUES ({marker}); COMMIT")
    runs = []
    for side in order(turn):
        session = clusters[side].session()
        cold.evict(clusters[side], "plain", TABLE)
        reads = io_of_workers(session)
        began = time.monotonic()
        session.query("ALTER SUBSCRIPTION sub ENABLE")
        wait_for(session, marker)
        seconds = time.monotonic() - began
        disable(session)
        session.query("SELECT pg_stat_force_next_flush()")
        runs.append({"case": case, "turn": turn, "side": side, "seconds": seconds, "reads": io_of_workers(session) - reads})
    bench.step(f"{case}, run {turn} of {bench.args.runs}: "
               + ", ".join(f"{one['side']} {one['seconds']:.3f} s" for one in runs))
    return runs


def one_rate(bench, source, clusters, side):
    """How far a subscriber is behind when the publisher has updated rows for some time."""
    args = bench.args
    rows = args.rate // BATCHES_A_SECOND
    batches = args.seconds * BATCHES_A_SECOND
    session = clusters[side].session()
    # What the other one has got meanwhile.
    session.query("ALTER SUBSCRIPTION sub ENABLE")
    marker = next_marker(source)
    source.query(f"INSERT INTO marker VALUES ({marker})")
    wait_for(session, marker)
    disable(session)
    cold.evict(clusters[side], "plain", TABLE)
    session.query("ALTER SUBSCRIPTION sub ENABLE")
    choose_keys(source, rows * batches)
    source.query("ALTER TABLE keys ADD n int GENERATED ALWAYS AS IDENTITY; CREATE INDEX ON keys (n); ANALYZE keys")
    began = time.monotonic()
    for batch in range(batches):
        time.sleep(max(0, began + batch / BATCHES_A_SECOND - time.monotonic()))
        source.query(f"UPDATE {TABLE} r SET plain = r.plain + 1 FROM keys k WHERE r.id = k.id "
                     f"AND k.n > {batch * rows} AND k.n <= {(batch + 1) * rows}")
    took = time.monotonic() - began
    source.query(f"INSERT INTO marker VALUES ({marker + 1})")
    began = time.monotonic()
    wait_for(session, marker + 1)
    behind = time.monotonic() - began
    disable(session)
    bench.step(f"{side}: {rows * batches / took:,.0f} rows a second for {took:.0f} s, then {behind:.1f} s behind")
    return {"side": side, "rate": rows * batches / took, "seconds": took, "behind": behind}


def compare_contents(source, clusters):
    """Both subscribers, and the publisher, have the same rows at the end."""
    marker = next_marker(source)
    source.query(f"INSERT INTO marker VALUES ({marker})")
    sums = [source.query(f"SELECT count(*), sum(plain::bigint), sum(hashtext(indexed::text)::bigint) FROM {TABLE}")]
    for side in SIDES:
        session = clusters[side].session()
        session.query("ALTER SUBSCRIPTION sub ENABLE")
        wait_for(session, marker)
        disable(session)
        sums.append(session.query(f"SELECT count(*), sum(plain::bigint), sum(hashtext(indexed::text)::bigint) FROM {TABLE}"))
    if len({str(one) for one in sums}) > 1:
        raise pglib.PgError(f"the servers differ: {sums}")


def show(bench, runs, lags):
    rows, entries = [], []
    for case in dict.fromkeys(one["case"] for one in runs):
        of = {side: [one for one in runs if (one["case"], one["side"]) == (case, side)] for side in SIDES}
        one = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
        reads = {side: statistics.median([run["reads"] for run in of[side]]) for side in SIDES}
        rows.append([case, f"{one['stock']:.3f}", f"{one['ours']:.3f}", f"{one['ratio']:.2f}",
                     f"{one['pair_min']:.2f}-{one['pair_max']:.2f}", report.number(reads["stock"]), report.number(reads["ours"])])
        entries.append((f"{case}, stock time / ours", one["ratio"], GOAL))
    if rows:
        report.table(f"Apply of {bench.args.changes:,} changes; {bench.args.io_method}, median of {bench.args.runs}",
                     ["case", "stock s", "ours s", "ratio", "of pairs", "stock reads", "our reads"], rows)
    if lags:
        report.table("Updates at a steady rate", ["side", "rows a second", "seconds", "behind at the end, s"],
                     [[lag["side"], f"{lag['rate']:,.0f}", f"{lag['seconds']:.0f}", f"{lag['behind']:.1f}"] for lag in lags])
    report.goals(entries)
