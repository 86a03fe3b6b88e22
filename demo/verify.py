"""In the end: are the tables right, do the indexes agree with them, and are both sides equal?

Each index answers twice: for its structure to amcheck, where amcheck knows its method, and for its contents, which
are read back through the index alone and compared by checksum with the table's own rows. Checksums are sums of row
hashes, so they do not depend on the order of rows.
"""

from dataclasses import dataclass, field, replace

import prepare
from pglib import Cluster, PgError

SETTINGS = {"shared_buffers": "512MB", "work_mem": "64MB", "maintenance_work_mem": "256MB", "autovacuum": "off",
            "max_parallel_workers_per_gather": 0, "jit": "off", "max_wal_senders": 0, "timezone": "UTC"}

STRUCTURE = {
    "btree": ("heapallindexed", "bt_index_parent_check({index}, heapallindexed => true, "
              "rootdescend => false, checkunique => true)"),
    "gin": ("gin_index_check", "gin_index_check({index})"),
}
# Index-only scans count as index scans; the methods that have none are read by bitmap scans.
THROUGH_BTREE = "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = off;"
THROUGH_OTHER = "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_bitmapscan = on;"
THROUGH_TABLE = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off;"
HASHES = "count(*), sum(hash_record_extended(ROW({columns}), 0))"


@dataclass
class Check:
    """The verdict on a table or index, on one side or on both."""
    name: str
    method: str
    size: int           # bytes
    structure: str      # what amcheck looked at
    contents: str = ""  # what the checksum is about
    rows: int = 0
    checksum: str = ""
    faults: list = field(default_factory=list)


def verify(install, new, growth):
    """Return a Check for the table, which has grown by so many rows, and each of its indexes and foreign keys."""
    with Cluster(install, prepare.DATA, SETTINGS) as cluster:
        template = cluster.session(new.name)
        # All rows of the template were written by one transaction, which tells them from those written later.
        base_rows, base_xmin = template.query(f"SELECT count(*), min(xmin::text) FROM {new.name}")[0]
        template.close()
        sides = prepare.in_parallel(cluster, [
            lambda side=side: verify_side(lambda: cluster.session(f"{new.name}_{side}"), new, base_xmin)
            for side in prepare.SIDES])
        checks = [compare(*pair) for pair in zip(*sides)]
        rows = int(base_rows) + growth
        if checks[0].rows != rows:
            checks[0].faults.append(f"the table should have {rows:,} rows")
        prepare.drop_copies(cluster, new)
    return checks


def compare(off, on):
    """One verdict of those on both sides, which must have read the same."""
    faults = [f"awaiting off: {fault}" for fault in off.faults] + [f"awaiting on: {fault}" for fault in on.faults]
    if (off.rows, off.checksum) != (on.rows, on.checksum):
        faults.append(f"the two sides differ: {off.rows:,} and {on.rows:,} rows, checksums {off.checksum} and "
                      f"{on.checksum}")
    return replace(on, faults=faults)


def verify_side(connect, new, base_xmin):
    """Check the table and its indexes in the database to which `connect` opens sessions."""
    session = connect()
    checks = [check_table(session, new.name)]
    for index in [*new.indexes, *new.keys]:
        check = check_contents(session, new.name, index, base_xmin)
        if index.method in STRUCTURE:
            check_structure(connect(), index, check)
        checks.append(check)
    checks += [check_parents(session, new.name, parent, base_xmin) for parent in new.parents]
    session.close()
    return checks


def check_table(session, table):
    check = new_check(session, table, "heap", "verify_heapam")
    corrupt = session.query(f"SELECT blkno, msg FROM verify_heapam('{table}')")
    check.faults += [f"verify_heapam: block {block}: {message}" for block, message in corrupt[:3]]
    check.rows, check.checksum = checksum(session, f"SELECT {HASHES.format(columns='t.*')} FROM {table} t")
    check.contents = "all rows"
    return check


def check_structure(session, index, check):
    """Ask amcheck, in a session of its own because what it finds it raises as an error."""
    check.structure, call = STRUCTURE[index.method]
    try:
        session.query("SELECT " + call.format(index=f"'{index.name}'"))
        session.close()
    except PgError as error:
        check.faults.append(str(error))


def check_contents(session, table, index, base_xmin):
    if index.method == "btree":
        through_index = through_table = f"SELECT {HASHES.format(columns=index.keys)} FROM {table}"
    else:
        # How many rows have each value of the new rows?
        values = (f"SELECT v FROM (SELECT DISTINCT {index.keys} AS v FROM {table} WHERE xmin <> '{base_xmin}') new "
                  f"ORDER BY hash_record_extended(ROW(v), 0) LIMIT {index.lookups}")
        through_index = (f"SELECT {HASHES.format(columns='v, n')} FROM (SELECT v, (SELECT count(*) FROM {table} t "
                         f"WHERE {index.condition}) AS n FROM ({values}) loaded) found")
        through_table = (f"SELECT {HASHES.format(columns='v, n')} FROM (SELECT v, count(*) AS n "
                         f"FROM (SELECT {index.keys} AS v FROM {table}) every WHERE v IN ({values}) GROUP BY v) found")

    check = new_check(session, index.name, index.method, f"(amcheck has none for {index.method})")
    session.query(THROUGH_BTREE if index.method == "btree" else THROUGH_OTHER)
    plan = "\n".join(row[0] for row in session.query("EXPLAIN " + through_index))
    if index.name not in plan or (index.method == "btree" and "Index Only Scan" not in plan):
        check.faults.append("the planner did not use the index")
    check.rows, check.checksum = checksum(session, through_index)
    check.contents = "index-only scan, all rows" if index.method == "btree" else f"{check.rows:,} lookups"
    session.query(THROUGH_TABLE)
    if checksum(session, through_table) != (check.rows, check.checksum):
        check.faults.append("its contents differ from the table's")
    return check


def check_parents(session, table, parent, base_xmin):
    """Has every new row its parent?"""
    check = Check(parent.constraint(table), "foreign key", 0, "(amcheck has none for foreign keys)",
                  f"new rows' {parent.name}")
    orphans = session.value(f"{THROUGH_TABLE} SELECT count(*) FROM {table} t WHERE xmin <> '{base_xmin}' AND NOT EXISTS "
                            f"(SELECT FROM {parent.name} WHERE {parent.key} = t.{parent.column})")
    if orphans != "0":
        check.faults.append(f"{orphans} rows refer to nothing")
    return check


def new_check(session, name, method, structure):
    size = int(session.value(f"SELECT pg_relation_size('{name}')"))
    return Check(name, method, size, structure)


def checksum(session, query):
    """Number of rows, and the sum of their hashes modulo 2^64."""
    rows, total = session.query(query)[0]
    return int(rows), f"{int(total or 0) % 2**64:016x}"
