"""A server that subscribes to the tables of the one that clients use, and is mistreated as well.

It has the same schema, and indexes of its own from then on.  Whatever happens to either server: when the publisher has
recovered and the subscription has caught up, the tables of both have the same rows, and those are what clients remember.

Invariant: the subscription's workers are the only ones who write to it, so they meet no conflict.
"""
import random
import re

import wal
from checker import Checker
from cluster import copy
from companion import Companion, position, replicated, wait_for

# Columns that the publisher may get, and has DEFAULTs for (maintenance.py).
EXTRA = ', '.join(f'ADD COLUMN extra_{number} int DEFAULT {number}' for number in range(4))
# Have the rows of a child searched for in its parent, as on the publisher.
CHECK_KEYS = """DO $$
DECLARE
    statement text;
BEGIN
    FOR statement IN SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname)
        FROM pg_trigger JOIN pg_constraint c ON c.oid = tgconstraint WHERE contype = 'f' AND tgrelid = conrelid
    LOOP
        EXECUTE statement;
    END LOOP;
END$$"""
CONFLICTS = """SELECT confl_insert_exists + confl_update_origin_differs + confl_update_exists + confl_update_missing
    + confl_delete_origin_differs + confl_delete_missing + confl_multiple_unique_conflicts
    FROM pg_stat_subscription_stats WHERE subname = 'sub'"""


class Subscriber(Companion):
    NAME = 'subscriber'
    TITLES = re.compile('logical replication (parallel )?apply worker')
    RECOVERS = re.compile('automatic recovery in progress|reinitializing')

    def __init__(self, rounds):
        super().__init__(rounds)
        copy(rounds.template, self.cluster.data)
        if self.disk:
            self.disk.command('sync')

    def join(self, plan, publisher, schema):
        """Make the tables, while there are no rows yet, and the subscription."""
        tables = replicated(schema)
        # not parallel: PostgreSQL 18 may then apply a transaction twice (README.md)
        root, streaming = self.rng.choice(['on', 'off']), self.rng.choice(['off', 'on'])
        # generated columns are not published, and must not be in what identifies a row
        full = [table for table in schema.tables if table.name in tables and not table.partitioned and
                not any(column.source == 'generated' for column in table.columns) and self.rng.random() < 0.4]
        schema.published = True
        mine, theirs = self.cluster.connect(), publisher.connect()
        schema.create(mine)
        if 'aio.lookup_ahead' in self.cluster.settings:
            mine.execute('CREATE EXTENSION aio')
        for table in schema.tables:
            mine.execute(f'ALTER TABLE {table.name} {EXTRA}')
        if self.rng.random() < 0.7:
            mine.execute(CHECK_KEYS)
        for table in full:
            theirs.execute(f'ALTER TABLE {table.name} REPLICA IDENTITY FULL')
        theirs.execute(f'CREATE PUBLICATION pub FOR TABLE {", ".join(tables)} WITH (publish_via_partition_root = {root})')
        mine.execute(f"CREATE SUBSCRIPTION sub CONNECTION 'host={publisher.socket_dir} port={publisher.port} user=postgres "
                     f"dbname=postgres' PUBLICATION pub WITH (copy_data = off, streaming = {streaming}, "
                     f"two_phase = {self.rng.choice(['on', 'off'])}, binary = {self.rng.choice(['on', 'off'])})")
        mine.close()
        theirs.close()

    def check(self, plan, result):
        """The publisher has been checked: when it has caught up, the subscriber has the same."""
        publisher, report = self.rounds.cluster, self.rounds.report
        wait_for(publisher, f"confirmed_flush_lsn >= '{position(publisher)}' FROM pg_replication_slots",
                 'the subscriber catches up')
        self.compare(result)
        for number, in self.cluster.query(CONFLICTS):
            if number:
                result.complaints.append(f'the subscriber: {number} conflicts')
        if 'aio.lookup_ahead' in plan.companion.settings:
            (number,), = self.cluster.query("SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'"
                                            " AND backend_type = 'background worker'")
            report.applied_ahead += number
        crashed = self.check_log(plan, result, subscriber=True)
        if crashed or plan.last:
            rng = random.Random(f'{self.rounds.options.seed} subscriber check {plan.round}')
            # unlogged tables are not published
            found = Checker(self.cluster, self.rounds.schema, self.rounds.memory.fork(), rng, plan.last).check(crashed=True)
            found.complaints = [f'the subscriber: {complaint}' for complaint in found.complaints]
            result.add(found)
        (end,), = self.cluster.query("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        result.complaints += wal.holes(self.cluster.data, plan.epoch.segment << 20, int(end))
        self.stop(plan, result)
