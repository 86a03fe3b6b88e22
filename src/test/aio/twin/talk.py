"""A session that hears everything a server says, and never waits for it.

What it hears is kept as plain tuples that may be compared with another server's, without what cannot be the same in
two servers: process ids, transaction ids, addresses in WAL, places in source files, and object ids of users' objects.

A session has as many answers outstanding as it has sent statements; an answer ends with ReadyForQuery, or, while the
client of a COPY or of a portal pauses, with Flush and what the server has said until it waits for the client.
"""
import pathlib
import re
import select
import socket
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'torture'))
from wire import message                            # noqa: E402

FIRST_NORMAL_OID = 16384
# what an error or notice consists of, but for the places in source files
FIELDS = 'SVCMDHPpqWstcdn'
VARYING = [(re.compile(r'\b([Pp]rocess|PID|pid) \d+'), r'\1 N'), (re.compile(r'\b(transactions?) \d+(/\d+)?'), r'\1 N'),
           (re.compile(r'\b(relation|tuple \(\d+,\d+\) of relation|database|object|extension) \d+'), r'\1 N'),
           (re.compile(r'\b(tuple) \(\d+,\d+\) in relation "pg_'), r'\1 N in relation "pg_'),
           (re.compile(r'\b(Memory|Storage|Usage): +\d+kB'), r'\1: NkB'),
           # a build with assertions needs more
           (re.compile(r'\bpg_\d+'), 'pg_N'), (re.compile(r'pg_temp_\d+'), 'pg_temp_N'), (re.compile(r'pg_toast_\d+'), 'pg_toast_N'),
           (re.compile(r'\b[0-9A-F]+/[0-9A-F]{6,8}\b'), 'LSN')]


def plain(text):
    if 'stack depth limit exceeded' in text:
        # how often a function calls itself until then is nobody's business
        return text[:text.index('stack depth limit exceeded')] + 'stack depth limit exceeded'
    for pattern, by in VARYING:
        text = pattern.sub(by, text)
    return text


def cstring(text):
    return text.encode() + b'\0'


