"""Connections to a server: simple queries, COPY, and queries that are sent before others have been answered.

A statement ends in one of three ways: a Result, Refused with its SQLSTATE, or Lost.  After Refused the connection can
be used; after Lost it is closed.  What takes longer than the connection's limit is a Hang.
"""
import dataclasses
import socket
import struct

INTEGERS = {20, 21, 23, 26}
BOOL, NUMERIC = 16, 1700


class Refused(Exception):
    """A statement has failed; the connection is there."""

    def __init__(self, code, message):
        super().__init__(f'{code}: {message}')
        self.code = code


class Gone(Refused):
    """What the statement was about has been dropped meanwhile."""


class Lost(Exception):
    """The connection is gone, or could not be made."""


class Hang(Exception):
    """Something has not come to its end in time."""


@dataclasses.dataclass
class Result:
    rows: list = dataclasses.field(default_factory=list)
    tag: str = ''               # such as INSERT 0 1
    data: list = dataclasses.field(default_factory=list)    # of COPY TO STDOUT

    @property
    def count(self):
        return int(self.tag.rsplit(' ', 1)[-1])


class Connection:
    def __init__(self, path, limit, options='', **more):
        """To the server with this socket; options are as in PGOPTIONS, and there may be more parameters."""
        self.pid, self.closed = None, False
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(limit)
        parameters = {'user': 'postgres', 'database': 'postgres', 'options': options, 'client_encoding': 'UTF8', **more}
        body = struct.pack('!I', 3 << 16) + b''.join(
            name.encode() + b'\0' + value.encode() + b'\0' for name, value in parameters.items()) + b'\0'
        try:
            self.stream = self.socket.makefile('rb', 1 << 16)
            self.socket.connect(path)
            self._write(struct.pack('!I', len(body) + 4) + body)
            self.answer()
        except OSError as error:
            self._lose(error)
        except Refused as error:
            self._lose(error)

    def close(self):
        self.closed = True
        self.stream.close()
        self.socket.close()

    def send(self, *queries):
        """Send queries, whose answers are fetched later, one by one."""
        self._write(b''.join(message(b'Q', query.encode() + b'\0') for query in queries))

    def execute(self, query, data=None):
        """Send a query and return its result; data is for COPY FROM STDIN."""
        self.send(query)
        return self.answer(data)

    def rows(self, query):
        return self.execute(query).rows

    def answer(self, data=None):
        """The result of the next query whose answer has not been fetched."""
        result, error, types = Result(), None, []
        while True:
            kind, body = self._read()
            if kind == b'D':
                result.rows.append(values(body, types))
            elif kind == b'T':
                result.rows, types = [], column_types(body)
            elif kind == b'C':
                result.tag = body[:-1].decode()
            elif kind == b'd':
                result.data.append(body)
            elif kind == b'G':
                self._write(message(b'd', data) + message(b'c') if data is not None else message(b'f', b'no data\0'))
            elif kind == b'K':
                self.pid = struct.unpack('!I', body[:4])[0]
            elif kind == b'E':
                fields = {field[:1]: field[1:].decode(errors='replace') for field in body.split(b'\0') if field}
                error = error or Refused(fields[b'C'], ' '.join(fields[n] for n in (b'M', b'D', b'W') if n in fields))
                if fields[b'V'] in ('FATAL', 'PANIC'):
                    self._lose(error)
            elif kind == b'Z':
                if error:
                    raise error
                return result

    def _read(self):
        try:
            head = self.stream.read(5)
            if len(head) < 5:
                self._lose('closed by the server')
            length = struct.unpack('!I', head[1:])[0] - 4
            body = self.stream.read(length)
            if len(body) < length:
                self._lose('closed by the server, within a message')
            return head[:1], body
        except OSError as error:
            self._lose(error)

    def _write(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            self._lose(error)

    def _lose(self, why):
        self.close()
        if isinstance(why, TimeoutError):
            raise Hang('a server does not answer')
        raise Lost(str(why))


def message(kind, body=b''):
    return kind + struct.pack('!I', len(body) + 4) + body


def column_types(body):
    types, place = [], 2
    for _ in range(struct.unpack('!H', body[:2])[0]):
        place = body.index(b'\0', place) + 1
        types.append(struct.unpack('!I', body[place + 6:place + 10])[0])
        place += 18
    return types


def values(body, types):
    row, place = [], 2
    for kind in types:
        size = struct.unpack('!i', body[place:place + 4])[0]
        place += 4
        if size < 0:
            row.append(None)
            continue
        text = body[place:place + size].decode()
        place += size
        if kind in INTEGERS or kind == NUMERIC and text.lstrip('-').isdigit():
            row.append(int(text))
        else:
            row.append(text == 't' if kind == BOOL else text)
    return tuple(row)
