"""One round after the other: start, load, fault, recovery, check.

Owner:    Rounds, of the work directory, its template, the data directory of the current epoch, its server and disk.
Failure:  what was found, the plan, the server's log and the memory's log are kept, the data directory if that is
          wanted; and the next round begins with a new directory.
Hang:     is a failure, and the stacks of all processes are kept with it.
"""
import random
import shutil
import time

import disk
import faults
import logs
import plans
import settings
import standby
import wal
from checker import Checker, Result
from clients import Load
from cluster import WORK, Cluster, copy, make_template, pglib, wait_until
from memory import Memory
from pages import Pages
from schema import Schema
from wire import Hang, Lost, Refused

# How long a round may take to get to its fault, if the disk is slow.
PATIENCE = 20


class Rounds:
    def __init__(self, options, directory, report):
        self.options, self.directory, self.report = options, directory, report
        self.cluster = self.disk = self.schema = self.memory = None
        self.epoch = None

    def run(self, plan):
        """A round; returns its complaints."""
        result = Result()
        Cluster.stacks = self.place(plan) / 'hang'
        try:
            if self.epoch != plan.epoch:
                self.leave()
                self.enter(plan.epoch, plan.round)
            self.round(plan, result)
        except Hang as error:
            result.complaints.append(f'hang: {error}')
        except (pglib.PgError, Lost, Refused, OSError) as error:
            result.complaints.append(f'{type(error).__name__}: {error}')
        self.report.add(plan, result)
        if result.complaints:
            self.keep(plan, result)
        if result.complaints or plan.last:
            self.leave()
        return result

    # An epoch

    def enter(self, epoch, number):
        options = [f'--wal-segsize={epoch.segment}', '--data-checksums' if epoch.checksums else '--no-data-checksums']
        template = make_template(self.options.install, self.directory, options)
        place = pglib.make_directory(self.directory / 'epoch')
        if epoch.disk:
            seed = random.Random(f'{self.options.seed} disk {epoch.number}').randrange(1 << 31)
            self.disk = disk.FaultDisk(self.directory / 'mount', seed)
            self.disk.mount()
            data = self.directory / 'mount' / 'data'
        else:
            data = place / 'data'
        copy(template, data)
        if epoch.disk:
            self.disk.command('sync')
        self.cluster = Cluster(self.options.install, data, place / 'server.log')
        self.schema = Schema(random.Random(f'{self.options.seed} schema {epoch.number}'), epoch.clients)
        self.memory = Memory(place / 'memory.log')
        self.epoch, self.first, self.created = epoch, number, False

    def leave(self):
        """Stop and remove all that belongs to the epoch."""
        if self.cluster:
            self.cluster.close()
            pglib.remove(self.cluster.data)
        if self.disk:
            self.disk.unmount()
            pglib.remove(self.disk.files)
        shutil.rmtree(self.directory / 'epoch', ignore_errors=True)
        self.cluster = self.disk = self.epoch = None

    # A round

    def round(self, plan, result):
        rng = random.Random(f'{self.options.seed} fault {plan.round}')
        special = plan.fault in plans.SPECIAL
        # a core of a server that fails as it should is of no use
        self.cluster.cores = not plan.epoch.disk
        self.cluster.start(plan.settings)
        log = self.cluster.log_size()
        if not self.created:
            connection = self.cluster.connect()
            self.schema.create(connection)
            connection.close()
            self.created = True
        load = Load(self.cluster, self.schema, self.memory, f'{self.options.seed} load {plan.round}',
                    plan.epoch.clients, self.options.statements, special)
        try:
            if special:
                crash, emptied, dark = False, standby.run(self, plan, load, result), []
                killed = False
            else:
                crash, killed, dark = self.work_and_fail(plan, load, rng)
                emptied = crash
        finally:
            load.stop()
        self.report.statements += load.count
        self.report.twice += load.compared
        checked = self.cluster.log_size()
        # who has no disk may say what he likes
        parts = zip([log, *(end for _, end in dark)], [*(start for start, _ in dark), None])
        said = ''.join(self.cluster.read_log(start, end) for start, end in parts)
        crashed = logs.crashed(said)
        self.report.crashes += crashed
        if crash and not crashed:
            load.complain(f'the server has not noticed that it has crashed in {plan.fault}')
        if load.lost - load.terminated and not crashed and not logs.stopped(said):
            load.complain(f'connections of clients {sorted(load.lost - load.terminated)} were lost')
        result.complaints += load.complaints
        result.complaints += logs.complaints(said, killed, load.disk_fails, special)
        self.check(plan, result, crashed or emptied, plan.last)
        (end,), = self.cluster.query("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        result.complaints += wal.holes(self.cluster.data, plan.epoch.segment << 20, int(end))
        self.end(plan, result)
        result.complaints += logs.complaints(self.cluster.read_log(checked), plan.ending == 'immediate')

    def work_and_fail(self, plan, load, rng):
        """Returns whether the server must have crashed, whether processes were killed, and the parts of the log that were
        written without power.
        """
        _, crash, _ = faults.FAULTS[plan.fault]
        log = self.cluster.log_size()
        inflictor = faults.Inflictor(rng, self.cluster, load, self.disk)
        load.start()
        deadline = time.monotonic() + PATIENCE
        for count, client, terminate in plan.disturbances:
            load.wait_for(count, max(0, deadline - time.monotonic()))
            load.disturb(client, terminate)
        load.wait_for(plan.statements, max(0, deadline - time.monotonic()))
        getattr(inflictor, plan.fault)()
        load.stop()
        self.report.power_losses += len(inflictor.losses)
        self.report.volatile += sum(int(loss['lost']) for loss in inflictor.losses)
        crash = crash or bool(inflictor.losses)
        self.recover(crash, log)
        return crash, inflictor.killed, inflictor.dark

    def recover(self, crash, log):
        """Wait until the server serves again, or start it.  It has written to the log from there on."""
        def knows():
            said = self.cluster.read_log(log)
            return logs.crashed(said) or not (crash or 'PANIC:  ' in said) or not self.cluster.postmaster()
        # a postmaster goes on for a moment before it notices that a child is dead
        wait_until(knows, 'the postmaster notices a crash')
        if not self.cluster.postmaster() or not self.cluster.wait_for_recovery():
            self.cluster.start()

    def check(self, plan, result, crashed, deep=False):
        rng = random.Random(f'{self.options.seed} check {plan.round}')
        result.add(Checker(self.cluster, self.schema, self.memory, rng, deep).check(crashed))

    def end(self, plan, result):
        """Stop the server; after the last round of an epoch check all of it, also what torture does not know."""
        if plan.last:
            result.complaints += check_all(self.cluster)
            self.report.complete += 1
            return
        pages = Pages(self.cluster)
        unlogged = [name for name, in self.cluster.query(
            "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'")]
        self.cluster.stop(plan.ending)
        if plan.ending == 'immediate':
            for name in unlogged:
                self.memory.clear(name)
        else:
            result.complaints += pages.check()

    # What is left of a failure

    def place(self, plan):
        return WORK / 'kept' / f'seed-{self.options.seed}-round-{plan.round}'

    def keep(self, plan, result):
        place = pglib.make_directory(self.place(plan))
        command = self.options.command(self.first, plan.round)
        lines = [f'{plan}', f'settings: {settings.text(plan.settings)}', '', *result.complaints, '',
                 'repeat with', command]
        (place / 'complaints.txt').write_text('\n'.join(lines) + '\n')
        for path in (self.directory / 'epoch').glob('*.log'):
            shutil.copy(path, place)
        if self.options.keep and self.cluster:
            try:
                self.cluster.stop('immediate')
            except Hang:
                self.cluster.kill()
            pglib.remove(place / 'data')
            pglib.run_as_account(['cp', '-a', self.cluster.data, place / 'data'])
        what = result.complaints[0].strip().splitlines()[-1][:200]
        self.report.failures.append((plan.round, f'{plan.describe()}: {what}', command))


def check_all(cluster):
    """All relations, also those of the system; and when the server has stopped, all pages.  Yields complaints."""
    try:
        cluster.run_client('pg_amcheck', '--jobs=2', '--heapallindexed', '--rootdescend', '--checkunique', 'postgres')
    except pglib.PgError as error:
        yield str(error)
    pages = Pages(cluster)
    cluster.stop()
    yield from pages.check()
