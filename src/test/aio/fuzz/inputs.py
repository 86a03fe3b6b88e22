"""Input of COPY, and how it goes wrong: in its fields, its records, its bytes, and in the messages that carry it.

Good input comes from a server, in the format that is asked for, so that nothing here has to know how types are written.
What is done to it depends on the random numbers alone.
"""
import re
import struct

from wire import message

SIGNATURE = b'PGCOPY\n\xff\r\n\0'
HEADER = SIGNATURE + bytes(8)

# fields that types do not expect, some of which fit some types
TEXTS = [
    b'', b' ', b'\\N', b'NULL', b'\\.', b'0', b'-0', b'-1', b'32768', b'2147483648', b'99999999999999999999', b'1e400',
    b'NaN', b'infinity', b'-infinity', b'{}', b'{NULL}', b'{{1},{2}}', b'{1,2', b'[1:2]={1,2}', b'(1,2)', b'(nan,inf)',
    b'empty', b'[5,1]', b'[1,)', b'null', b'{"a":' * 7000, b'[' * 300, b'"', b'""', b'"\n', b'\\x', b'\\xzz', b'\\',
    b'\t', b',',
    b'\xc3\x28', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'\xc3', b'a\0b', b'\xef\xbb\xbf', 'ä𝄞'.encode(), b'DEFAULT',
    b'0000-00-00', b'294277-01-01', b'4714-11-24 BC', b'00000000-0000-0000-0000-000000000000', b'192.168.0.0/33',
    b'\r', b'\\r\\n',
]
BYTES = [b'\0', b'\xff', b'\x80', b'\\', b'"', b'\n', b'\r', b'\r\n', b'\t', b',', b'\\.', b'\\.\n', b'\\N', b'\xc3',
         b'|']
LENGTHS = [-2, -1, 0, 1, 3, 4, 8, 100, 65536, 2 ** 30, 2 ** 31 - 1, -2 ** 31]
COUNTS = [-2, -1, 0, 1, 2, 1600, 1665, 32767, -32768]


