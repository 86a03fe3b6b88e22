#!/usr/bin/python3
"""relay.py ROUND_TRIP_US MB_PER_S TARGET...: TCP connections that take time, as those to servers far away do.

For each target, which is HOST:PORT or the path of a socket, it listens on a port of 127.0.0.1, which the kernel chooses,
and prints them all in one line. What comes in on either side of a connection goes out on the other half a round trip
later, in order. To who has connected, the kernel sends no more than MB_PER_S million bytes a second on each connection;
0 is no limit. How much may be under way is not limited, but by what a program in Python can pass on.

Owner:    whoever opens `with relay.running(targets, round_trip_us) as ports:`; leaving the block ends the process. It
          also ends when its standard input does, hence with its parent, however that ends.
"""

import asyncio
import collections
import contextlib
import selectors
import socket
import subprocess
import sys
from pathlib import Path

import pglib

HOST = "127.0.0.1"
SO_MAX_PACING_RATE = 47     # of Linux, in bytes a second; Python does not know it


@contextlib.contextmanager
def running(targets, round_trip_us, mb_per_s=0):
    """Ports that lead to the targets, which are pairs of host and port, or paths of sockets."""
    # A session of its own: the terminal's Ctrl-C is for us, and servers are stopped before this is.
    process = subprocess.Popen([sys.executable, "-B", __file__, str(round_trip_us), str(mb_per_s),
                                *(target if isinstance(target, str) else "{}:{}".format(*target) for target in targets)],
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

    def __init__(self, delay_s, mb_per_s, target):
        super().__init__(delay_s)
        self.mb_per_s = mb_per_s
        self.target = target
        self.early = []

    def connection_made(self, transport):
        super().connection_made(transport)
        if self.mb_per_s:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, self.mb_per_s * 10 ** 6)
        self.reaching = asyncio.ensure_future(self.reach())

    def send(self, data):
        if self.other is None:
            self.early.append(data)
        else:
            super().send(data)

    async def reach(self):
        far = End(self.delay_s)
        far.other = self
        loop = asyncio.get_running_loop()
        try:
            if "/" in self.target:
                await loop.create_unix_connection(lambda: far, self.target)
            else:
                await loop.create_connection(lambda: far, *self.target.rsplit(":", 1))
        except OSError:
            self.transport.close()
            return
        self.other = far
        for data in self.early:
            self.send(data)


async def relay(delay_s, mb_per_s, targets):
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(lambda target=target: NearEnd(delay_s, mb_per_s, target), HOST, 0)
               for target in targets]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin, ended.set)
    await ended.wait()


def main():
    round_trip_us, mb_per_s, *targets = sys.argv[1:]
    # The default selector waits for whole milliseconds, and the kernel lets timers be late.
    Path("/proc/self/timerslack_ns").write_text("1")
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(relay(int(round_trip_us) / 2e6, int(mb_per_s), targets))


if __name__ == "__main__":
    main()
