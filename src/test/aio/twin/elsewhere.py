"""What is left elsewhere: after a crash, on a standby, and on a subscriber.

Both servers get the same, so what is compared is one server's standby with the other's, and so on.  A standby is made
when the first scenario asks for one, and follows from then on.  The subscriber is another database of the same server,
whose tables are made by the same statements; only t is published.
"""
import contextlib
import re
import types

import talk
import wire
from cluster import Cluster, pglib, wait_until
from standby import base_backup, follow

DATABASE = 'subscriber'
# messages whose order is that in which processes happen to start
BEGINNINGS = re.compile('LOG: .*(has started|has finished|will (stop|restart)|starting|background worker)')


class Standby:
    """Of one of the servers."""

    def __init__(self, primary, settings):
        data = primary.data.with_name(f'{primary.data.name}-standby')
        self.primary, self.cluster = primary, Cluster(primary.install, data, data.with_name(f'{data.name}.log'))
        base_backup(primary, self.cluster)
        follow(self.cluster, primary, types.SimpleNamespace(settings=settings))
        self.control = None

    def catch_up(self, search_path):
        """Until it has replayed what the primary has written; returns a connection."""
        (place,), = self.primary.query('SELECT pg_current_wal_flush_lsn()')
        wait_until(lambda: self.cluster.query(f"SELECT pg_last_wal_replay_lsn() >= '{place}'")[0][0],
                   'the standby catches up', pause=0.005)
        if not self.control or self.control.closed:
            self.control = self.cluster.connect(f'-c search_path={search_path}')
        return self.control

    def close(self):
        self.cluster.close()


class Subscriber:
    """The database that subscribes, of one of the servers."""

    def __init__(self, cluster, ours, schema):
        self.cluster, self.ours, self.schema = cluster, ours, schema
        self.control, self.log_start = None, 0

    def connect(self):
        if not self.control or self.control.closed:
            self.control = wire.Connection(f'{self.cluster.socket_dir}/.s.PGSQL.{self.cluster.port}', 120,
                                           f'-c search_path={self.schema}', database=DATABASE)
        return self.control

    def subscribe(self, options, settings):
        """From now on; settings are those of its worker, in our server."""
        control = self.connect()
        control.execute(f'ALTER DATABASE {DATABASE} RESET ALL')
        control.execute(f'ALTER DATABASE {DATABASE} SET log_min_messages = log')
        if self.ours:
            for name, value in settings.items():
                control.execute(f"ALTER DATABASE {DATABASE} SET {name} = '{value}'")
        self.log_start = self.cluster.log_size()
        self.cluster.query("SELECT pg_create_logical_replication_slot('twin', 'pgoutput')")
        control.execute(f"CREATE SUBSCRIPTION twin CONNECTION 'host={self.cluster.socket_dir} port={self.cluster.port} user=postgres "
                        f"dbname=postgres' PUBLICATION twin WITH (create_slot = false, slot_name = twin, disable_on_error = true, "
                        f"{options})")
        wait_until(lambda: not control.rows("SELECT FROM pg_subscription_rel WHERE srsubstate <> 'r'") or
                   control.rows('SELECT FROM pg_subscription WHERE NOT subenabled'), 'tables are copied', pause=0.005)

    def catch_up(self, marker):
        """Until what was written before the marker is applied, or the subscription has given up; then nothing is applied."""
        control = self.connect()
        wait_until(lambda: control.rows(f'SELECT FROM {self.schema}.marker WHERE n = {marker}') or
                   control.rows('SELECT FROM pg_subscription WHERE NOT subenabled'), 'the subscriber catches up', pause=0.005)
        control.execute('ALTER SUBSCRIPTION twin DISABLE')
        wait_until(lambda: not control.rows(f"SELECT FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker'"
                                            f" AND datname = '{DATABASE}'"), 'the workers end', pause=0.005)

    def log(self):
        """What its workers have complained of."""
        said, mine = [], False
        for line in self.cluster.read_log(self.log_start).splitlines():
            if not line.startswith('\t'):
                mine = line.startswith(f'{DATABASE}:logical replication') and not BEGINNINGS.search(line)
            if mine:
                said.append(talk.plain(line))
        return said

    def unsubscribe(self):
        control = self.connect()
        for statement in ('ALTER SUBSCRIPTION twin DISABLE', 'ALTER SUBSCRIPTION twin SET (slot_name = NONE)',
                          'DROP SUBSCRIPTION twin'):
            with contextlib.suppress(wire.Refused):
                control.execute(statement)
        # with those of tables that were being copied
        wait_until(lambda: not self.cluster.query('SELECT FROM pg_replication_slots WHERE active'), 'the slots are free', pause=0.005)
        self.cluster.query('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots')
