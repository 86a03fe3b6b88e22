"""PostgreSQL clusters for the benchmarks and the demo: create, clone, start, talk to, stop.

Owner:    whoever opens `with Cluster(...) as cluster:`; leaving the block, by whatever road, stops the
          server and removes its socket directory. The data directory is kept.
Account:  PostgreSQL refuses to run as root, so every program that touches a data directory is started
          through tools/as-account, and directories are given to that account.
Errors:   PgError, one message with the remedy or with what the program said.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
AS_ACCOUNT = REPO / "tools" / "as-account"
PORT = 5432     # only names the socket file: each server has a socket directory of its own


class PgError(Exception):
    """Something a user can act on; shown without a traceback."""


def exit_on_signals():
    """Make SIGTERM and SIGHUP unwind the stack as Ctrl-C does, so that servers are stopped."""
    def leave(signum, _frame):
        raise SystemExit(128 + signum)
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, leave)


@contextlib.contextmanager
def undisturbed():
    """Signals that end us wait for the end of the block: a server that is half made or started cannot be stopped."""
    waiting = []
    before = {signum: signal.signal(signum, lambda signum, _frame: waiting.append(signum))
              for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
        if waiting:
            signal.raise_signal(waiting[0])


def run(command, **options):
    """Run a program to its end and return its standard output; PgError tells what it said on failure."""
    command = [str(word) for word in command]
    options = {"stdin": subprocess.DEVNULL, "env": environment(), **options}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    except OSError as error:
        raise PgError(f"cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message")[-4000:]
        raise PgError(f"{' '.join(command)[:300]}\nfailed with exit code {done.returncode}: {said}")
    return done.stdout


def run_as_account(command, **options):
    return run([AS_ACCOUNT, *command], **{"cwd": "/", **options})


def environment():
    """The caller's environment without settings that would lead libpq to another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


_account_ids = None


def give_to_account(path):
    global _account_ids
    if _account_ids is None:
        _account_ids = tuple(int(run_as_account(["id", flag])) for flag in ("-u", "-g"))
    os.chown(path, *_account_ids)
    return path


def make_directory(path, mode=0o755):
    """Create a directory in which the account may write."""
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
    return give_to_account(path)


class Install:
    """An installed server: where its programs are."""

    def __init__(self, prefix, remedy):
        self.prefix = Path(prefix).resolve()
        self.remedy = remedy

    def program(self, name):
        return self.prefix / "bin" / name

    def require(self):
        if not os.access(self.program("postgres"), os.X_OK):
            raise PgError(f"no server in {self.prefix}; build it first: {self.remedy}")
        return self

    def version(self):
        return run([self.program("postgres"), "--version"]).strip()


def our_install(prefix=None):
    return Install(prefix or REPO / "build" / "install", "./pgawait build")


def stock_install(prefix=None):
    return Install(prefix or REPO / "build" / "stock", "./pgawait build --stock")


