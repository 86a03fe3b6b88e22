"""A table partitioned over several servers: the servers, and what a coordinator must be told of them.

Owner:    whoever opens `with running(...) as shards:`; leaving the block stops the servers and removes their data.
"""

import contextlib
import os
import secrets
import signal
import socket
import time
from pathlib import Path

import pglib
import relay

HOST = "127.0.0.1"


class Shard(pglib.Cluster):
    """A server that is reached by TCP as well, with a password, because every user of this machine can connect."""

    def __init__(self, install, data, settings=None):
        super().__init__(install, data, settings)
        self.listen_addresses = HOST
        self.password = secrets.token_hex(16)

    def initdb(self, *options):
        return super().initdb("--auth-host=scram-sha-256", *options)

    def start(self):
        """The port stays the same when it is started again."""
        if self.port == pglib.PORT:
            with socket.create_server((HOST, 0)) as free:
                self.port = free.getsockname()[1]
        super().start()

    def admit(self):
        """Let in who knows the password."""
        session = self.session()
        session.query(f"ALTER ROLE postgres PASSWORD {pglib.quote(self.password)}")
        session.close()

    def address(self, port):
        return f"host={HOST} port={port} dbname=postgres user=postgres password={self.password}"

    def kill(self):
        """End all processes where they stand, as a crash does."""
        with pglib.undisturbed():
            postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
            os.kill(postmaster, signal.SIGSTOP)     # or it might start another one meanwhile
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
            processes = [postmaster, *map(int, children)]
            for process in processes:
                os.kill(process, signal.SIGKILL)
            while any(map(is_alive, processes)):
                time.sleep(0.01)
            (self.data / "postmaster.pid").unlink()
            self.stop()


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def running(directory, installs, settings):
    """A server for each of the installations, new and empty."""
    remove(directory, installs[0])
    try:
        with contextlib.ExitStack() as stack:
            shards = [Shard(install, directory / f"shard{number}", settings) for number, install in enumerate(installs)]
            for shard in shards:
                stack.enter_context(shard.initdb("--no-sync")).admit()
            yield shards
    finally:
        remove(directory, installs[0])


def remove(directory, install):
    """Also those of a run that was killed outright, which may be running still."""
    for data in directory.glob("shard*"):
        if data.is_dir():
            pglib.Cluster(install, data).stop("immediate")
            pglib.remove(data)


def far_away(shards, round_trip_us):
    """Within this block, the ports by which the shards are further away than they are."""
    return relay.running([(HOST, shard.port) for shard in shards], round_trip_us)


def introduce(session, shards, batch_size):
    """Tell a coordinator of the shards."""
    session.query("CREATE EXTENSION postgres_fdw")
    for number, shard in enumerate(shards):
        session.query(f"""
            CREATE SERVER shard{number} FOREIGN DATA WRAPPER postgres_fdw
                OPTIONS (host '{HOST}', port '{shard.port}', dbname 'postgres', batch_size '{batch_size}',
                         async_capable 'true');
            CREATE USER MAPPING FOR CURRENT_USER SERVER shard{number}
                OPTIONS (user 'postgres', password '{shard.password}')""")


def redirect(session, ports):
    """Have a coordinator reach the shards by these ports."""
    for number, port in enumerate(ports):
        session.query(f"ALTER SERVER shard{number} OPTIONS (SET port '{port}')")


def create_partitioned(session, table, create_sql, key, partitions):
    """Partitions are pairs, the number of a shard and the name of the table there, or None for a local table."""
    session.query(f"{create_sql} PARTITION BY HASH ({key})")
    for number, remote in enumerate(partitions):
        values = f"PARTITION OF {table} FOR VALUES WITH (MODULUS {len(partitions)}, REMAINDER {number})"
        if remote:
            shard, name = remote
            session.query(f"CREATE FOREIGN TABLE {table}_{number} {values} SERVER shard{shard} "
                          f"OPTIONS (table_name '{name}')")
        else:
            session.query(f"CREATE TABLE {table}_{number} {values}")
