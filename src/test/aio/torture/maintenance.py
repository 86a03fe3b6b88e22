"""A client that does maintenance as well: indexes come and go, tables are vacuumed, rewritten and altered.

It does not wait long for locks.  What it leaves unfinished, invalid indexes, it removes later, or the checker does.
Invariant: nothing that it does changes rows, so the memory need not know of it.
"""
import re

from clients import Client
from schema import index_statement
from wire import Refused

FEW_INDEXES, MANY_INDEXES = 12, 32
# They read rows that are dead, and their TOAST data may have been vacuumed: PostgreSQL's bug #18351.
READS_THE_DEAD = re.compile('CREATE INDEX|REINDEX|VACUUM FULL|CLUSTER')

# What can be dropped: indexes of tables or single partitions that belong to no constraint.
INDEXES = """SELECT relname, indisvalid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'i' AND NOT relispartition AND NOT indisprimary
    AND relname ~ '^t[0-9]' AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid) ORDER BY 1"""


class Maintainer(Client):
    lock_timeout = '700ms'

    def work(self, rng):
        if rng.random() < 0.5:
            return super().work(rng)
        tasks = [self.index, self.index, self.index, self.reindex, self.vacuum, self.vacuum, self.rewrite, self.alter,
                 self.clean, lambda rng: 'CHECKPOINT', lambda rng: 'SELECT pg_switch_wal()']
        sql = ''
        try:
            sql = rng.choice(tasks)(rng)
            if sql:
                self.execute(sql)
        except Refused as error:
            if not (READS_THE_DEAD.match(sql) and 'missing chunk number' in str(error)):
                self.judge(error, '55006')
        return True

    def some_table(self, rng, owned=False):
        """(table, name of the table or one of its partitions)"""
        table = rng.choice([table for table in self.tables if not owned or table.role in ('private', 'unlogged')])
        return table, rng.choice(table.partitions or [table.name])

    def index(self, rng):
        indexes = self.rows(INDEXES)
        invalid = [name for name, valid in indexes if not valid]
        if invalid:
            return f'DROP INDEX {invalid[0]}'
        if len(indexes) > MANY_INDEXES or len(indexes) > FEW_INDEXES and rng.random() < 0.4:
            return f'DROP INDEX {rng.choice(["", "CONCURRENTLY "])}{rng.choice(indexes)[0]}'
        table, leaf = self.some_table(rng)
        return index_statement(rng, table, f'{leaf}_m{rng.randrange(10 ** 9)}', on=leaf,
                               concurrently=rng.random() < 0.4)

    def reindex(self, rng):
        # not TABLE CONCURRENTLY: after that sessions of PostgreSQL 18 may find no valid index of a TOAST table any more
        indexes = [name for name, valid in self.rows(INDEXES) if valid]
        if indexes and rng.random() < 0.7:
            return f'REINDEX INDEX {rng.choice(["", "CONCURRENTLY "])}{rng.choice(indexes)}'
        return f'REINDEX TABLE {self.some_table(rng)[1]}'

    def vacuum(self, rng):
        options = rng.choice(['', '(FREEZE)', '(INDEX_CLEANUP ON)', '(INDEX_CLEANUP ON, PARALLEL 2)', '(TRUNCATE)',
                              '(DISABLE_PAGE_SKIPPING)', '(ANALYZE)'])
        return f'VACUUM {options} {self.some_table(rng)[1]}'

    def rewrite(self, rng):
        name = self.some_table(rng, owned=True)[1]
        return rng.choice([f'VACUUM FULL {name}', f'CLUSTER {name} USING {name}_pkey'])

    def alter(self, rng):
        table, name = self.some_table(rng)
        if table.role == 'private' and rng.random() < 0.6:
            # what is published is logged
            kinds = ['LOGGED'] if self.load.schema.published else ['LOGGED', 'UNLOGGED']
            return f'ALTER TABLE {name} SET {rng.choice(kinds)}'
        if rng.random() < 0.5:
            return f'ALTER TABLE {name} SET (fillfactor = {rng.randint(20, 100)})'
        number = rng.randrange(4)
        return f'ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS extra_{number} int DEFAULT {number}'

    def clean(self, rng):
        """What autovacuum does for some kinds of indexes."""
        method, function = rng.choice([('gin', 'gin_clean_pending_list'), ('brin', 'brin_summarize_new_values')])
        return (f"SELECT {function}(indexrelid) FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a "
                f"ON a.oid = relam WHERE amname = '{method}' AND relkind = 'i' AND indisvalid")
