"""Base backups of the server that clients use, by several connections, one after the other while it is mistreated.

Whatever happens to the server, or to a process of pg_basebackup: a backup that has succeeded is what its manifest says, and
a server that is made of it has all that was acknowledged before its end, and no part of anything else; it is checked as
the first server is, against the memory of clients, with its indexes.  A backup that has failed leaves nothing, unless it
was pg_basebackup itself that was killed, and no process.  When the server has recovered, the next one succeeds; nobody
changes anything then, so it has the same rows.  Incremental ones are combined with those that they are made upon.

Owner:     the thread that takes backups, of their directories until the load has ended.
Invariant: backups fail only while the server crashes, stops or cannot read, or if somebody kills or terminates what works
           for them, or their disk fails.
"""
import contextlib
import functools
import os
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
import traceback

import logs
from cluster import LIMIT, Cluster, begin, copy, ended, hang, parents, pglib, title, wait_until
from companion import Companion
from pages import Pages
from standby import check_copy, durable, end_recovery
from wire import Hang

# What happens to those who take a backup, by weight, and to where they put it, if that can be.  Whoever sends one is killed
# with the backends (faults.py).
FAULTS = {'kill_client': 3, 'kill_child': 4, 'terminate_sender': 2}
DISK_FAULTS = {'break_disk': 3}
# how many there are in a round at most, and how many are combined
MANY, CHAIN = 5, 3
# what a server that cannot be asked for one says, or nobody
REFUSES = re.compile('connection to server .* failed: (FATAL:  the database system is|No such file or|Connection refused)')


class Backup:
    """One, or an attempt."""

    def __init__(self, directory, upon, options, before):
        self.directory, self.options = directory, options
        self.upon = upon            # what it needs, the full one first
        self.before = before        # transactions that were acknowledged when it began
        self.struck = self.killed = False       # was one of its processes, or the first of them killed?
        self.receiver = None        # the one that receives WAL, if its parent was killed
        self.status, self.said = None, ''
        self.after = False          # has the fault of the server begun when it ended?

    def name(self):
        return f'a backup ({" ".join(option.partition("=/")[0] for option in self.options)})'

    @functools.cached_property
    def end(self):
        """Where the WAL ends that it needs to be consistent."""
        manifest = (self.directory / 'backup_manifest').read_text()
        high, low = re.search(r'"End-LSN": "([0-9A-F]+)/([0-9A-F]+)"', manifest).groups()
        return (int(high, 16) << 32) + int(low, 16)

    def must(self, transaction):
        """Was it acknowledged early enough for the backup to have it?"""
        known = transaction.fate == 'durable' and transaction.lsn is not None and transaction.lsn <= self.end
        return known or (transaction.client, transaction.seq) in self.before