class Cluster:
    """One data directory and the server on it, reached through a private Unix socket only."""

    def __init__(self, install, data, settings=None):
        self.install = install.require()
        self.data = Path(data)
        self.log = self.data.with_name(self.data.name + ".log")
        self.log_start = 0      # where in the log the last start began
        self.settings = dict(settings or {})
        self.listen_addresses = ""
        self.port = PORT
        self.socket_dir = None
        self.sessions = []
        self.memory_group = None    # a MemoryGroup in which the server runs from its next start

    def initdb(self, *options):
        """Create the data directory; --no-locale and UTF8, so that results are the same everywhere."""
        make_directory(self.data.parent)
        with undisturbed():
            run_as_account([self.install.program("initdb"), "-D", self.data, "-U", "postgres", "-A", "trust",
                            "--no-locale", "--encoding=UTF8", "--no-instructions", *options], start_new_session=True)
        return self

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, _value, _traceback):
        self.stop("fast" if kind is None else "immediate")

    def start(self, seconds=300):
        """Start, after a recovery of at most so many seconds."""
        # Not below the data directory, because a socket path is limited to 107 bytes; not in the caller's TMPDIR,
        # because that may be closed to the account.
        self.socket_dir = Path(tempfile.mkdtemp(prefix="pgawait-", dir="/tmp"))
        give_to_account(self.socket_dir)
        make_directory(self.log.parent)
        self._write_settings()
        self.log_start = self.log.stat().st_size if self.log.exists() else 0
        try:
            with undisturbed():
                self._pg_ctl("start", "-l", self.log, "-t", str(seconds))
        except BaseException as error:
            self.stop("immediate")
            if isinstance(error, PgError):
                raise PgError(f"the server on {self.data} did not start; the end of {self.log}:\n"
                              f"{self.log_tail()}") from error
            raise

    def stop(self, mode="fast"):
        """Stop the server if it runs. A second Ctrl-C must not leave it behind, hence the deaf moment."""
        heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.close_sessions()
            if (self.data / "postmaster.pid").exists():
                try:
                    self._pg_ctl("stop", "-m", mode, "-t", "300")
                except PgError:
                    if (self.data / "postmaster.pid").exists():
                        self._pg_ctl("stop", "-m", "immediate", "-t", "60")
            if self.socket_dir:
                shutil.rmtree(self.socket_dir, ignore_errors=True)
                self.socket_dir = None
        finally:
            signal.signal(signal.SIGINT, heard)

    def restart(self, **settings):
        """Start again with some settings changed."""
        self.stop()
        self.settings.update(settings)
        self.start()

    def log_tail(self, lines=15):
        try:
            with open(self.log, errors="replace") as log:
                log.seek(self.log_start)
                return "\n".join(log.read().splitlines()[-lines:])
        except OSError:
            return "(no log)"

    def session(self, database="postgres"):
        session = Session(self, database)
        self.sessions.append(session)
        return session

    def close_sessions(self):
        while self.sessions:
            self.sessions.pop().close()

    def connection(self, database="postgres"):
        """Environment under which libpq programs reach this server."""
        return {**environment(), "PGHOST": str(self.socket_dir), "PGPORT": str(self.port), "PGUSER": "postgres",
                "PGDATABASE": database, "PGOPTIONS": "-c client_min_messages=warning"}

    def run_client(self, program, *arguments, database="postgres", **options):
        """Run a client program (pgbench, psql, pg_amcheck) of this installation against the server."""
        return run([self.install.program(program), *arguments], env=self.connection(database), **options)

    def _write_settings(self):
        private = {"listen_addresses": self.listen_addresses, "port": self.port,
                   "unix_socket_directories": self.socket_dir}
        path = self.data / "postgresql.auto.conf"
        path.write_text("".join(f"{name} = {quote(value)}\n" for name, value in {**self.settings, **private}.items()))
        give_to_account(path)

    def _pg_ctl(self, action, *options):
        # A session of its own: the terminal's Ctrl-C is for the caller, which then stops the server in order.
        # The server inherits pg_ctl's output, so that must not be a pipe that we wait on.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run([str(word) for word in
                                   (AS_ACCOUNT, self.install.program("pg_ctl"), "-s", "-w", "-D", self.data,
                                    *options, action)],
                                  stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", env=environment(),
                                  start_new_session=True,
                                  preexec_fn=self.memory_group.enter if self.memory_group else None)
            if done.returncode != 0:
                said.seek(0)
                raise PgError(f"pg_ctl {action} failed on {self.data}: {said.read().strip()}")


def quote(value):
    """A value for postgresql.conf or a literal for SQL."""
    if isinstance(value, bool):
        value = "on" if value else "off"
    return "'" + str(value).replace("'", "''") + "'"


class Session:
    """A connection that stays open: psql fed through a pipe, so that start-up is never part of a timing."""

    def __init__(self, cluster, database):
        self.cluster = cluster
        self.errors = tempfile.TemporaryFile("w+")
        self.turn = 0
        self.psql = subprocess.Popen(
            [str(cluster.install.program("psql")), "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env=cluster.connection(database), start_new_session=True)
        self.pid = int(self.query("SELECT pg_backend_pid()")[0][0])

    def query(self, sql):
        """Run one or more statements, return all their rows as lists of strings; NULL is the empty string."""
        self.turn += 1
        end = f"\x01end of turn {self.turn}"
        rows = []
        try:
            self.psql.stdin.write(f"{sql}\n;\n\\echo '{end}'\n")
            self.psql.stdin.flush()
            while True:
                line = self.psql.stdout.readline()
                if not line:
                    raise BrokenPipeError
                line = line.rstrip("\n")
                if line == end:
                    return rows
                rows.append(line.split("\t"))
        except BrokenPipeError:
            self.psql.wait()
            self.errors.seek(0)
            raise PgError(f"{self.errors.read().strip() or 'the session ended'}\nin: {sql.strip()[:500]}") from None

    def value(self, sql):
        return self.query(sql)[0][0]

    def close(self):
        try:
            self.psql.stdin.close()
        except OSError:
            pass
        try:
            self.psql.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self.psql.kill()
            self.psql.wait()
        self.psql.stdout.close()
        self.errors.close()


def clone(source, target):
    """Copy the data directory of a stopped cluster: everything on disk, nothing left in the page cache.

    Never a reflink: shared extents would charge the first writer of each page with copying it.
    """
    make_directory(Path(target).parent)
    remove(target)
    run_as_account(["cp", "-a", "--reflink=never", source, target])
    drop_from_page_cache(target)


def drop_from_page_cache(data):
    """Nothing of a cluster that is stopped, or has written all it has to, is in the page cache afterwards."""
    for name in files_of(data):
        fd = os.open(name, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def read_into_page_cache(data):
    for name in files_of(data):
        with open(name, "rb") as file:
            while file.read(1 << 20):
                pass


def files_of(data):
    return [os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names]


def remove(data):
    if Path(data).exists():
        run_as_account(["rm", "-rf", data])
