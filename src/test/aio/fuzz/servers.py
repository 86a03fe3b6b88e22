"""The server that is fuzzed, the one that has the answers, and connections on which anything can be said."""
import contextlib
import re
import select
import socket
import struct
import time

from cluster import Cluster, copy, make_template, pglib, wait_until
from wire import Connection, Hang, Lost, Refused, message

# how long a session may take for what it is told, in seconds
LIMIT = 60

# what the reference must not do, if it is not stock
OFF = {'aio.await_index_inserts': 'off', 'aio.index_batch_memory': 0, 'aio.preallocation_size': 0, 'aio.write_behind': 0,
       'aio.wal_write_ahead': 0, 'aio.pipelined_commits': 'off', 'aio.parallel_insert': 'off',
       'aio.bulk_flush_after': 0, 'aio.await_foreign_inserts': 'off', 'aio.foreign_read_ahead': 'off'}

FIXED = {
    # each process of an io_uring server locks memory, of which an account may have little
    'max_connections': 10, 'autovacuum_worker_slots': 1, 'autovacuum_max_workers': 1, 'max_worker_processes': 2,
    'max_wal_senders': 0, 'wal_level': 'minimal', 'fsync': 'off', 'full_page_writes': 'off', 'autovacuum': 'off',
    'log_line_prefix': '%m [%p] %b|%e|', 'log_min_error_statement': 'error', 'restart_after_crash': 'on', 'jit': 'off',
    'huge_pages': 'off', 'max_prepared_transactions': 3, 'max_wal_size': '256MB', 'timezone': 'UTC',
    # where an index scan and a sequential one can be told apart, both have one process
    'max_parallel_workers_per_gather': 0,
}

# what no test may bring about, whatever clients are told
BAD = re.compile(r'TRAP:|PANIC|was terminated by signal|Sanitizer|stack smashing|leak|was not closed|'
                 r'still (pinned|referenced)|all server processes terminated|refcount')


def choose(rng, methods):
    """Random settings of the server that is fuzzed."""
    return {
        **FIXED,
        'io_method': rng.choice(methods),
        'debug_io_direct': rng.choice(['', '', 'data', 'data,wal']),
        'shared_buffers': rng.choice(['2MB', '4MB', '64MB']),
        'io_max_concurrency': rng.choice([4, 16, 32]),
        'io_workers': rng.choice([1, 3]),
        'io_combine_limit': rng.choice([1, 16]),
        'wal_buffers': rng.choice(['32kB', '1MB']),
        'aio.preallocation_size': rng.choice([0, 64, 4096]),
        'aio.write_behind': rng.choice([0, 4, 32, 256]),
        'aio.write_buffers': rng.choice([-1, 8]),
        'aio.wal_write_ahead': rng.choice([0, '16kB', '256kB']),
        'aio.wal_syncs': rng.choice([1, 4]),
    }


class Server(Cluster):
    def __init__(self, install, directory, name, sql):
        template = make_template(install, pglib.make_directory(directory / install.prefix.name), ['--wal-segsize=1'])
        data = directory / name
        copy(template, data)
        super().__init__(install, data, directory / f'{name}.log')
        self.cores = True
        self.sql = sql              # what it is told first
        self.made_ready = False

    def begin(self, settings):
        """Start it for the first time, or with other settings."""
        self.stop()
        try:
            self.start(settings)
        except pglib.PgError:
            if settings['io_method'] != 'io_uring':
                raise
            print('there is no memory left for io_uring now: io_method = worker', flush=True)
            self.start({**settings, 'io_method': 'worker'})
        if not self.made_ready:
            self.made_ready = True
            for statement in self.sql:
                self.query(statement)
            for name, rows in (('one', 1), ('ten', 10), ('thousand', 1000)):
                self.query(f"CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{self.socket_dir}', "
                           f"port '{self.port}', dbname 'postgres', async_capable 'true', batch_size '{rows}')")
                self.query(f"CREATE USER MAPPING FOR postgres SERVER {name} OPTIONS (user 'postgres')")
        self.seen = self.log_size()

    def complaints(self):
        """What its log says since the last time that nothing allows, and whether it lives."""
        text, self.seen = self.read_log(self.seen), self.log_size()
        found = [line for line in text.splitlines() if BAD.search(line)]
        if not self.accepts():
            found.append('the server does not accept connections')
        return found

    def alive(self, limit=LIMIT):
        """After something that may have crashed it."""
        wait_until(self.accepts, 'the server to accept connections', limit)

    def session(self, options=''):
        return contextlib.closing(self.connect(options, LIMIT))

    def gone(self, pid):
        """Wait until a session has ended, as its transaction must have."""
        still = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} OR application_name = 'postgres_fdw'"
        wait_until(lambda: not self.query(still), 'the end of a session', LIMIT)

    def talk(self, data, options='', hang_up=False):
        """Say this in a new session, then nothing more; returns what is answered, [(kind, content)].

        To hang up is to close the connection instead of listening.
        """
        with self.session(options) as connection:
            raw, pid = connection.socket, connection.pid
            raw.setblocking(False)
            answers, rest, deadline = b'', memoryview(data), time.monotonic() + LIMIT
            while True:
                readable, writable, _ = select.select([raw], [raw] if rest is not None else [], [], 1)
                if writable:
                    try:
                        rest = rest[raw.send(rest[:1 << 16]):]
                    except BlockingIOError:
                        pass
                    except OSError:
                        # the server has heard enough
                        rest = None
                    if rest is not None and not rest:
                        rest = None
                        if hang_up:
                            break
                        with contextlib.suppress(OSError):
                            raw.shutdown(socket.SHUT_WR)
                if readable:
                    try:
                        got = raw.recv(1 << 16)
                    except ConnectionError:
                        got = b''
                    if not got:
                        break
                    answers += got
                if time.monotonic() > deadline:
                    raise Hang(f'a session does not end; it has answered {answers[-200:]!r}')
        self.gone(pid)
        return [] if hang_up else list(messages(answers))


def messages(data):
    """What a server has said, without what differs from one build to another."""
    place = 0
    while place + 5 <= len(data):
        kind, size = data[place:place + 1], struct.unpack_from('!I', data, place + 1)[0]
        body = data[place + 5:place + 1 + size]
        place += 1 + size
        if kind in (b'E', b'N'):
            # not the place in the source
            body = {field[:1].decode(): field[1:].decode(errors='replace') for field in body.split(b'\0')
                    if field and field[:1] not in b'FLR'}
        yield kind.decode(), body


def query(text):
    return message(b'Q', text.encode() + b'\0')


def extended(text):
    """The same, with the messages of the other protocol."""
    parse = message(b'P', b'\0' + text.encode() + b'\0\0\0')
    return parse + message(b'B', bytes(8)) + message(b'E', bytes(5)) + message(b'S')


def usable(install, directory, methods):
    """Which I/O methods work here, for a server of ours."""
    found = []
    server = Server(install, directory, 'probe', [])
    try:
        for method in methods:
            try:
                server.start({**FIXED, 'io_method': method, 'debug_io_direct': 'data', 'io_max_concurrency': 32})
                server.stop()
                found.append(method)
            except pglib.PgError:
                print(f'io_method {method} does not work here')
    finally:
        server.close()
    return found


__all__ = ['Connection', 'Hang', 'Lost', 'Refused', 'Server', 'FIXED', 'OFF', 'choose', 'extended', 'query', 'usable']
