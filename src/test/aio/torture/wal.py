"""Looks for holes in the WAL: pages of zeros before a page that is what it should be.

Recovery takes a hole for the end of the WAL, and loses all that comes after it; but as long as the server does not
crash, and nobody reads the WAL, nobody notices.

After a switch of segments the rest of a segment is zeros, or what was there before, whose addresses are others.  After a
loss of power, pages that had been written but not synced may have survived behind the end of the WAL, with zeros between
them.
"""
import struct

PAGE = 8192


def holes(directory, segment, end=float('inf')):
    """Complaints about the segments, of so many bytes each, in a data directory, in WAL up to this address."""
    for path in sorted((directory / 'pg_wal').glob('[0-9A-F]' * 24)):
        high, low = int(path.name[8:16], 16), int(path.name[16:], 16)
        begin = (high << 32) + low * segment
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            # a checkpoint has used it for WAL to come, or removed it
            continue
        zeros = []
        for place in range(0, len(data), PAGE):
            if not any(data[place:place + PAGE]):
                zeros.append(place)
            elif zeros and begin + place < end and struct.unpack_from('<Q', data, place + 8)[0] == begin + place:
                yield f'a hole in the WAL: {path.name} has zeros from {zeros[0]} up to {place}'
                zeros = []
