"""A server to be mistreated: start, connect, kill any of its processes, wait for recovery, look into one that hangs.

Owner:    whoever made it calls close(), which stops it and removes its sockets; the data directory stays.
Limits:   nothing waits for longer than LIMIT seconds.  Whatever takes longer raises Hang.
"""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import logs
import wire
from wire import Hang, Lost, Refused

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / 'bench'))
import pglib    # noqa: E402

LIMIT = 60
WORK = ROOT / 'build' / 'torture'


def hang(what):
    """Raise Hang, after a look at all servers: who catches it may have to stop them before he can tell."""
    if Cluster.stacks and not Cluster.stacks.exists():
        for cluster in list(Cluster.made):
            cluster.diagnose(Cluster.stacks)
    raise Hang(what)


def wait_until(condition, what, limit=LIMIT, pause=0.02):
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            hang(f'{what}: not within {limit} s')
        time.sleep(pause)


def parents(without='ZX'):
    """{pid: pid of the parent} of all processes that live, or are in no such state."""
    found = {}
    # not glob(), which raises an error if a process ends meanwhile
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            state, parent = pathlib.Path('/proc', name, 'stat').read_text().rpartition(')')[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state not in without:
            found[int(name)] = int(parent)
    return found


def adopt_orphans():
    """Become the parent of all that lose theirs, in order not to wait for somebody else to bury them."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap():
    """Bury the dead, but those of begin().  Only for the thread that starts all other programs, while none of them runs."""
    with BEGINNING:
        for pid, parent in parents('').items():
            if parent == os.getpid() and pid not in BEGUN:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


BEGINNING, BEGUN = threading.Lock(), set()


def begin(command, **options):
    """Start a program for whose end another thread waits, and then calls ended()."""
    with BEGINNING:
        process = subprocess.Popen([str(word) for word in command], **options)
        BEGUN.add(process.pid)
    return process


def ended(process):
    BEGUN.remove(process.pid)


def title(pid):
    try:
        return pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().replace(b'\0', b' ').decode(errors='replace').strip()
    except OSError:
        return ''


class Cluster(pglib.Cluster):
    made = []       # all that have not been closed
    stacks = None   # the directory where to note why they hang
    ways = 0        # how often a server needed help to start

    def __init__(self, install, data, log):
        super().__init__(install, data)
        self.log = log
        # not below the data directory, as a socket's path may not be long
        self.socket_dir = pglib.give_to_account(tempfile.mkdtemp(prefix='pgawait-', dir='/tmp'))
        self.made.append(self)
        self.orphans = set()        # the children of a postmaster that was killed, and it
        self.pid = None             # of the postmaster, when it was seen last
        self.stop_limit = LIMIT     # seconds that a stop may take
        self.cores = True           # have processes that fail leave a core file in the data directory

    def start(self, settings=None, limit=LIMIT):
        if settings is not None:
            self.settings = dict(settings)
        self.wait_for_orphans()
        self._write_settings()
        for _ in range(20):
            log = self.log_size()
            try:
                self._pg_ctl('start', '-l', self.log, '-t', str(limit), *(['-c'] if self.cores else []))
                break
            except pglib.PgError as error:
                if self.postmaster():
                    hang(f'recovery does not end: {error}')
                if not self.make_way(log):
                    raise pglib.PgError(f'the server does not start: {self.log_tail()}') from error
        self.postmaster()

    def make_way(self, log):
        """Do what PostgreSQL 18 cannot: remove a file that recovery trips over.

        A two-phase file that a checkpoint has written before it failed may be from after the last one that did not.
        With assertions, who removes it finds its transaction too new to tell the name of the file.
        """
        future = logs.FUTURE.search(self.read_log(log))
        if not future:
            return False
        (self.data / 'pg_twophase' / f'{int(future[1]):016X}').unlink()
        Cluster.ways += 1
        return True

    def start_begins(self):
        """Start, and wait only until it can be killed."""
        self.wait_for_orphans()
        self._write_settings()
        self._pg_ctl('start', '-l', self.log, '-W')
        deadline = time.monotonic() + 2
        while not self.postmaster() and time.monotonic() < deadline:
            time.sleep(0.001)

    def stop(self, mode='fast', limit=None):
        if self.postmaster():
            try:
                self._pg_ctl('stop', '-m', mode, '-t', str(limit or self.stop_limit))
            except pglib.PgError as error:
                if not self.postmaster():
                    return
                if mode == 'immediate' or not self.recovers():
                    hang(f'stop -m {mode} does not end: {error}')
                # PostgreSQL 18 may wait for ever if it is told to stop while it recovers from the crash of a child
                Cluster.ways += 1
                self.stop('immediate')

    def recovers(self):
        """Has the postmaster begun to recover from the crash of a child, and not ended that?"""
        text = self.read_log()
        return text.rfind('reinitializing') > text.rfind('ready to accept connections')

    def close(self):
        """Stop it by whatever it takes, such that nothing is left behind."""
        try:
            self.stop('immediate', limit=20)
        except Hang:
            self.kill()
        self.wait_for_orphans()
        shutil.rmtree(self.socket_dir, ignore_errors=True)
        self.made.remove(self)

    def connect(self, options='', limit=2 * LIMIT):
        return wire.Connection(f'{self.socket_dir}/.s.PGSQL.{self.port}', limit, options)

    def query(self, sql, limit=2 * LIMIT):
        with contextlib.closing(self.connect(limit=limit)) as connection:
            return connection.rows(sql)

    def accepts(self):
        try:
            self.query('SELECT 1', limit=10)
            return True
        except (Lost, Refused, Hang):
            return False

    def wait_for_recovery(self):
        """After a crash: until it serves again.  False if it has ended instead."""
        ended = []

        def settled():
            if self.accepts():
                return True
            if self.postmaster() and logs.startup_failed(self.read_log(max(0, self.log_size() - 1_000_000))):
                # PostgreSQL 18 waits for ever if recovery fails after the crash of a child
                Cluster.ways += 1
                self.stop('immediate')
            if not self.postmaster():
                ended.append(True)
            return bool(ended)
        wait_until(settled, 'recovery')
        return not ended

    def come_back(self, crash, log):
        """Wait until it serves again after a fault, or start it.  It has written to the log from there on."""
        def knows():
            said = self.read_log(log)
            return logs.crashed(said) or not (crash or 'PANIC:  ' in said) or not self.postmaster()
        # a postmaster goes on for a moment before it notices that a child is dead
        wait_until(knows, 'the postmaster notices a crash')
        if not self.postmaster() or not self.wait_for_recovery():
            self.start()

    def postmaster(self):
        """Its process id, or None if it does not run."""
        try:
            self.pid = int((self.data / 'postmaster.pid').read_text().split('\n', 1)[0])
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            # on a disk that fails; it was there when the server started
            pass
        return self.pid if 'postgres' in title(self.pid) and self.pid in parents() else None

    def files(self):
        """Those of relations, all others belong to nobody."""
        return {path for path, in self.query('SELECT pg_relation_filepath(oid) FROM pg_class')}

    def processes(self):
        """{pid: title} of the postmaster and its children."""
        postmaster = self.postmaster()
        if postmaster is None:
            return {}
        pids = [postmaster, *(pid for pid, parent in parents().items() if parent == postmaster)]
        return {pid: title(pid) for pid in pids}

    def signal(self, pid, number):
        """Send a signal to a process of this server, if it still is one."""
        postmaster = self.postmaster()
        if pid == postmaster or postmaster and parents().get(pid) == postmaster:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self, pids=None):
        """Kill these at once, or all; remember whom a dead postmaster leaves behind.

        Returns whether any of them was killed, and has not just ended by itself.
        """
        postmaster = self.postmaster()
        if postmaster and (pids is None or postmaster in pids):
            # it must not react to what happens to its children, nor have children that nobody knows
            os.kill(postmaster, signal.SIGSTOP)
            wait_until(lambda: postmaster not in parents('TZX'), 'stop of the postmaster', pause=0.001)
            self.orphans |= set(self.processes())
            pids = self.orphans if pids is None else pids
        alive = set(pids or ()) & set(parents())
        if postmaster not in alive:
            # who can be stopped has not ended
            for pid in alive:
                self.signal(pid, signal.SIGSTOP)
            wait_until(lambda: not alive & set(parents('TZX')), 'stop of a process', pause=0.001)
            alive &= set(parents())
        for pid in pids or ():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return bool(alive)

    def wait_for_orphans(self):
        """Children without a postmaster notice that, and end; a new postmaster cannot start before they are gone."""
        def gone():
            reap()
            return not self.orphans & set(parents(without='X'))
        wait_until(gone, 'end of the children of a dead postmaster', pause=0.005)
        self.orphans = set()

    def read_log(self, start=0, end=None):
        """What the log says from there to there, in bytes."""
        try:
            with open(self.log, 'rb') as log:
                log.seek(start)
                return log.read(-1 if end is None else end - start).decode(errors='replace')
        except FileNotFoundError:
            return ''

    def read_parts(self, start, dark):
        """The log from there on, without these parts, [(from, to)]: who has no disk may say what he likes."""
        parts = zip([start, *(end for _, end in dark)], [*(begin for begin, _ in dark), None])
        return ''.join(self.read_log(begin, end) for begin, end in parts)

    def log_size(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def diagnose(self, directory):
        """Write to a directory what tells why it hangs: sessions, I/O in flight, the stacks of all processes."""
        directory = pglib.make_directory(directory / self.data.name)
        for view in ('pg_stat_activity', 'pg_aios', 'pg_locks', 'pg_prepared_xacts'):
            self._note(directory / f'{view}.txt', 20, [self.install.program('psql'), '-X', '-x', '-c', f'TABLE {view}'])
        pids = {*self.processes(), *(self.orphans & set(parents()))}
        for pid in pids:
            self.note_stack(pid, directory)

    def note_stack(self, pid, directory):
        path = directory / f'{pid}.stack.txt'
        path.write_text(f'{title(pid)}\n')
        self._note(path, 60, ['gdb', '-batch', '-p', str(pid), '-ex', 'bt', '-x', ROOT / 'tools' / 'gdb-tasks.py'])

    def _note(self, path, limit, command):
        with open(path, 'a') as out:
            try:
                subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=limit,
                               env=self.connection())
            except (OSError, subprocess.TimeoutExpired) as error:
                out.write(f'{error}\n')


def make_template(install, directory, options):
    """A stopped cluster to copy."""
    data = directory / 'template' / ('data' + ''.join(options))
    if not data.exists():
        cluster = Cluster(install, data, directory / 'template.log')
        try:
            cluster.initdb('--no-sync', *options)
        finally:
            cluster.close()
    return data


def copy(source, target):
    pglib.run_as_account(['cp', '-a', '--reflink=auto', source, target])
