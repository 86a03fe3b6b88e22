"""Statements that find their rows by index, with lookups ahead of need off and on."""

from statements import Chapter, Statement

# Leave the planner nested loops that look up an index, and scans in its order.
PLAN = ("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
        "SET enable_sort = off; SET enable_memoize = off; SET enable_material = off; "
        "SET max_parallel_workers_per_gather = 0")


def some(values, count):
    """Make keys of some of these values, others for each number, in no order."""
    return (f"CREATE TABLE keys AS SELECT v AS key FROM ({values}) v (v) "
            f"ORDER BY hashtextextended(v::text, {{number}}) LIMIT {count}; ANALYZE keys")


PLANES = "SELECT DISTINCT tailnum FROM flights WHERE tailnum IS NOT NULL"
PARTS = "SELECT generate_series(1, 200000)"

STATEMENTS = {
    "flights": [
        Statement("all flights of 100 planes",
                  "SELECT f.* FROM keys JOIN flights f ON f.tailnum = key", "flights_tailnum", some(PLANES, 100)),
        Statement("flights by number, in its order",
                  "SELECT row_number() OVER (), f.* FROM (SELECT * FROM flights WHERE flight BETWEEN 150 * {number} "
                  "AND 150 * {number} + 69 ORDER BY flight, time_hour) f", "flights_flight"),
    ],
    "lineitem": [
        Statement("all lines of 300 parts",
                  "SELECT l.* FROM keys JOIN lineitem l ON l.l_partkey = key", "lineitem_part_supp", some(PARTS, 300)),
        Statement("1,000 parts: which were never returned?",
                  "SELECT key FROM keys WHERE NOT EXISTS (SELECT FROM lineitem WHERE l_partkey = key AND "
                  "l_returnflag = 'R')", "lineitem_part_supp", some(PARTS, 1000)),
        Statement("lines of 3 days, in the order of days and parts",
                  "SELECT row_number() OVER (), l.* FROM (SELECT * FROM lineitem WHERE l_shipdate BETWEEN "
                  "date '1995-01-01' + 10 * {number} AND date '1995-01-03' + 10 * {number} "
                  "ORDER BY l_shipdate, l_partkey) l", "lineitem_ship_part"),
        Statement("UPDATE of all lines of 50 parts",
                  "UPDATE lineitem l SET l_receiptdate = l_receiptdate + 1 FROM keys WHERE l.l_partkey = key",
                  "lineitem_part_supp", some(PARTS, 50)),
        Statement("DELETE of all lines of 300 parts",
                  "DELETE FROM lineitem l USING keys WHERE l.l_partkey = key", "lineitem_part_supp", some(PARTS, 300)),
    ],
}

CHAPTER = Chapter(
    name="lookups",
    heading="Lookups",
    caption="Statements that find their rows by index, nothing in memory, direct I/O",
    switch="lookups ahead",
    difference="aio.lookup_ahead, 0 or the default",
    about="Statements that find their rows by index, in nested loops or in the order of the index. Each row may need a "
          "page of the index and a page of the table, which are not in memory. With lookups ahead off, they are read one "
          "after the other; with lookups ahead on, while rows before them are joined. The planner was left "
          "no other way than by the index.",
    settings={"off": f"{PLAN}; SET aio.lookup_ahead = 0", "on": PLAN},
    statements=STATEMENTS)
