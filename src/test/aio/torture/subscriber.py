"""A server that subscribes to the tables of the one that clients use, and is mistreated as well.

It has the same schema, and indexes of its own from then on.  Whatever happens to either server: when the publisher has
recovered and the subscription has caught up, the tables of both have the same rows, and those are what clients remember.

Owner:     Rounds.  One subscriber belongs to an epoch; if the publisher is on a disk that fails, so is the subscriber, on
           another one.
Invariant: the subscription's workers are the only ones who write to it, so they meet no conflict.
"""
import random
import re
import threading
import types

import disk
import faults
import logs
import wal
from checker import SEQUENTIALLY, Checker
from cluster import LIMIT, Cluster, copy, pglib, wait_until
from pages import Pages

WORKER = re.compile('logical replication (parallel )?apply worker')
# A single worker does what several clients have done.
CATCH_UP = 4 * LIMIT

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


class Workers:
    """What an Inflictor knows of a load: here the clients are the subscription's workers."""

    def __init__(self, load, cluster):
        self.load, self.cluster = load, cluster
        self.disk_fails = self.dark = False
        self.stopping = threading.Event()

    @property
    def count(self):
        return self.load.count

    def wait_for(self, count, limit=LIMIT):
        self.load.wait_for(count, limit)

    @property
    def clients(self):
        return [types.SimpleNamespace(pid=pid) for pid, title in sorted(self.cluster.processes().items())
                if WORKER.search(title)]


class Subscriber:
    def __init__(self, rounds, template):
        self.rounds, self.disk = rounds, None
        seed, epoch = rounds.options.seed, rounds.epoch
        self.rng = random.Random(f'{seed} subscriber {epoch.number}')
        data = rounds.directory / 'epoch' / 'subscriber'
        if epoch.disk:
            self.disk = disk.FaultDisk(rounds.directory / 'other', self.rng.randrange(1 << 31))
            self.disk.mount()
            data = self.disk.directory / 'subscriber'
        copy(template, data)
        if self.disk:
            self.disk.command('sync')
        self.cluster = Cluster(rounds.options.install, data, rounds.directory / 'epoch' / 'subscriber.log')

    def leave(self):
        """Stop and remove all of it."""
        self.cluster.close()
        pglib.remove(self.cluster.data)
        if self.disk:
            self.disk.unmount()
            pglib.remove(self.disk.files)

    # A round

    def start(self, plan):
        """With the settings of this round; what it does from now on is of this round."""
        self.inflictor = None
        self.cluster.cores = not self.disk
        self.cluster.start(plan.subscriber.settings)
        self.log = self.cluster.log_size()

    def subscribe(self, publisher, schema):
        """Make the tables, while there are no rows yet, and the subscription."""
        tables = published(schema)
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

    def work_and_fail(self, plan, load):
        """Have its fault happen, if it has one, and recover."""
        if not plan.subscriber.fault:
            return
        rng = random.Random(f'{self.rounds.options.seed} subscriber fault {plan.round}')
        _, crash, _ = faults.FAULTS[plan.subscriber.fault]
        log = self.cluster.log_size()
        self.inflictor = faults.Inflictor(rng, self.cluster, Workers(load, self.cluster), self.disk)
        getattr(self.inflictor, plan.subscriber.fault)()
        self.crash = crash or bool(self.inflictor.losses)
        self.cluster.come_back(self.crash, log)

    def check(self, plan, result):
        """The publisher has been checked: when it has caught up, the subscriber has the same."""
        publisher, report = self.rounds.cluster, self.rounds.report
        self.catch_up(publisher)
        for complaint in differences(publisher, self.cluster, self.rounds.schema, report):
            result.complaints.append(f'the subscriber: {complaint}')
        for number, in self.cluster.query(CONFLICTS):
            if number:
                result.complaints.append(f'the subscriber: {number} conflicts')
        if 'aio.lookup_ahead' in plan.subscriber.settings:
            (number,), = self.cluster.query("SELECT coalesce(sum(started), 0) FROM pg_stat_aio WHERE kind = 'lookup'"
                                            " AND backend_type = 'background worker'")
            report.applied_ahead += number
        crashed = self.check_log(plan, result)
        if crashed or plan.last:
            report.subscriber_crashes += crashed
            rng = random.Random(f'{self.rounds.options.seed} subscriber check {plan.round}')
            # unlogged tables are not published
            found = Checker(self.cluster, self.rounds.schema, self.rounds.memory.fork(), rng, plan.last).check(crashed=True)
            found.complaints = [f'the subscriber: {complaint}' for complaint in found.complaints]
            result.add(found)
        (end,), = self.cluster.query("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        result.complaints += wal.holes(self.cluster.data, plan.epoch.segment << 20, int(end))
        pages = Pages(self.cluster)
        self.cluster.stop(plan.subscriber.ending)
        if plan.subscriber.ending != 'immediate':
            result.complaints += pages.check()

    def catch_up(self, publisher):
        (place,), = publisher.query("SELECT pg_logical_emit_message(false, 'torture', '', true)")
        wait_until(lambda: publisher.query(f"SELECT confirmed_flush_lsn >= '{place}' FROM pg_replication_slots")[0][0],
                   'the subscriber catches up', CATCH_UP, pause=0.1)

    def check_log(self, plan, result):
        """Complain of what its log says without a reason; returns whether it has recovered from a crash."""
        dark = self.inflictor.dark if self.inflictor else []
        said = self.cluster.read_parts(self.log, dark)
        crashed = logs.crashed(said)
        if self.inflictor and self.crash and not crashed:
            result.complaints.append(f'the subscriber has not noticed that it has crashed in {plan.subscriber.fault}')
        killed = self.inflictor and self.inflictor.killed
        fails = self.inflictor and self.inflictor.load.disk_fails
        result.complaints += (f'the subscriber: {line}' for line in logs.complaints(said, killed, fails, subscriber=True))
        return crashed


def published(schema):
    return ['txlog', 'audit', *(table.name for table in schema.tables if not table.unlogged)]


def rows(cluster, table, columns):
    """Rows as sorted texts, read one after the other."""
    connection = cluster.connect()
    try:
        connection.execute('BEGIN')
        for name, value in SEQUENTIALLY.items():
            connection.execute(f'SET LOCAL {name} = {value}')
        return sorted(connection.execute(f'COPY (SELECT {columns} FROM {table}) TO STDOUT').data)
    finally:
        connection.close()


def differences(publisher, subscriber, schema, report):
    """Compare each table row by row, in all columns that the publisher has; yields complaints."""
    for table in published(schema):
        names = publisher.query(f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 "
                                "AND NOT attisdropped ORDER BY attname")
        names = ', '.join(name for name, in names)
        key = 'id, version' if table not in ('txlog', 'audit') else 'xid, 0'
        columns = f'{key}, md5(ROW({names})::text)'
        theirs, mine = rows(publisher, table, columns), rows(subscriber, table, columns)
        report.replicated += len(theirs)
        if mine != theirs:
            few, many = sorted(set(theirs) - set(mine)), sorted(set(mine) - set(theirs))
            yield (f'{table} has {len(mine)} rows, and {len(theirs)} at the publisher: without {few[:3]}, and with '
                   f'{many[:3]}')
