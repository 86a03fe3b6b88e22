"""After the loads: are the tables right, do the indexes agree with them, and are both sides equal?

Each index answers twice: for its structure to amcheck, where amcheck knows its method, and for its contents, which
are read back through the index alone and compared by checksum with the table's own rows. Checksums are sums of row
hashes, so they do not depend on the order of rows.
"""

from dataclasses import dataclass

import prepare
from pglib import Cluster, PgError

SETTINGS = {"shared_buffers": "512MB", "work_mem": "64MB", "maintenance_work_mem": "256MB", "autovacuum": "off",
            "max_parallel_workers_per_gather": 0, "jit": "off", "max_wal_senders": 0, "timezone": "UTC"}

STRUCTURE = {
    "btree": ("heapallindexed", "bt_index_parent_check({index}, heapallindexed => true, "
              "rootdescend => false, checkunique => true)"),
    "gin": ("gin_index_check", "gin_index_check({index})"),
}
THROUGH_INDEX = "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = {bitmap};"
THROUGH_TABLE = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off;"
HASHES = "count(*), sum(hash_record_extended(ROW({columns}), 0))"


@dataclass
class Check:
    """The verdict on the table or one index of an input, over both sides."""
    name: str
    method: str
    size: int           # bytes, where awaiting was on
    structure: str      # what amcheck looked at
    contents: str
    checksums: dict
    faults: list


def verify(install, new, loaded_rows):
    """Return a Check for the table and each of its indexes."""
    with Cluster(install, prepare.DATA, SETTINGS) as cluster:
        template = cluster.session(new.name)
        # All rows of the template were written by one transaction, which tells them from those loaded later.
        base_rows, base_xmin = template.query(f"SELECT count(*), min(xmin::text) FROM {new.name}")[0]
        template.close()
        sides = prepare.in_parallel(cluster, [
            lambda side=side: verify_side(lambda: cluster.session(f"{new.name}_{side}"), new, base_xmin)
            for side in prepare.SIDES])
        checks = [compare(*pair) for pair in zip(*sides)]
        rows = int(base_rows) + loaded_rows
        if int(checks[0].checksums["on"].split()[0]) != rows:
            checks[0].faults.append(f"the table should have {rows:,} rows")
        prepare.drop_copies(cluster, new)
    return checks


def compare(off, on):
    """One verdict of those on both sides, which must have read the same."""
    faults = [f"awaiting off: {fault}" for fault in off.faults] + [f"awaiting on: {fault}" for fault in on.faults]
    if off.checksums["own"] != on.checksums["own"]:
        faults.append("the checksums of the two sides differ")
    return Check(on.name, on.method, on.size, on.structure, on.contents,
                 {"off": off.checksums["own"], "on": on.checksums["own"]}, faults)


def verify_side(connect, new, base_xmin):
    """Check the table and its indexes in the database to which `connect` opens sessions."""
    session = connect()
    checks = [check_table(session, new.name)]
    for index in new.indexes:
        check = check_contents(session, new.name, index, base_xmin)
        if index.method in STRUCTURE:
            check_structure(connect(), index, check)
        checks.append(check)
    session.close()
    return checks


def check_table(session, table):
    check = new_check(session, table, "heap", "verify_heapam", "all rows")
    corrupt = session.query(f"SELECT blkno, msg FROM verify_heapam('{table}')")
    check.faults += [f"verify_heapam: block {block}: {message}" for block, message in corrupt[:3]]
    check.checksums["own"] = checksum(session, f"SELECT {HASHES.format(columns='t.*')} FROM {table} t")
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
        contents = "index-only scan, all rows"
        through_index = through_table = f"SELECT {HASHES.format(columns=index.keys)} FROM {table}"
    else:
        contents = "{rows:,} lookups"
        # How many rows have each value of the loaded rows?
        values = f"SELECT DISTINCT {index.keys} AS v FROM {table} WHERE xmin <> '{base_xmin}'"
        through_index = (f"SELECT {HASHES.format(columns='v, n')} FROM (SELECT v, (SELECT count(*) FROM {table} t "
                         f"WHERE {index.condition}) AS n FROM ({values}) loaded) found")
        through_table = (f"SELECT {HASHES.format(columns='v, n')} FROM (SELECT v, count(*) AS n "
                         f"FROM (SELECT {index.keys} AS v FROM {table}) every WHERE v IN ({values}) GROUP BY v) found")

    check = new_check(session, index.name, index.method, f"(amcheck has none for {index.method})", contents)
    session.query(THROUGH_INDEX.format(bitmap="off" if index.method == "btree" else "on"))
    plan = "\n".join(row[0] for row in session.query("EXPLAIN " + through_index))
    if index.name not in plan or (index.method == "btree" and "Index Only Scan" not in plan):
        check.faults.append("the planner did not use the index")
    check.checksums["own"] = checksum(session, through_index)
    check.contents = contents.format(rows=int(check.checksums["own"].split()[0]))
    session.query(THROUGH_TABLE)
    if checksum(session, through_table) != check.checksums["own"]:
        check.faults.append("its contents differ from the table's")
    return check


def new_check(session, name, method, structure, contents):
    size = int(session.value(f"SELECT pg_relation_size('{name}')"))
    return Check(name, method, size, structure, contents, {}, [])


def checksum(session, query):
    """Number of rows and sum of their hashes."""
    return " ".join(session.query(query)[0])