class Backups(Companion):
    NAME = 'backup'

    def __init__(self, rounds):
        super().__init__(rounds)
        self.program = str(self.cluster.install.program('pg_basebackup'))
        self.notes = rounds.directory / 'epoch' / 'backups.log'
        self.number, self.chain = 0, []
        self.thread = self.current = None
        self.ending = threading.Event()

    def leave(self):
        self.ending.set()
        if self.thread:
            for pid in self.processes(self.current) if self.current else ():
                kill(pid)
            self.thread.join()
        for path in self.cluster.data.parent.glob(f'{self.NAME}.[0-9]*'):
            pglib.remove(path)
        super().leave()

    # While clients work

    def start(self, plan):
        self.attempts, self.complaints = [], []

    def join(self, plan, publisher, schema):
        pass

    def load_begins(self, plan, load):
        self.rounds.memory.history = True
        self.load = load
        self.ending.clear()
        self.thread = threading.Thread(target=self.live, args=(plan,), daemon=True)
        self.thread.start()

    def load_ended(self):
        self.ending.set()
        self.thread.join()
        self.thread = None
        # what backups may have, of which the first server may have lost some
        self.memory = self.rounds.memory.fork()
        self.rounds.memory.history = False

    def live(self, plan):
        try:
            while not self.ending.is_set() and len(self.attempts) < MANY:
                rng = random.Random(f'{self.rounds.options.seed} backup {plan.round} {len(self.attempts)}')
                backup = self.choose(plan, rng)
                self.attempts.append(backup)
                self.take(backup)
                if backup.refused:
                    self.attempts.pop()
                    self.ending.wait(0.1)
        except Hang as error:
            self.complaints.append(f'hang: {error}')
        except Exception:
            self.complaints.append(traceback.format_exc())

    def choose(self, plan, rng, quick=False):
        self.number += 1
        directory = self.cluster.data.with_name(f'{self.NAME}.{self.number}')
        options = [f'--wal-method={rng.choice(["stream", "stream", "fetch"])}', '--checkpoint=fast',
                   f'--compress={rng.choice(["none", "none", "server-gzip:1", "server-zstd:1"])}',
                   f'--manifest-checksums={rng.choice(["CRC32C", "SHA256"])}']
        if 'aio.backup_buffers' in plan.settings:
            options.append(f'--jobs={rng.randint(1, 4)}')
        if rng.random() < 0.4 and not quick:
            options.append(f'--max-rate={rng.choice(["8M", "32M"])}')
        if rng.random() < 0.5:
            options.append('--no-sync')
        upon = self.chain if len(self.chain) < CHAIN and rng.random() < 0.5 else []
        if upon:
            options.append(f'--incremental={upon[-1].directory / "backup_manifest"}')
        return Backup(directory, upon, options, durable(self.rounds.memory))

    def take(self, backup):
        """Take it, and wait until no process of it is left."""
        primary = self.rounds.cluster
        backup.log, begun = primary.log_size(), time.localtime()
        with tempfile.TemporaryFile('w+') as said:
            command = [pglib.AS_ACCOUNT, self.program, '-D', backup.directory, '--no-password', *backup.options]
            process = begin(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd='/', env=primary.connection(),
                            start_new_session=True)
            self.current = backup
            try:
                self.wait(process, backup)
            finally:
                self.current = None
                ended(process)
            said.seek(0)
            backup.said = said.read().strip()
        backup.status, backup.after = process.returncode, self.load.struck
        # that is no attempt: the server is not there
        backup.refused = backup.after and REFUSES.search(backup.said) is not None
        if not backup.refused:
            with open(self.notes, 'a') as notes:
                print(f'{time.strftime("%T", begun)}-{time.strftime("%T")} {backup.name()} of {backup.directory.name}: '
                      f'status {backup.status}, struck {backup.struck}, after {backup.after}: {backup.said}', file=notes)
        if backup.status == 0:
            self.chain = [*backup.upon, backup]

    def wait(self, process, backup):
        deadline = time.monotonic() + 2 * LIMIT
        while process.poll() is None or self.processes(backup):
            if process.returncode is not None and backup.receiver:
                # PostgreSQL 18 leaves it alone (README.md)
                kill(backup.receiver)
            if time.monotonic() > deadline:
                left = self.processes(backup)
                for pid in left:
                    self.cluster.note_stack(pid, pglib.make_directory(Cluster.stacks))
                for pid in left:
                    kill(pid)
                process.wait()
                hang(f'{backup.name()} does not end, or leaves a process: {left}')
            time.sleep(0.02)

    def processes(self, backup):
        """{pid: pid of the parent} of those that take it."""
        return {pid: parent for pid, parent in parents().items()
                if title(pid).startswith(f'{self.program} -D {backup.directory} ')}

    # What happens to it

    def work_and_fail(self, plan, load):
        if plan.companion.fault:
            self.rng = random.Random(f'{self.rounds.options.seed} {self.NAME} fault {plan.round}')
            deadline = time.monotonic() + 2
            while not getattr(self, plan.companion.fault)() and time.monotonic() < deadline:
                time.sleep(0.01)

    def strike(self, choose):
        """Kill one of the processes of the backup that is being taken; False if there is none."""
        backup = self.current
        if not backup:
            return False
        time.sleep(self.rng.random() * 0.5)
        processes = self.processes(backup)
        victims = sorted(choose(processes))
        if not victims:
            return False
        victim = self.rng.choice(victims)
        backup.struck, backup.killed = True, victim not in self.children(processes)
        if backup.killed and '--wal-method=stream' in backup.options:
            # the first one that was started; and no other is going to be
            kill(victim, signal.SIGSTOP)
            backup.receiver = min(self.children(self.processes(backup)), default=None)
        kill(victim)
        return True

    @staticmethod
    def children(processes):
        return [pid for pid, parent in processes.items() if parent in processes]

    def kill_client(self):
        return self.strike(lambda processes: set(processes) - set(self.children(processes)))

    def kill_child(self):
        return self.strike(self.children)

    def terminate_sender(self):
        backup, primary = self.current, self.rounds.cluster
        senders = self.senders()
        if not backup or not senders:
            return False
        backup.struck = True
        primary.signal(self.rng.choice(senders), signal.SIGTERM)
        return True

    def senders(self):
        return sorted(pid for pid, name in self.rounds.cluster.processes().items() if 'walsender' in name)

    def break_disk(self):
        backup = self.current
        if not backup:
            return False
        what = self.rng.choice(['EIO write,fallocate probability=0.1', 'ENOSPC write,fallocate probability=0.02',
                                'EIO fsync count=1 data=lost'])
        backup.struck = True
        self.disk.command(f'error {what} file={backup.directory.name}/*')
        wait_until(lambda: self.current is not backup, 'pg_basebackup ends', 3 * LIMIT)
        self.disk.heal()
        return True

    # When the first server has been checked

    def check(self, plan, result):
        """What has succeeded is good, what has failed had a reason; and now one succeeds, unless the last one has."""
        report, rng = self.rounds.report, random.Random(f'{self.rounds.options.seed} {self.NAME} check {plan.round}')
        result.complaints += self.complaints
        wait_until(lambda: not self.senders(), 'those end who have sent backups')
        for backup in self.attempts:
            result.complaints += self.judge(backup)
        good = [backup for backup in self.attempts if backup.status == 0]
        for backup in good:
            self.verify(backup.directory)
        report.backups_failed += len(self.attempts) - len(good)
        if good:
            self.check_one(plan, result, good[-1], self.memory, rng)
        if not self.attempts or self.attempts[-1].status != 0 or rng.random() < 0.3:
            backup = self.choose(plan, rng, quick=True)
            self.take(backup)
            if self.forgive(backup):
                backup.options.append('--no-verify-checksums')
                self.take(backup)
            if backup.status != 0:
                result.complaints.append(f'{backup.name()} fails, although nothing happens: {backup.said}')
            else:
                good.append(backup)
                self.verify(backup.directory)
                self.check_one(plan, result, backup, self.rounds.memory.fork(), rng, same=True)
        report.backups += len(good)
        report.backups_incremental += sum(bool(backup.upon) for backup in good)
        keep = {backup.directory for backup in self.chain}
        for path in self.cluster.data.parent.glob(f'{self.NAME}.[0-9]*'):
            if path not in keep:
                pglib.remove(path)

    def judge(self, backup):
        """Complaints about one that has failed."""
        if backup.status == 0 or self.forgive(backup):
            return
        said = self.rounds.cluster.read_log(backup.log)
        server = backup.after and (logs.crashed(said) or logs.stopped(said) or self.load.disk_fails)
        if not (backup.struck or server):
            yield f'{backup.name()} has failed with status {backup.status}, and nothing explains that: {backup.said}'
        if backup.directory.exists() and not backup.killed:
            yield f'{backup.name()} has failed, and left {sorted(os.listdir(backup.directory))}: {backup.said}'

    def forgive(self, backup):
        """Is all that is wrong with it the checksums of files that belong to nobody?  Then it is removed."""
        bad = logs.damaged(backup.said)
        if backup.status == 0 or not bad or bad - Pages(self.rounds.cluster).nobodys(bad):
            return False
        pglib.remove(backup.directory)
        return True

    def verify(self, directory, *options):
        pglib.run_as_account([self.cluster.install.program('pg_verifybackup'), '--quiet', *options, directory])

    def check_one(self, plan, result, backup, memory, rng, same=False):
        """Start a server that is made of it."""
        data = self.cluster.data
        pglib.remove(data)
        if backup.upon:
            pglib.run_as_account([self.cluster.install.program('pg_combinebackup'), '--no-sync', '-o', data,
                                  *(part.directory for part in [*backup.upon, backup])])
            self.verify(data, '--no-parse-wal')
        else:
            copy(backup.directory, data)
        settings, early = plan.companion.settings, rng.random() < 0.4
        if early:
            # as soon as it is consistent
            settings = {**settings, 'restore_command': 'false', 'recovery_target': 'immediate',
                        'recovery_target_action': 'promote'}
            pglib.run_as_account(['touch', data / 'recovery.signal'])
        self.cluster.log.unlink(missing_ok=True)
        self.cluster.start(settings)
        if early:
            end_recovery(self.cluster)
        if same:
            self.compare(result)
        check_copy(self.rounds, plan, self.cluster, memory, result, backup.name(), backup.must)
        self.stop(plan, result)


def kill(pid, number=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
