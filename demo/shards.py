"""The demo with several servers: lineitem in partitions on all of them, a server that dies, and rows per second.

Every second server is stock PostgreSQL. There are two coordinators, ours and a stock one, which reach the servers
through a relay, as if they were far away. Ours loads. What the servers should hold then is told by the stock one, which
has the same rows in a table of its own.
"""

import concurrent.futures
import contextlib
import itertools
import re
import threading

import inputs
import pglib
import report
import sharding
from inputs import LINEITEM
from measure import timed
from pglib import Cluster, PgError

WORK = inputs.WORK / "shards"
SIDES = ("stock", "ours")
MOST = 16               # servers
ROWS = 100_000          # of each load
BATCH_SIZE = 100
ROUND_TRIP_US = 1000
TURNS = 2               # of the loads by which rows per second are found
DEADLINE_S = 60         # for noticing that a server has died
SETTINGS = {"autovacuum": "off", "max_wal_size": "4GB", "timezone": "UTC"}

CONTENTS = "count(*), sum(l_quantity), sum(l_extendedprice), sum(hash_record_extended(t, 0))"

# title: enable_partitionwise_aggregate, the query
QUERIES = {
    "TPC-H query 1": ("off", """
        SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
               sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
               avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        FROM {table} WHERE l_shipdate <= date '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2"""),
    "the largest orders": ("on", """
        SELECT l_orderkey, sum(l_quantity), count(*)
        FROM {table} GROUP BY 1 HAVING sum(l_quantity) > 250 ORDER BY 2 DESC, 1 LIMIT 10"""),
}


def run(count, progress):
    """Return rows per second by number of servers and coordinator."""
    installs = {"stock": pglib.stock_install().require(), "ours": pglib.our_install().require()}
    inputs.fetch(LINEITEM, progress)
    with contextlib.ExitStack() as stack:
        with progress.step(f"starting servers: {count}, stock and ours by turns, and a coordinator of each kind"):
            kinds = [side for side, _ in zip(itertools.cycle(SIDES), range(count))]
            shards = stack.enter_context(sharding.running(WORK, [installs[kind] for kind in kinds], SETTINGS))
            clusters = {side: stack.enter_context(coordinator(side, installs[side])) for side in SIDES}
            ports = stack.enter_context(sharding.far_away(shards, ROUND_TRIP_US))
        if not LINEITEM.real:
            inputs.invent(LINEITEM, clusters["ours"].session(), progress)
        first, second, third = write_files()
        system = System(clusters, shards, kinds, ports, progress)
        system.load(first)
        system.ask()
        system.lose_a_server(second)
        system.load(second)
        system.print_contents()
        return system.throughput(third)


def print_rates(rates):
    report.table(f"Rows per second: COPY of {ROWS:,} rows in batches of {BATCH_SIZE}, {ROUND_TRIP_US} us further away",
                 ["servers", "stock coordinator", "our coordinator", "ratio"],
                 [[str(number), *(report.number(rate[side]) for side in SIDES), f"{rate['ours'] / rate['stock']:.1f}x"]
                  for number, rate in rates.items()])


@contextlib.contextmanager
def coordinator(side, install):
    data = WORK / f"coordinator-{side}"
    cluster = Cluster(install, data, SETTINGS)
    cluster.stop("immediate")       # of a run that was killed outright
    pglib.remove(data)
    try:
        with cluster.initdb("--no-sync"):
            yield cluster
    finally:
        pglib.remove(data)


def write_files():
    """The first rows of lineitem, in three files of equal length."""
    lines = itertools.chain.from_iterable(map(rows_of, LINEITEM.files("base")))
    directory = pglib.make_directory(WORK / "input")
    files = [directory / f"{number}.csv" for number in range(3)]
    for file in files:
        file.write_text("".join(itertools.islice(lines, ROWS)))
    return files


def rows_of(file):
    with open(file) as lines:
        next(lines)
        yield from lines


def copy_sql(table, file):
    return f"COPY {table} FROM {pglib.quote(file)} (FORMAT csv, {LINEITEM.copy_options})"


def expect(good, text):
    if not good:
        raise PgError(f"FAILED: {text}")


