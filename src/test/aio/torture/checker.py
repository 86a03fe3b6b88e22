"""Compares a server with the memory of what its clients were told, and its indexes with its tables.

It trusts nothing: tables are read by sequential scans, and compared row by row; then each index is searched, and finds
what the table has, no more and no less, if it is used at all, which is seen to.  amcheck looks at the structure.

check() returns complaints instead of raising them, and goes on after each: what is wrong may show in several ways.
"""
import dataclasses

import lookups
from cluster import LIMIT, pglib
from indexes import INDEXES, Index, probes, sweep
from statements import difference
from wire import Lost, Refused

SEQUENTIALLY = {'enable_indexscan': 'off', 'enable_indexonlyscan': 'off', 'enable_bitmapscan': 'off',
                'enable_tidscan': 'off', 'enable_nestloop': 'off', 'max_parallel_workers_per_gather': '0'}
BY_INDEX = {'enable_seqscan': 'off', 'enable_hashjoin': 'off', 'enable_mergejoin': 'off', 'enable_sort': 'off',
            'enable_tidscan': 'off', 'enable_material': 'off', 'enable_memoize': 'off',
            'enable_incremental_sort': 'off', 'max_parallel_workers_per_gather': '0'}

# how many keys of an index are looked up, and how many in a deep check; amcheck looks for all keys of btree indexes
SAMPLES = {'btree': (50, 1000), 'hash': (200, 2000), 'gist': (100, 500), 'spgist': (100, 500), 'gin': (20, 100),
           'brin': (10, 50)}
# how many of the btree indexes are read from one end to the other, if the check is not deep
SWEEPS = 0.3
# operators that cannot be hashed cost a whole scan for each key
FEW_SAMPLES = 20

LEFT_OVERS = """
SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index JOIN pg_class c ON c.oid = indexrelid
 WHERE relnamespace = 'public'::regnamespace AND relkind = 'i' AND NOT indisvalid
UNION ALL
SELECT format('DROP TABLE %s', oid::regclass) FROM pg_class
 WHERE relnamespace = 'public'::regnamespace AND relname LIKE 'copy%' AND relkind = 'r'"""

# a bucket of a hash index that was being populated when the server crashed
UNFINISHED_SPLIT = """
SELECT FROM generate_series(1, pg_relation_size('{0}') / 8192 - 1) i, get_raw_page('{0}', i) page
 WHERE CASE WHEN hash_page_type(page) = 'bucket' THEN (hash_page_stats(page)).hasho_flag & 16 <> 0 END"""


