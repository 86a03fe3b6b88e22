"""A standby of the server that clients use, which is mistreated as well.

Whatever happens to either server: when the primary has recovered and the standby has replayed all of it, the tables of
both have the same rows, and amcheck finds nothing wrong with the standby's.  At the end of the epoch the standby is
promoted and checked as the primary is, against the memory of clients, with its indexes.  In some epochs each record of
WAL has the pages that it has changed, and recovery, of either server, compares them (wal_consistency_checking).

Invariant: nobody writes to it, nor holds anything up.
"""
import random
import re

from checker import Checker
from cluster import pglib, wait_until
from companion import Companion, position, wait_for
from standby import base_backup, end_recovery, program

SLOT = 'follower'


class Follower(Companion):
    NAME = 'standby'
    TITLES = re.compile('walreceiver')
    RECOVERS = re.compile('database system was interrupted|reinitializing')

    def join(self, plan, primary, schema):
        """The primary runs, and has a schema: become its standby."""
        primary.query(f"SELECT pg_create_physical_replication_slot('{SLOT}', true)")
        base_backup(primary, self.cluster)
        signal = self.cluster.data / 'standby.signal'
        signal.touch()
        pglib.give_to_account(signal)
        if self.disk:
            self.disk.command('sync')
        self.start(plan)

    def start(self, plan):
        if not self.cluster.data.exists():
            return
        primary = self.rounds.cluster
        plan.companion.settings.update({
            'primary_conninfo': f'host={primary.socket_dir} port={primary.port} user=postgres', 'primary_slot_name': SLOT})
        super().start(plan)
        # pg_ctl does not wait until its state is consistent
        wait_until(self.cluster.accepts, 'the standby accepts connections')

    def check(self, plan, result):
        """The primary has been checked: when it has replayed all, the standby has the same."""
        place = position(self.rounds.cluster)
        wait_for(self.cluster, f"pg_last_wal_replay_lsn() >= '{place}'", 'the standby catches up')
        self.compare(result)
        if self.check_log(plan, result, streaming=True) or plan.last:
            try:
                # A standby takes transactions that a crash of the primary has ended for running, while there is an older one
                # that is prepared.  amcheck would look for values of rows that they may see, which VACUUM has removed.
                self.cluster.run_client('pg_amcheck', '--heapallindexed', '--checkunique', '--exclude-toast-pointers', 'postgres')
            except pglib.PgError as error:
                result.complaints.append(f'the standby: {error}')
        if plan.last:
            program(self.cluster, 'pg_ctl', '-s', '-W', 'promote')
            end_recovery(self.cluster)
            rng = random.Random(f'{self.rounds.options.seed} standby check {plan.round}')
            found = Checker(self.cluster, self.rounds.schema, self.rounds.memory.fork(), rng, True).check(crashed=True)
            found.complaints = [f'the standby: {complaint}' for complaint in found.complaints]
            result.add(found)
        self.stop(plan, result)
