#!/usr/bin/python3
"""relay.py ROUND_TRIP_US HOST:PORT...: TCP connections that take time, as those to servers far away do.

For each target it listens on a port of 127.0.0.1, which the kernel chooses, and prints them all in one line. What comes
in on either side of a connection goes out on the other half a round trip later, in order. How much may be under way is
not limited, but by what a program in Python can pass on.

Owner:    whoever opens `with relay.running(targets, round_trip_us) as ports:`; leaving the block ends the process. It
          also ends when its standard input does, hence with its parent, however that ends.
"""

import asyncio
import collections
import contextlib
import selectors
import subprocess
import sys
from pathlib import Path

import pglib

HOST = "127.0.0.1"


@contextlib.contextmanager
def running(targets, round_trip_us):
    """Ports that lead to the targets, which are pairs of host and port."""
    # A session of its own: the terminal's Ctrl-C is for us, and servers are stopped before this is.
    process = subprocess.Popen([sys.executable, "-B", __file__, str(round_trip_us),
                                *(f"{host}:{port}" for host, port in targets)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        ports = [int(word) for word in process.stdout.readline().split()]
        if len(ports) != len(targets):
            raise pglib.PgError("the relay did not start")
        yield ports
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class End(asyncio.Protocol):
    """One end of a connection. What it receives is for the other end, after the delay."""

    def __init__(self, delay_s):
        self.delay_s = delay_s
        self.transport = None
        self.other = None
        self.under_way = collections.deque()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.send(data)

    def connection_lost(self, _error):
        self.send(None)

    def send(self, data):
        self.under_way.append(data)
        asyncio.get_running_loop().call_later(self.delay_s, self.arrive)

    def arrive(self):
        """The oldest goes out, so the order is kept, whatever timers do."""
        data = self.under_way.popleft()
        to = self.other.transport
        if data is None:
            to.close()
        elif not to.is_closing():
            to.write(data)

    def pause_writing(self):
        self.other.transport.pause_reading()

    def resume_writing(self):
        self.other.transport.resume_reading()


class NearEnd(End):
    """The end at which a client connects; what it receives before the target has been reached waits."""

    def __init__(self, delay_s, target):
        super().__init__(delay_s)
        self.target = target
        self.early = []

    def connection_made(self, transport):
        super().connection_made(transport)
        self.reaching = asyncio.ensure_future(self.reach())

    def send(self, data):
        if self.other is None:
            self.early.append(data)
        else:
            super().send(data)

    async def reach(self):
        far = End(self.delay_s)
        far.other = self
        try:
            await asyncio.get_running_loop().create_connection(lambda: far, *self.target)
        except OSError:
            self.transport.close()
            return
        self.other = far
        for data in self.early:
            self.send(data)


async def relay(delay_s, targets):
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(lambda target=target: NearEnd(delay_s, target), HOST, 0) for target in targets]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    await ended.wait()


def main():
    round_trip_us, *targets = sys.argv[1:]
    targets = [(host, int(port)) for host, port in (target.rsplit(":", 1) for target in targets)]
    # The default selector waits for whole milliseconds, and the kernel lets timers be late.
    Path("/proc/self/timerslack_ns").write_text("1")
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(relay(int(round_trip_us) / 2e6, targets))


if __name__ == "__main__":
    main()