@dataclasses.dataclass
class Result:
    complaints: list = dataclasses.field(default_factory=list)
    fresh: int = 0              # rows whose acknowledged state was checked for the first time
    compared: int = 0           # all rows
    indexes: int = 0
    lookups: int = 0            # keys that were looked up in an index

    def add(self, other):
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Checker:
    def __init__(self, cluster, schema, memory, rng, deep=False, must=None):
        self.cluster, self.schema, self.memory, self.rng, self.deep = cluster, schema, memory, rng, deep
        self.must = {} if must is None else {'must': must}
        self.result = Result()
        self.connection = None

    def complain(self, text):
        self.result.complaints.append(text)

    def check(self, crashed):
        """`crashed` tells that recovery has emptied unlogged tables."""
        try:
            self.connection = self.cluster.connect(f'-c statement_timeout={LIMIT}s')
            self.check_transactions(crashed)
            for table in self.schema.tables:
                self.attempt(self.check_table, table)
            self.attempt(self.check_audit)
            self.result.fresh = self.memory.checked()
            for statement, in self.query(LEFT_OVERS):
                self.attempt(self.query, statement)
            self.attempt(self.check_heaps)
            for row in self.query(INDEXES):
                self.attempt(self.check_index, Index(*row))
        except (Lost, Refused) as error:
            self.complain(f'the check cannot go on: {error}')
        finally:
            if self.connection:
                self.connection.close()
        return self.result

    def attempt(self, step, *arguments):
        try:
            step(*arguments)
        except Refused as error:
            what = getattr(arguments[0], 'name', arguments[0]) if arguments else step.__name__
            self.complain(f'{what}: {error}')
            self.query('ROLLBACK')

    def query(self, sql):
        return self.connection.rows(sql)

    def set(self, settings):
        for name, value in settings.items():
            self.query(f'SET LOCAL {name} = {value}')

    # Transactions and rows

    def check_transactions(self, crashed):
        for name, in self.query("SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"):
            if crashed:
                self.memory.clear(name)
        present = self.transactions()
        gids = {gid for gid, in self.query('SELECT gid FROM pg_prepared_xacts')}
        for complaint in self.memory.resolve_prepared(gids, present, self.finish):
            self.complain(complaint)
        for complaint in self.memory.resolve(self.transactions(), **self.must):
            self.complain(complaint)

    def transactions(self):
        return set(self.query('SELECT client, seq FROM txlog'))

    def finish(self, gid, commit):
        self.query(f"{'COMMIT' if commit else 'ROLLBACK'} PREPARED '{gid}'")

    def check_table(self, table):
        """Each row is there, once, in the right version, with the content that goes with it."""
        extra = self.query(f"SELECT attname FROM pg_attribute WHERE attrelid = '{table.name}'::regclass "
                           f"AND attname LIKE 'extra%' AND NOT attisdropped")
        wrong = ' OR '.join([table.differs(), *(f'{name} IS DISTINCT FROM {name.split("_")[1]}' for name, in extra)])
        self.query('BEGIN')
        self.set(SEQUENTIALLY)
        lines = self.connection.execute(f'COPY (SELECT id, version, ({wrong})::int FROM {table.name}) TO STDOUT').data
        self.query('COMMIT')
        found = [tuple(map(int, line.split(b'\t'))) for line in lines]
        self.result.compared += len(found)
        right = self.memory.table(table.name)
        rows = {row: version for row, version, _ in found}
        if rows != right:
            self.complain(f'{table.name}: {difference(rows.items(), right.items())}')
        if len(rows) != len(found):
            self.complain(f'{table.name}: {len(found) - len(rows)} rows are there twice')
        bad = [(row, version) for row, version, wrong in found if wrong]
        if bad:
            self.complain(f'{table.name}: {len(bad)} rows have not the content of their version, such as {bad[:3]}')
        for name, expression in table.ledgers().items():
            self.query('BEGIN')
            self.set(SEQUENTIALLY)
            rows = self.query(f'SELECT id, {expression} FROM {table.name} WHERE {expression} IS NOT NULL')
            self.query('COMMIT')
            right = self.memory.table(name)
            if sorted(rows) != sorted(right.items()):
                self.complain(f'{name}: {difference(rows, right.items())}')

    def check_audit(self):
        """Triggers have written about each row, in its transaction."""
        found = self.query('SELECT client, seq, count(*), sum(id * 31 + version * 7 + kind) '
                           'FROM audit FULL JOIN txlog USING (xid) WHERE id IS NOT NULL GROUP BY client, seq')
        found = {(client, seq): (number, total) for client, seq, number, total in found}
        if found != self.memory.notes:
            self.complain(f'audit: {difference(found.items(), self.memory.notes.items())}')

    # Heaps and indexes

    def check_heaps(self):
        for name, in self.query("SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND "
                                "relnamespace = 'public'::regnamespace ORDER BY 1"):
            for row in self.query(f"SELECT * FROM verify_heapam('{name}', check_toast => true) LIMIT 3"):
                self.complain(f'{name}: verify_heapam: {row}')

    def check_index(self, index):
        self.result.indexes += 1
        if index.method == 'btree':
            self.query(f"SELECT bt_index_parent_check('{index.name}', true, true, {index.unique})")
        elif index.method == 'gin':
            self.query(f"SELECT gin_index_check('{index.name}')")
        elif index.method == 'hash' and self.query(UNFINISHED_SPLIT.format(index.name)):
            # PostgreSQL 18 does not find all that is in such a bucket (README.md)
            self.query(f'REINDEX INDEX {index.name}')
        self.query('BEGIN')
        self.set(SEQUENTIALLY)
        kind, keys, tids = self.sample(index)
        if not keys:
            self.query('ROLLBACK')
            return
        self.result.lookups += len(keys)
        queries = [self.lookup(index, kind, keys, tids)]
        if index.method != 'btree' or self.deep or self.rng.random() < SWEEPS:
            queries += sweep(index, kind, keys[0])
        right = [self.query(query)[0] for query in queries]
        self.query('ROLLBACK')
        self.query('BEGIN')
        # Leave the planner no other index; and nobody is left for whom this one would be too young.
        self.query(f"UPDATE pg_index SET indisvalid = (indexrelid = '{index.name}'::regclass), indcheckxmin = false "
                   f"WHERE indrelid = '{index.table}'::regclass")
        self.set({**BY_INDEX, 'aio.lookup_ahead': self.rng.randint(1, 64)})
        if self.rng.random() < lookups.COLD:
            self.query(lookups.EVICT)
        for query, expected in zip(queries, right):
            plan = self.query(f'EXPLAIN (FORMAT JSON) {query}')[0][0]
            if f'"Index Name": "{index.name}"' not in plan:
                self.complain(f'{index.name} is not used, so it cannot be checked: {query[:300]}')
            found = self.query(query)[0]
            if found != expected:
                self.complain(f'{index.name} ({index.method}) and {index.table} differ: {found} by index, {expected} '
                              f'in the table (rows, sum, ...): {query[-300:]}')
        self.query('ROLLBACK')

    def sample(self, index):
        """The type of an index's first key, some keys of the table, as texts, and where they are."""
        few, many = SAMPLES[index.method]
        found = self.query(f'SELECT pg_typeof({index.key})::text, ({index.key})::text, ctid::text FROM {index.table} '
                           f'WHERE {index.condition()} AND {index.key} IS NOT NULL '
                           f'ORDER BY hashtid(ctid) # {self.rng.randrange(1 << 30)} LIMIT {many if self.deep else few}')
        if not found:
            return None, [], []
        kind = found[0][0]
        # each key once, or they would find whole tables again and again
        tids = {key: tid for _, key, tid in found}
        number = len(tids) if index.is_hashable() else FEW_SAMPLES
        return kind, list(tids)[:number], list(tids.values())[:number]

    def lookup(self, index, kind, keys, tids):
        """Count what is found for these keys: all rows, and those from which the keys are."""
        places = ', '.join(map(pglib.quote, tids))
        return (f'SELECT count(*), sum(hashtid(x.ctid)), count(*) FILTER (WHERE x.ctid = (ARRAY[{places}]::tid[])[probe]) '
                f'FROM {probes(kind, keys)} JOIN {index.table} x ON {index.has("probe_key", kind)} AND {index.condition()}')
