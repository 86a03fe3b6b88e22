"""foreign: a table partitioned over several servers, on a network without latency and on one that has some."""

import contextlib
import shlex

import etl
import pglib
import report
import sharding
from harness import SIDES, order
from measure import timed
from pgbench import pairs

HELP = "COPY into a table partitioned over servers that postgres_fdw reaches, and queries of it, on two networks"
RUNS = 7
NETWORKS = ("plain", "slow")
TRIPS = 200

# here() returns its argument. postgres_fdw does not know that the servers could do so, too.
PREPARE = """
CREATE EXTENSION dblink;
CREATE FUNCTION here(integer) RETURNS integer IMMUTABLE STRICT LANGUAGE internal AS 'int4up'"""

# load: enable_partitionwise_aggregate, the query, and of what {parts} is the union, for each partition
QUERIES = {
    "async scan": ("off", "SELECT count(*), sum(l_quantity) FROM lineitem", ""),
    "pushed aggregates": ("on", """
        SELECT count(*), sum(quantity)
        FROM (SELECT l_orderkey, sum(l_quantity) AS quantity FROM lineitem GROUP BY 1) orders""", ""),
    "partial aggregates": ("on", """
        SELECT l_returnflag, l_linestatus, count(*), sum(l_quantity) FROM lineitem GROUP BY 1, 2 ORDER BY 1, 2""", ""),
    "merge append": ("off", """
        SELECT count(*), sum(l_quantity) FROM (SELECT * FROM lineitem ORDER BY l_orderkey OFFSET 0) ordered""", ""),
    "union of groups": ("off", "SELECT count(*), sum(n) FROM ({parts}) parts",
                        "SELECT here(l_suppkey), count(*) AS n FROM {part} GROUP BY 1"),
    "union of sorts": ("off", "SELECT count(*), sum(l_partkey) FROM ({parts}) parts",
                       "(SELECT l_partkey FROM {part} ORDER BY here(l_partkey) LIMIT 1000)"),
    "mixed append": ("off", "SELECT count(*), sum(l_quantity) FROM mixed", ""),
}
LOADS = ("copy", *QUERIES)

# stock time / ours
GOALS = {("plain", "copy"): 1.0, ("slow", "copy"): 3.0, ("plain", "async scan"): 0.95, ("slow", "async scan"): 0.95}


