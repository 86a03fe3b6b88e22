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
from backups import Backups
from checker import Checker, Result
from clients import Load
from cluster import WORK, Cluster, copy, make_template, pglib, wait_until
from companion import CATCH_UP
from follower import Follower
from memory import Memory
from pages import Pages
from schema import Schema
from subscriber import Subscriber
from wire import Hang, Lost, Refused

# How long a round may take to get to its fault, if the disk is slow.
PATIENCE = 20


class Rounds:
    def __init__(self, options, directory, report):
        self.options, self.directory, self.report = options, directory, report
        self.cluster = self.disk = self.schema = self.memory = self.companion = None
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
            result.complaints.append('; '.join([f'hang: {error}', *self.last_words()]))
        except (pglib.PgError, Lost, Refused, OSError) as error:
            result.complaints.append('; '.join([f'{type(error).__name__}: {error}', *self.last_words()]))
        self.report.add(plan, result)
        if result.complaints:
            self.keep(plan, result)
        if result.complaints or plan.last:
            self.leave()
        return result

    def last_words(self):
        """What the servers have said last."""
        for server in filter(None, [self.cluster, self.companion and self.companion.cluster]):
            yield from server.read_log().splitlines()[-1:]

    # An epoch

    def enter(self, epoch, number):
        self.first = number         # a round that fails to begin has one, too
        options = [f'--wal-segsize={epoch.segment}', '--data-checksums' if epoch.checksums else '--no-data-checksums']
        self.template = make_template(self.options.install, self.directory, options)
        place = pglib.make_directory(self.directory / 'epoch')
        if epoch.disk:
            seed = random.Random(f'{self.options.seed} disk {epoch.number}').randrange(1 << 31)
            self.disk = disk.FaultDisk(self.directory / 'mount', seed)
            self.disk.mount()
            data = self.directory / 'mount' / 'data'
        else:
            data = place / 'data'
        copy(self.template, data)
        if epoch.disk:
            self.disk.command('sync')
        self.cluster = Cluster(self.options.install, data, place / 'server.log')
        self.schema = Schema(random.Random(f'{self.options.seed} schema {epoch.number}'), epoch.clients)
        self.memory = Memory(place / 'memory.log')
        self.epoch, self.created = epoch, False
        if epoch.companion:
            kind = {'subscriber': Subscriber, 'standby': Follower, 'backup': Backups}[epoch.companion]
            self.companion = kind(self)
            # until then it sends what the other one does not have
            self.cluster.stop_limit = CATCH_UP

    def leave(self):
        """Stop and remove all that belongs to the epoch."""
        if self.companion:
            self.companion.leave()
        if self.cluster:
            self.cluster.close()
            pglib.remove(self.cluster.data)
        if self.disk:
            self.disk.unmount()
            pglib.remove(self.disk.files)
        shutil.rmtree(self.directory / 'epoch', ignore_errors=True)
        self.cluster = self.disk = self.epoch = self.companion = None

    # A round

    def round(self, plan, result):
        rng = random.Random(f'{self.options.seed} fault {plan.round}')
        special = plan.fault in plans.SPECIAL
        # a core of a server that fails as it should is of no use
        self.cluster.cores = not plan.epoch.disk
        self.cluster.start(plan.settings)
        log = self.cluster.log_size()
        if self.companion:
            self.companion.start(plan)
        if not self.created:
            connection = self.cluster.connect()
            self.schema.create(connection)
            connection.close()
            if self.companion:
                self.companion.join(plan, self.cluster, self.schema)
            self.created = True
        load = Load(self.cluster, self.schema, self.memory, f'{self.options.seed} load {plan.round}',
                    plan.epoch.clients, self.options.statements, special or plan.epoch.companion == 'backup',
                    savepoints=not plan.epoch.compared)
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
        said = self.cluster.read_parts(log, dark)
        crashed = logs.crashed(said)
        self.report.crashes += crashed
        if crash and not crashed:
            load.complain(f'the server has not noticed that it has crashed in {plan.fault}')
        if load.lost - load.terminated and not crashed and not logs.stopped(said):
            load.complain(f'connections of clients {sorted(load.lost - load.terminated)} were lost')
        result.complaints += load.complaints
        streaming = special or self.companion is not None
        result.complaints += logs.complaints(said, killed, load.disk_fails, streaming,
                                             backups=plan.epoch.companion == 'backup')
        self.check(plan, result, crashed or emptied, plan.last)
        if self.companion:
            self.companion.check(plan, result)
        (end,), = self.cluster.query("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint")
        result.complaints += wal.holes(self.cluster.data, plan.epoch.segment << 20, int(end))
        self.end(plan, result)
        result.complaints += logs.complaints(self.cluster.read_log(checked), plan.ending == 'immediate', streaming=streaming)

    def work_and_fail(self, plan, load, rng):
        """Returns whether the server must have crashed, whether processes were killed, and the parts of the log that were
        written without power.
        """
        _, crash, _ = faults.FAULTS[plan.fault]
        log = self.cluster.log_size()
        inflictor = faults.Inflictor(rng, self.cluster, load, self.disk)
        companion = plan.companion
        early = companion and companion.statements < plan.statements
        if companion:
            self.companion.load_begins(plan, load)
        load.start()
        deadline = time.monotonic() + PATIENCE
        for count, client, terminate in plan.disturbances:
            load.wait_for(count, max(0, deadline - time.monotonic()))
            load.disturb(client, terminate)
        if early:
            load.wait_for(companion.statements, max(0, deadline - time.monotonic()))
            self.companion.work_and_fail(plan, load)
        load.wait_for(plan.statements, max(0, deadline - time.monotonic()))
        load.struck = True
        getattr(inflictor, plan.fault)()
        load.stop()
        self.report.power_losses += len(inflictor.losses)
        self.report.volatile += sum(int(loss['lost']) for loss in inflictor.losses)
        crash = crash or bool(inflictor.losses)
        self.cluster.come_back(crash, log)
        if companion and not early:
            self.companion.work_and_fail(plan, load)
        if companion:
            self.companion.load_ended()
        return crash, inflictor.killed, inflictor.dark

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
        clusters = [self.cluster, self.companion and self.companion.cluster] if self.options.keep else []
        for cluster in filter(lambda cluster: cluster and cluster.data.exists(), clusters):
            try:
                cluster.stop('immediate')
            except Hang:
                cluster.kill()
            pglib.remove(place / cluster.data.name)
            pglib.run_as_account(['cp', '-a', cluster.data, place / cluster.data.name])
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