def incompressible(rng, size):
    """Text that is as long in an index as it looks."""
    return rng.randbytes(size // 2).hex().encode()


def field(rng):
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(TEXTS)
    if kind < 0.85:
        # around what index entries may have, and tuples without TOAST
        return incompressible(rng, rng.choice([1300, 2600, 2712, 2720, 5000, 8100, 8200, 20000]))
    if kind < 0.95:
        return rng.choice([b'x', b'9', b'\\']) * rng.choice([1000, 70_000, 1_100_000])
    return rng.randbytes(rng.choice([1, 4, 16, 100]))


# Text and csv


def fields_of(line, delimiter):
    """Those of a line that is good, or not: delimiters within quotes do not count."""
    pattern = rb'"(?:[^"]|"")*"|[^' + re.escape(delimiter) + rb']+'
    found, place = [], 0
    while True:
        match = re.compile(pattern).match(line, place)
        end = match.end() if match else place
        found.append(line[place:end])
        if line[end:end + 1] != delimiter:
            found[-1] += line[end:]
            return found
        place = end + 1


def damage_lines(rng, data, delimiter):
    lines = data.split(b'\n')
    at = rng.randrange(len(lines))
    fields = fields_of(lines[at], delimiter)
    where = rng.randrange(len(fields))
    # mostly what can be parsed, but not inserted
    what = rng.choice([0, 0, 0, 1, 1, 1, 1, 5, 6, 7, 8, 8, 8, 9, 10, 11])
    if what == 0:
        fields[where] = field(rng)
    elif what == 1:
        others = fields_of(lines[rng.randrange(len(lines))], delimiter)
        fields[where] = others[min(where, len(others) - 1)]
    elif what == 5:
        del fields[where]
    elif what == 6:
        fields.insert(where, fields[where])
    elif what == 7:
        fields[where] = b'"' + fields[where] + b'"'
    elif what == 8:
        # a key that is there already
        fields = fields_of(lines[rng.randrange(len(lines))], delimiter)
    elif what == 9:
        fields[-1] += rng.choice([b'\r', b'\r\n', b'\n', b'\n\n', b'\n\\.', b'\\'])
    elif what == 10:
        return rng.choice([b'\r\n', b'\r', b'\n\r']).join(lines)
    else:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
        return b'\n'.join(lines)
    lines[at] = delimiter.join(fields)
    return b'\n'.join(lines)


# Binary


def tuples(data):
    """The records of good input, each a list of fields; None is NULL."""
    place, found = len(HEADER), []
    while True:
        count, = struct.unpack_from('!h', data, place)
        place += 2
        if count < 0:
            return found
        fields = []
        for _ in range(count):
            size, = struct.unpack_from('!i', data, place)
            place += 4
            fields.append(None if size < 0 else data[place:place + size])
            place += max(size, 0)
        found.append(fields)


def record(fields):
    return struct.pack('!h', len(fields)) + b''.join(
        struct.pack('!i', -1) if one is None else struct.pack('!i', len(one)) + one for one in fields)


def damage_tuples(rng, data):
    try:
        records = tuples(data)
    except struct.error:
        # it has been damaged before
        return damage_bytes(rng, data)
    head, tail = HEADER, struct.pack('!h', -1)
    if not records:
        return head + rng.choice([tail, b'', b'\xff'])
    at = rng.randrange(len(records))
    fields = records[at]
    where = rng.randrange(len(fields)) if fields else 0
    what = rng.choice([*range(14), *[10] * 6, *[14] * 12])
    encoded = [record(one) for one in records]
    if what < 4 and fields:
        fields[where] = rng.choice([None, b'', field(rng), bytes(4), bytes(16),
                                    rng.randbytes(len(fields[where] or b''))])
        encoded[at] = record(fields)
    elif what == 4 and fields and fields[where]:
        flipped = bytearray(fields[where])
        flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
        fields[where] = bytes(flipped)
        encoded[at] = record(fields)
    elif what == 5 and fields and fields[where]:
        fields[where] = rng.choice([fields[where][:-1], fields[where] + b'\0', fields[where] * 2])
        encoded[at] = record(fields)
    elif what == 6:
        encoded[at] = record(fields[:where] + fields[where + 1:])
    elif what == 7:
        encoded[at] = record(fields + fields[:1])
    elif what == 8:
        encoded[at] = struct.pack('!h', rng.choice(COUNTS)) + encoded[at][2:]
    elif what == 9:
        # the length of a field lies
        skipped = 2 + sum(4 + len(one or b'') for one in fields[:where])
        encoded[at] = encoded[at][:skipped] + struct.pack('!i', rng.choice(LENGTHS)) + encoded[at][skipped + 4:]
    elif what == 10:
        encoded[at] = rng.choice(encoded)
    elif what == 14 and fields:
        # it fits, but somebody else has it, perhaps
        others = rng.choice(records)
        fields[where] = others[min(where, len(others) - 1)] if others else None
        encoded[at] = record(fields)
    elif what == 11:
        head = rng.choice([b'', SIGNATURE, SIGNATURE[:-1], bytes(11) + bytes(8), SIGNATURE + struct.pack('!Ii',
                                                                                                         1 << 16, 0),
                           SIGNATURE + struct.pack('!Ii', 1, 0), SIGNATURE + struct.pack('!Ii', 1 << 31, 0),
                           *(SIGNATURE + struct.pack('!Ii', 0, size) for size in LENGTHS)])
    elif what == 12:
        tail = rng.choice([b'', b'\xff', tail + b'more', tail + tail, struct.pack('!h', 0)])
    else:
        encoded.insert(at, rng.choice([tail, b'\xff', struct.pack('!h', 0)]))
    return head + b''.join(encoded) + tail


# Whatever it is


def damage_bytes(rng, data):
    if not data:
        return rng.choice(BYTES)
    at = rng.randrange(len(data))
    what = rng.randrange(7)
    if what == 0:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    if what == 1:
        return data[:at] + rng.choice(BYTES) + data[at + 1:]
    if what == 2:
        return data[:at] + rng.choice(BYTES) + data[at:]
    if what == 3:
        return data[:at] + data[at + rng.choice([1, 2, 10]):]
    if what == 4:
        return data[:at]
    if what == 5:
        end = at + rng.choice([1, 20, 500])
        return data[:end] + data[at:end] + data[end:]
    other = rng.randrange(len(data))
    return data[:at] + data[other:other + rng.choice([1, 30])] + data[at:]


def damage(rng, data, form, delimiter):
    """Some good input, after a number of accidents."""
    for _ in range(rng.choice([0, 0, 0, 1, 1, 1, 2, 10])):
        if rng.random() < 0.15:
            data = damage_bytes(rng, data)
        elif form == 'binary':
            data = damage_tuples(rng, data)
        else:
            data = damage_lines(rng, data, delimiter)
    return data


# Messages


def pieces(rng, data):
    """CopyData, cut anywhere."""
    sizes = rng.choice([[len(data) or 1], [1, 2, 7], [1, 100, 5000], [8192], [65536], [0, 10, 1000]])
    if len(data) > 100_000:
        sizes = [size for size in sizes if size > 100] or [8192]
    found, place = [], 0
    while place < len(data):
        size = rng.choice(sizes)
        found.append(message(b'd', data[place:place + size]))
        place += size
    return found


def intruder(rng):
    """A message that does not belong into COPY, or none at all."""
    return rng.choice([
        message(b'H'), message(b'S'), message(b'H') + message(b'S'), message(b'd'),
        message(b'f', rng.choice([b'the client gives up\0', b'\0', b'no end', b'', b'\xc3\x28\0',
                                  b'x' * 20_000 + b'\0'])),
        message(b'X'), message(b'Q', b'SELECT 1\0'), message(b'Q', b'SELECT'), message(b'P', b'\0SELECT 1\0\0\0'),
        message(b'B', bytes(8)), message(b'E', bytes(5)), message(b'D', b'S\0'), message(b'C', b'P\0'),
        message(b'F', bytes(10)), message(b'p', b'secret\0'), message(b'c'), message(b'c', b'with a body'),
        message(b'?', b'unknown'), message(b'\0'), message(b'S', b'with a body'), message(b'H', b'x' * 50_000),
        *(b'd' + struct.pack('!i', length) for length in (-1, 0, 3, 5, 1000, 2 ** 30, 2 ** 31 - 1)),
        *(b'f' + struct.pack('!i', length) for length in (0, 4, 2 ** 20)),
        b'Z', b'd\0\0', rng.randbytes(20),
    ])


def protocol(rng, data):
    """The messages of a client that sends this input in response to COPY FROM STDIN; perhaps not as it should."""
    messages = pieces(rng, data)
    for _ in range(rng.choice([0] * 14 + [1, 1, 3])):
        messages.insert(rng.randrange(len(messages) + 1), intruder(rng))
    if rng.random() < 0.05:
        # the client is cut off
        return b''.join(messages)[:rng.randrange(sum(map(len, messages)) + 1)], True
    if rng.random() < 0.05:
        messages.append(message(b'f', b'at the end\0'))
    elif rng.random() < 0.97:
        messages.append(message(b'c'))
    return b''.join(messages), False