class System:
    """The servers, a session on each coordinator, and the checks."""

    def __init__(self, clusters, shards, kinds, ports, progress):
        self.clusters = clusters
        self.shards = shards
        self.kinds = kinds
        self.progress = progress
        self.sessions = {side: cluster.session() for side, cluster in clusters.items()}
        self.steps = [number for number in (1, 2, 4, 8, 16) if number < len(shards)] + [len(shards)]
        self.on_shards = [shard.session() for shard in shards]
        create_sql = LINEITEM.create_sql
        for session in self.on_shards:
            session.query(f"{create_sql}; CREATE TABLE timed (LIKE lineitem)")
        for session in self.sessions.values():
            sharding.introduce(session, shards, BATCH_SIZE)
            sharding.redirect(session, ports)
            sharding.create_partitioned(session, "lineitem", create_sql, "l_orderkey",
                                        [(number, "lineitem") for number in range(len(shards))])
            for count in self.steps:
                sharding.create_partitioned(session, f"timed_{count}", create_sql.replace("lineitem", f"timed_{count}"),
                                            "l_orderkey", [(number, "timed") for number in range(count)])
        self.sessions["stock"].query("CREATE TABLE expected (LIKE lineitem)")

    # -- what the servers hold ---------------------------------------------------------------------------------------

    def contents(self):
        """As each server itself tells it."""
        return [session.query(f"SELECT {CONTENTS} FROM lineitem t")[0] for session in self.on_shards]

    def expected(self):
        return [self.sessions["stock"].query(f"SELECT {CONTENTS} FROM expected t WHERE {self.belongs_to(number)}")[0]
                for number in range(len(self.shards))]

    def belongs_to(self, number):
        return f"satisfies_hash_partition('lineitem'::regclass, {len(self.shards)}, {number}, l_orderkey)"

    def check(self):
        for number, (found, wanted) in enumerate(zip(self.contents(), self.expected())):
            expect(found == wanted, f"shard {number} holds {found} and should hold {wanted}: {CONTENTS}")
            # OFFSET 0, or the condition would be for the server to judge, which does not know the partitioned table.
            strangers = self.sessions["ours"].value(
                f"SELECT count(*) FROM (SELECT l_orderkey FROM lineitem_{number} OFFSET 0) held "
                f"WHERE NOT {self.belongs_to(number)}")
            expect(strangers == "0", f"shard {number} holds {strangers} rows that belong to others")

    def print_contents(self):
        report.table("What the servers hold, each checked against the same rows in one table of stock PostgreSQL",
                     ["shard", "server", "rows", "quantity", "price", "checksum", ""],
                     [[str(number), kind, report.number(int(rows)), quantity, price, f"{int(checksum) % 2**64:016x}",
                       "equal"] for number, (kind, (rows, quantity, price, checksum))
                      in enumerate(zip(self.kinds, self.contents()))])

    def load(self, file):
        with self.progress.step(f"COPY of {ROWS:,} rows by our coordinator"):
            seconds = timed(self.sessions["ours"], copy_sql("lineitem", file))["seconds"]
        with self.progress.step("checking rows and sums on each server, and that it has only rows of its own"):
            self.sessions["stock"].query(copy_sql("expected", file))
            self.check()
        self.progress.note(f"{ROWS / seconds:,.0f} rows/s, and every row is where it belongs")

    # -- queries -----------------------------------------------------------------------------------------------------

    def ask(self):
        with self.progress.step("ANALYZE by both coordinators"):
            for session in self.sessions.values():
                session.query("ANALYZE lineitem")
        for title, (partitionwise, query) in QUERIES.items():
            wanted = self.sessions["stock"].query(query.format(table="expected"))
            query = query.format(table="lineitem")
            seconds = {}
            for side, session in self.sessions.items():
                session.query(f"SET enable_partitionwise_aggregate = {partitionwise}")
                expect(session.query(query) == wanted, f"{title}: a wrong answer by the coordinator of {side}")
                seconds[side] = timed(session, query)["seconds"]
            self.progress.note(f"{title}: {seconds['stock']:.3f} s by the stock coordinator, {seconds['ours']:.3f} s "
                               "by ours, and the answer is right")
            print(f"\n{title}, by our coordinator:")
            for line, in self.sessions["ours"].query(f"EXPLAIN (COSTS OFF) {query}"):
                print(f"  {line}")

    # -- a server that dies ------------------------------------------------------------------------------------------

    def lose_a_server(self, file):
        """Kill a server in the middle of a load: it must fail, and leave nothing on any of them."""
        before = self.contents()
        number = len(self.shards) // 2
        loader = self.clusters["ours"].session()
        observer = self.clusters["ours"].session()
        with self.progress.step(f"killing shard {number} in the middle of another COPY"):
            outcome = in_background(lambda: loader.query(f"\\set VERBOSITY verbose\n{copy_sql('lineitem', file)}"))
            rows = 0
            while rows < ROWS // 2:
                if outcome.done():
                    raise PgError(f"FAILED: the load ended before its middle was seen: {outcome.exception()}")
                rows = max((int(row) for row, in observer.query(
                    "SELECT tuples_processed FROM pg_stat_progress_copy")), default=0)
            self.shards[number].kill()
            try:
                error = outcome.exception(timeout=DEADLINE_S)
            except concurrent.futures.TimeoutError:
                error = f"it has not ended in {DEADLINE_S} s"
        said = re.search(r"ERROR:  (08...): (.*)", str(error))
        expect(said, f"the load should have ended with a connection failure: {error}")
        self.progress.note(f"killed after {rows:,} rows; the error is {said[1]}: {said[2]}")
        with self.progress.step(f"starting shard {number} again, and looking for rows of the load that has failed"):
            self.shards[number].start()
            self.on_shards[number] = self.shards[number].session()
            for left, (found, wanted) in enumerate(zip(self.contents(), before)):
                expect(found == wanted, f"shard {left} holds {found} and should hold {wanted}, as before: {CONTENTS}")
        self.progress.note("none is left, on none of the servers; now the same rows again")

    # -- rows per second ---------------------------------------------------------------------------------------------

    def throughput(self, file):
        """Rows per second by number of servers and coordinator."""
        rates = {}
        for count in self.steps:
            with self.progress.step(f"loading into {count} of the servers, by both coordinators"):
                seconds = dict.fromkeys(SIDES, 0)
                for turn in range(TURNS):
                    # Who goes first changes with each turn, or whatever favours the second would favour one side.
                    for side in SIDES if turn % 2 == 0 else SIDES[::-1]:
                        for session in self.on_shards:
                            session.query("TRUNCATE timed")
                        seconds[side] += timed(self.sessions[side], copy_sql(f"timed_{count}", file))["seconds"]
                        loaded = sum(int(session.value("SELECT count(*) FROM timed")) for session in self.on_shards)
                        expect(loaded == ROWS, f"COPY by the coordinator of {side} has loaded {loaded:,} rows")
                rates[count] = {side: TURNS * ROWS / seconds[side] for side in SIDES}
        return rates


def in_background(work):
    """Call a function in a thread that nobody has to wait for."""
    outcome = concurrent.futures.Future()

    def call():
        try:
            outcome.set_result(work())
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return outcome
