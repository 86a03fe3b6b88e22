"""Statements that look up a key for each row that they write: upserts, and loads of rows that refer to others.

Each of these rows has to be looked up before it is written, or its parents afterwards, and all indexes of the table get
entries. So lookups ahead, awaited index inserts and checks of foreign keys without a query are off on the one side and on
on the other.
"""

from statements import Chapter, Statement

# The slice has new flights; as many others, which are there already, left on time after all.
HALF_THERE = """
CREATE TEMP TABLE arrived AS
    SELECT * FROM flights ORDER BY hashtextextended(concat(carrier, flight, time_hour), {number}) LIMIT {rows};
ALTER TABLE arrived DROP COLUMN tags;
UPDATE arrived SET dep_time = sched_dep_time, dep_delay = 0;
COPY arrived FROM {file};
CREATE TABLE keys AS
    SELECT * FROM arrived ORDER BY hashtextextended(concat(carrier, flight, time_hour), {number} + 1);
ANALYZE keys"""

STATEMENTS = {
    "flights": [
        Statement("upsert of 10,000 flights, half are there",
                  "INSERT INTO flights SELECT * FROM keys ON CONFLICT (carrier, flight, year, month, day, hour) "
                  "DO UPDATE SET dep_time = excluded.dep_time, dep_delay = excluded.dep_delay",
                  "flights_key", HALF_THERE),
    ],
    "lineitem": [
        Statement("COPY of 10,000 lines that refer to orders, parts, suppliers", "COPY lineitem FROM {file}"),
    ],
}

CHAPTER = Chapter(
    name="keys",
    heading="Upserts and foreign keys",
    caption="Statements that look up a key for each row that they write, nothing in memory, direct I/O",
    switch="awaiting and lookups ahead",
    difference="aio.await_index_inserts and aio.direct_foreign_key_checks, off or on, and aio.lookup_ahead, 0 or the default",
    about="INSERT ... ON CONFLICT DO UPDATE looks for the flight of the same carrier, number and hour, and updates it, or "
          "inserts a new one. An updated column is indexed, so both need entries in all indexes. COPY of lines looks up "
          "the order, the part and the supplier of each, and inserts entries into the five indexes. With awaiting and "
          "lookups ahead off, all these pages are read one after the other, and each foreign key is checked by a query.",
    settings={"off": "SET aio.await_index_inserts = off; SET aio.lookup_ahead = 0; SET aio.direct_foreign_key_checks = off",
              "on": ""},
    statements=STATEMENTS)