def add_options(parser):
    parser.add_argument("--rows", type=int, default=300_000, help="of lineitem (%(default)s)")
    parser.add_argument("--shards", type=int, default=4, help="servers that hold them (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=100, help="rows that are sent at a time (%(default)s)")
    parser.add_argument("--round-trip", type=int, default=1000,
                        help="what the slow network adds to one, microseconds (%(default)s)")
    parser.add_argument("--network", choices=NETWORKS, action="append", help="only this; may be repeated")
    parser.add_argument("--load", choices=LOADS, action="append", help="only this; may be repeated")


def run(bench):
    args = bench.args
    settings = {"shared_buffers": "256MB", "fsync": "off", "max_parallel_workers_per_gather": 0}
    base = bench.data("pristine-unfinished")
    files = etl.input_files(bench, args.rows)
    runs, trips = [], {}
    try:
        bench.step(f"starting {args.shards} shards and two coordinators")
        pglib.Cluster(bench.installs["stock"], base).initdb()
        with sharding.running(bench.data(""), [bench.installs["stock"]] * args.shards,
                              bench.settings("stock", settings)) as shards, \
                bench.servers(base, settings) as clusters:
            setup = Setup(bench, clusters, shards, files)
            for network in args.network or NETWORKS:
                with setup.reached_by(network):
                    trips[network] = setup.round_trip_us()
                    bench.step(f"{network} network: a round trip takes {trips[network]:.0f} us")
                    for load in args.load or LOADS:
                        runs += measure(bench, setup, network, load)
    finally:
        pglib.remove(base)
    show(bench, runs, trips, setup.plans)


class Setup:
    """A session on each server, the tables, and what stock's COPY has put onto the shards."""

    def __init__(self, bench, clusters, shards, files):
        self.bench = bench
        self.shards = shards
        self.sessions = {side: clusters[side].session() for side in SIDES}
        self.plans = {}
        self.on_shards = [shard.session() for shard in shards]
        bench.facts["settings"]["shards"] = report.changed_settings(self.on_shards[0])
        self.copy = f"COPY lineitem FROM PROGRAM {pglib.quote(f'cat {shlex.join(map(str, files))}')} (FORMAT csv)"
        self._create_tables()
        bench.step(f"loading {bench.args.rows:,} rows")
        self.sessions["stock"].query(self.copy)
        self.contents = self._read_contents()
        if sum(int(rows) for rows, _ in self.contents) != bench.args.rows:
            raise pglib.PgError(f"the shards should hold {bench.args.rows:,} rows in all: {self.contents}")
        for session in self.sessions.values():
            session.query("INSERT INTO mixed_0 SELECT * FROM lineitem_0")
            session.query("VACUUM mixed_0; ANALYZE lineitem; ANALYZE mixed")

    def _create_tables(self):
        create_sql = etl.inputs.LINEITEM.create_sql
        for session in self.on_shards:
            session.query(create_sql.replace("CREATE", "CREATE UNLOGGED", 1))
        remote = [(number, "lineitem") for number in range(len(self.shards))]
        for session in self.sessions.values():
            session.query(PREPARE)
            sharding.introduce(session, self.shards, self.bench.args.batch_size)
            sharding.create_partitioned(session, "lineitem", create_sql, "l_orderkey", remote)
            sharding.create_partitioned(session, "mixed", create_sql.replace("lineitem", "mixed"), "l_orderkey",
                                        [None, *remote[1:]])

    def _read_contents(self):
        return [session.query("SELECT count(*), sum(hash_record_extended(l, 0)) FROM lineitem l")[0]
                for session in self.on_shards]

    @contextlib.contextmanager
    def reached_by(self, network):
        """Coordinators reach the shards by this network meanwhile."""
        with (sharding.far_away(self.shards, self.bench.args.round_trip) if network == "slow"
              else contextlib.nullcontext([shard.port for shard in self.shards])) as self.ports:
            for session in self.sessions.values():
                sharding.redirect(session, self.ports)
                session.query("SELECT count(*) FROM lineitem WHERE l_orderkey = 0")     # by which all are connected to
            yield

    def round_trip_us(self):
        """How long it takes a shard to answer the shortest of queries."""
        session = self.sessions["stock"]
        session.query(f"SELECT dblink_connect({pglib.quote(self.shards[0].address(self.ports[0]))})")
        seconds = timed(session, f"SELECT count(*) FROM generate_series(1, {TRIPS}) i, "
                                 "LATERAL dblink('SELECT ' || i) AS answer (i integer)")["seconds"]
        session.query("SELECT dblink_disconnect()")
        return seconds / TRIPS * 1e6

    def prepare_query(self, load):
        """Return the statement, to which both sides must give the same answer, and note their plans."""
        partitionwise, query, of_each = QUERIES[load]
        query = query.format(parts=" UNION ALL ".join(of_each.format(part=f"lineitem_{number}")
                                                      for number in range(len(self.shards))))
        answers = {}
        for side, session in self.sessions.items():
            session.query(f"SET enable_partitionwise_aggregate = {partitionwise}")
            answers[side] = session.query(query)
            self.plans[load, side] = [line for line, in session.query(f"EXPLAIN (COSTS OFF) {query}")]
        if answers["stock"] != answers["ours"]:
            raise pglib.PgError(f"{load}: the answers differ: {answers}")
        return query

    def run_copy(self, side):
        for session in self.on_shards:
            session.query("TRUNCATE lineitem")
        took = timed(self.sessions[side], self.copy)
        if self._read_contents() != self.contents:
            raise pglib.PgError(f"after COPY by {side} the shards do not hold the rows that they should")
        return took


def measure(bench, setup, network, load):
    args = bench.args
    runs = []
    query = None if load == "copy" else setup.prepare_query(load)
    for turn in range(1, args.runs + 1):
        pair = {side: timed(setup.sessions[side], query) if query else setup.run_copy(side) for side in order(turn)}
        runs += [{"network": network, "load": load, "turn": turn, "side": side, **pair[side]} for side in SIDES]
        bench.step(f"{network}, {load}, run {turn} of {args.runs}: "
                   + ", ".join(f"{side} {pair[side]['seconds']:.3f} s" for side in SIDES))
    return runs


def show(bench, runs, trips, plans):
    args = bench.args
    summary, rows = {}, []
    for network, load in dict.fromkeys((one["network"], one["load"]) for one in runs):
        of = {side: [one for one in runs if (one["network"], one["load"], one["side"]) == (network, load, side)]
              for side in SIDES}
        one = summary[network, load] = report.compare(*([run["seconds"] for run in of[side]] for side in SIDES))
        one["cpu_s"] = {side: report.median_of(of[side], "cpu_s") for side in SIDES}
        rows.append([load, network, *(f"{one[side]:.3f}" for side in SIDES), f"{one['ratio']:.2f}", pairs(one),
                     *(f"{one['cpu_s'][side]:.2f}" for side in SIDES)])
    report.table(f"lineitem, {args.rows:,} rows on {args.shards} shards, batches of {args.batch_size}; round trip "
                 + ", ".join(f"{network} {us:.0f} us" for network, us in trips.items()) + f"; median of {args.runs}",
                 ["load", "network", "stock s", "ours s", "ratio", "of pairs", "stock CPU s", "ours CPU s"], rows)
    report.goals([(f"{load}, {network}, stock time / ours", summary[network, load]["ratio"], wanted)
                  for (network, load), wanted in GOALS.items() if (network, load) in summary])
    bench.finish(summary={", ".join(key): one for key, one in summary.items()}, round_trips_us=trips,
                 plans={", ".join(key): plan for key, plan in plans.items()}, runs=runs)