class Session:
    def __init__(self, path, options=''):
        self.pid = self.key = None
        self.heard, self.buffer = [], b''
        self.outstanding, self.status, self.closed, self.copying = 1, None, False, False
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        parameters = {'user': 'postgres', 'database': 'postgres', 'options': options, 'client_encoding': 'UTF8',
                      'application_name': 'twin'}
        body = struct.pack('!I', 3 << 16) + b''.join(cstring(name) + cstring(value)
                                                     for name, value in parameters.items()) + b'\0'
        self.socket.sendall(struct.pack('!I', len(body) + 4) + body)
        self.socket.setblocking(False)
        self.path, self.unsent = path, b''

    # What may be said.  The caller sees to it that the server expects it.

    def query(self, text):
        self.outstanding += 1
        self._send(message(b'Q', cstring(text)))

    def prepare(self, text, parameters=(), name=''):
        """Parse, bind and describe; what follows may execute."""
        self._send(message(b'P', cstring(name) + cstring(text) + struct.pack('!H', 0)))
        self._send(message(b'B', cstring('') + cstring(name) + struct.pack('!HH', 0, len(parameters)) +
                           b''.join(struct.pack('!i', -1) if value is None else
                                    struct.pack('!i', len(str(value).encode())) + str(value).encode()
                                    for value in parameters) + struct.pack('!H', 0)))
        self._send(message(b'D', b'P' + cstring('')))

    def execute(self, rows=0):
        self._send(message(b'E', cstring('') + struct.pack('!I', rows)))

    def extended(self, text, parameters=()):
        self.prepare(text, parameters)
        self.execute()
        self.sync()

    def pipeline(self, texts, syncs):
        """All at once, with a Sync after each, or one at the end."""
        for text in texts:
            self.prepare(text)
            self.execute()
            if syncs:
                self.sync()
        if not syncs:
            self.sync()

    def sync(self):
        self.outstanding += 1
        self._send(message(b'S'))

    def flush(self):
        self._send(message(b'H'))

    def copy_data(self, data):
        self._send(message(b'd', data.encode()))

    def copy_done(self):
        self._send(message(b'c'))

    def copy_failed(self):
        self._send(message(b'f', cstring('the program has failed')))

    def leave(self):
        """As a client that is gone."""
        self.socket.close()
        self.closed, self.outstanding = True, 0

    def cancel(self):
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(self.path)
            other.sendall(struct.pack('!IIII', 16, 80877102, self.pid, self.key))
            other.recv(1)

    def _send(self, data):
        self.unsent += data
        self.go_on()

    def go_on(self):
        """Send what the server would not take until now."""
        while self.unsent and not self.closed:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent):]
            except BlockingIOError:
                return
            except OSError:
                # whoever listens will notice
                self.unsent = b''

    # What is heard

    def busy(self):
        return self.outstanding > 0 and not self.closed

    def listen(self):
        """Take in what has arrived."""
        ended = False
        while not self.closed:
            self.go_on()
            try:
                data = self.socket.recv(1 << 16)
            except BlockingIOError:
                break
            except (OSError, ValueError):
                data = b''
            if not data:
                ended = True
                break
            self.buffer += data
        place = 0
        while len(self.buffer) >= place + 5:
            kind, size = self.buffer[place:place + 1], struct.unpack('!I', self.buffer[place + 1:place + 5])[0]
            if len(self.buffer) < place + 1 + size:
                break
            self._hear(kind.decode(), self.buffer[place + 5:place + 1 + size])
            place += 1 + size
        self.buffer = self.buffer[place:]
        if ended:
            self._ended()

    def take(self):
        """What has been heard since the last call."""
        heard, self.heard = self.heard, []
        return heard

    def _ended(self):
        if not self.closed:
            self.socket.close()
            self.closed, self.outstanding = True, 0
            self.heard.append(('closed',))

    def _hear(self, kind, body):
        if kind == 'K':
            self.pid, self.key = struct.unpack('!II', body[:8])
        elif kind == 'Z':
            self.outstanding -= 1
            self.status, self.copying = body.decode(), False
            if self.pid is not None:
                self.heard.append(('ready', self.status))
        elif kind in 'EN':
            fields = {chr(field[0]): field[1:].decode(errors='replace') for field in body.split(b'\0') if field}
            if fields['C'] in ('54001', '57014'):
                # how deep in functions, and what is done when one is cancelled, is chance
                fields.pop('W', None)
            self.heard.append(('error' if kind == 'E' else 'notice',
                               *((name, plain(fields[name])) for name in FIELDS if name in fields)))
            self.copying = False if kind == 'E' else self.copying
        elif kind == 'D':
            self.heard.append(('row', *(value and plain(value) if value and 'kB' in value else value for value in values(body))))
        elif kind == 'T':
            self.heard.append(('columns', *columns(body)))
        elif kind == 'C':
            self.heard.append(('tag', body[:-1].decode()))
        elif kind == 'A':
            self.heard.append(('notify', *body[4:].decode().split('\0')[:2]))
        elif kind == 'd':
            self.heard.append(('data', body.decode(errors='replace')))
        elif kind in 'GHW':
            self.copying = kind == 'G'
            self.heard.append(('copy', kind))
        elif kind == 's':
            self.heard.append(('suspended',))
        elif kind == 'I':
            self.heard.append(('empty',))
        # 'S', 'R', '1', '2', '3', 'n', 't', 'c' say nothing that others do not

    def close(self):
        if not self.closed:
            self.socket.close()
            self.closed = True


def values(body):
    place = 2
    for _ in range(struct.unpack('!H', body[:2])[0]):
        size = struct.unpack('!i', body[place:place + 4])[0]
        place += 4
        yield None if size < 0 else body[place:place + size].decode(errors='replace')
        place += max(size, 0)


def columns(body):
    place = 2
    for _ in range(struct.unpack('!H', body[:2])[0]):
        end = body.index(b'\0', place)
        name, (table, number, kind) = body[place:end].decode(), struct.unpack('!IHI', body[end + 1:end + 11])
        place = end + 19
        yield name, bool(table), number, kind if kind < FIRST_NORMAL_OID else 'of a user'


def wait_for_any(sessions, seconds):
    """Until one of them has said something, or so long; a client that is gone says nothing."""
    alive = [session.socket for session in sessions if not session.closed]
    select.select(alive, [], [], seconds)
