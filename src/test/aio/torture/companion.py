"""A second server beside the one that clients use, which lives as long as the epoch and is mistreated as well.

It has what the first one has, by replication, logical (subscriber.py) or physical (follower.py), or is made of a backup
(backups.py).

Owner:     Rounds.  If the first server is on a disk that fails, so is its companion, on another one.
"""
import random
import re
import threading
import types

import disk
import faults
import logs
from checker import SEQUENTIALLY
from cluster import LIMIT, Cluster, pglib, wait_until
from pages import Pages

# Tables that are in the WAL as they are now, with all partitions.
LOGGED = """SELECT relname FROM pg_class c WHERE relkind IN ('r', 'p') AND relpersistence = 'p' AND NOT EXISTS
    (SELECT FROM pg_partition_tree(c.oid) JOIN pg_class p ON p.oid = relid WHERE p.relpersistence <> 'p')"""
# One process does what several clients have done.
CATCH_UP = 4 * LIMIT


class Workers:
    """What an Inflictor knows of a load: here the clients are the processes that replicate."""

    def __init__(self, load, cluster, titles):
        self.load, self.cluster, self.titles = load, cluster, titles
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
                if self.titles.search(title)]


class Companion:
    NAME = None         # what it is
    TITLES = None       # of the processes that replicate
    RECOVERS = None     # what its log says after a crash

    def __init__(self, rounds):
        self.rounds, self.disk = rounds, None
        seed, epoch = rounds.options.seed, rounds.epoch
        self.rng = random.Random(f'{seed} {self.NAME} {epoch.number}')
        data = rounds.directory / 'epoch' / self.NAME
        if epoch.disk:
            self.disk = disk.FaultDisk(rounds.directory / 'other', self.rng.randrange(1 << 31))
            self.disk.mount()
            data = self.disk.directory / self.NAME
        self.cluster = Cluster(rounds.options.install, data, rounds.directory / 'epoch' / f'{self.NAME}.log')

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
        self.cluster.start(plan.companion.settings)
        self.log = self.cluster.log_size()

    def load_begins(self, plan, load):
        """Clients are about to work."""

    def load_ended(self):
        """They have ended, and the first server has come back; it is going to be checked."""

    def work_and_fail(self, plan, load):
        """Have its fault happen, if it has one, and recover."""
        if not plan.companion.fault:
            return
        rng = random.Random(f'{self.rounds.options.seed} {self.NAME} fault {plan.round}')
        _, crash, _ = faults.FAULTS[plan.companion.fault]
        log = self.cluster.log_size()
        self.inflictor = faults.Inflictor(rng, self.cluster, Workers(load, self.cluster, self.TITLES), self.disk)
        getattr(self.inflictor, plan.companion.fault)()
        self.crash = crash or bool(self.inflictor.losses)
        self.cluster.come_back(self.crash, log)

    def compare(self, result):
        """The first server has been checked, and its companion has caught up: it has the same."""
        for complaint in differences(self.rounds.cluster, self.cluster, self.rounds.schema, self.rounds.report):
            result.complaints.append(f'the {self.NAME}: {complaint}')

    def check_log(self, plan, result, **explained):
        """Complain of what its log says without a reason; returns whether it has recovered from a crash."""
        dark = self.inflictor.dark if self.inflictor else []
        said = self.cluster.read_parts(self.log, dark)
        crashed = bool(self.RECOVERS.search(said))
        if self.inflictor and self.crash and not crashed:
            result.complaints.append(f'the {self.NAME} has not noticed that it has crashed in {plan.companion.fault}')
        killed = self.inflictor and self.inflictor.killed
        fails = self.inflictor and self.inflictor.load.disk_fails
        result.complaints += (f'the {self.NAME}: {line}' for line in logs.complaints(said, killed, fails, **explained))
        self.rounds.report.companions_crashed += crashed
        return crashed

    def stop(self, plan, result):
        pages = Pages(self.cluster)
        self.cluster.stop(plan.companion.ending)
        if plan.companion.ending != 'immediate':
            result.complaints += pages.check()


def replicated(schema):
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


def differences(first, companion, schema, report):
    """Compare each table row by row, in all columns that the first server has; yields complaints."""
    logged = {name for name, in first.query(LOGGED)}
    for table in filter(logged.__contains__, replicated(schema)):
        names = first.query(f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 "
                            "AND NOT attisdropped ORDER BY attname")
        names = ', '.join(name for name, in names)
        key = 'id, version' if table not in ('txlog', 'audit') else 'xid, 0'
        columns = f'{key}, md5(ROW({names})::text)'
        theirs, mine = rows(first, table, columns), rows(companion, table, columns)
        report.replicated += len(theirs)
        if mine != theirs:
            few, many = sorted(set(theirs) - set(mine)), sorted(set(mine) - set(theirs))
            yield (f'{table} has {len(mine)} rows, and {len(theirs)} at the other server: without {few[:3]}, and with '
                   f'{many[:3]}')


def position(cluster):
    """Where its WAL ends, all of which has been flushed."""
    return cluster.query("SELECT pg_logical_emit_message(false, 'torture', '', true)")[0][0]


def wait_for(server, condition, what):
    wait_until(lambda: server.query(f'SELECT {condition}')[0][0], what, CATCH_UP, pause=0.1)
