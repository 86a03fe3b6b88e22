"""What happens to a server in the middle of its work.

A fault is a method of Inflictor.  Of those marked `crash`, recovery follows, and unlogged tables are empty; those that
need a `disk` need the one of disk.py.  What a fault does depends on the random numbers; whom it hits, on which
processes there are.
"""
import re
import time

from cluster import wait_until

FAULTS = {}     # name: (weight, does the server crash, does it need the disk)


def fault(weight, crash=True, disk=False):
    def add(function):
        FAULTS[function.__name__] = weight, crash, disk
        return function
    return add


def possible(method, with_disk):
    """{name: weight} of the faults for a server with this io_method."""
    return {name: weight for name, (weight, _, disk) in FAULTS.items()
            if disk <= with_disk and (name != 'kill_worker' or method in ('worker', 'libaio'))}


class Inflictor:
    def __init__(self, rng, cluster, load, disk):
        self.rng, self.cluster, self.load, self.disk = rng, cluster, load, disk
        self.losses = []            # what each loss of power has lost
        self.dark = []              # from where to where the log was written without power
        self.killed = False         # was any process?

    def kill(self, pids=None):
        self.killed = True
        return self.cluster.kill(pids)

    def kill_one(self, *titles):
        victims = [pid for pid, title in sorted(self.cluster.processes().items())
                   if any(word in title for word in titles)]
        if not victims or not self.kill([self.rng.choice(victims)]):
            self.kill_all()

    @fault(6)
    def kill_backend(self):
        processes = self.cluster.processes()
        pids = [client.pid for client in self.load.clients if client.pid in processes]
        pids += sorted(pid for pid, title in processes.items() if 'sending backup' in title)
        if not pids or not self.kill([self.rng.choice(pids)]):
            self.kill_all()

    @fault(5)
    def kill_worker(self):
        self.kill_one('io worker')

    @fault(3)
    def kill_checkpointer(self):
        self.kill_one('checkpointer')

    @fault(3)
    def kill_writer(self):
        self.kill_one('walwriter', 'background writer')

    @fault(4)
    def kill_postmaster(self):
        self.kill([self.cluster.postmaster()])

    @fault(6)
    def kill_all(self):
        self.kill()

    def begin_recovery(self):
        """Start, and wait until it is somewhere between its beginning and its end, mostly in redo.

        A server that was killed just after the checkpoint at the end of recovery believes that it was shut down.
        """
        log, redo, delay = self.cluster.log_size(), self.rng.random() < 0.7, self.rng.random() * 0.25
        self.cluster.start_begins()
        if redo:
            begun = re.compile('redo (starts|is not required)|database system was shut down')
            wait_until(lambda: begun.search(self.cluster.read_log(log)) or not self.cluster.postmaster(),
                       'redo starts', pause=0.001)
        time.sleep(delay)

    @fault(4)
    def kill_in_recovery(self):
        """And again, once or twice, while it recovers."""
        self.kill_all()
        for _ in range(self.rng.choice([1, 1, 2])):
            self.begin_recovery()
            self.kill_all()

    @fault(4)
    def stop_immediate(self):
        self.killed = True      # whoever takes too long is
        self.cluster.stop('immediate')

    @fault(3, crash=False)
    def stop_fast(self):
        self.cluster.stop('fast')

    @fault(2, crash=False)
    def stop_smart(self):
        self.load.stopping.set()
        self.cluster.stop('smart')

    @fault(30, disk=True)
    def power_loss(self):
        torn, keep = self.rng.choice(['512', '4096', 'none']), self.rng.choice([0, 0.1, 0.5, 0.9])
        # I/O fails before the last process is gone
        self.load.dark = True
        since = self.cluster.log_size()
        self.losses.append(self.disk.lose_power(torn, keep))
        self.kill_all()
        self.cluster.wait_for_orphans()
        self.dark.append((since, self.cluster.log_size()))
        self.disk.unmount()
        self.disk.mount()

    @fault(8, disk=True)
    def power_loss_in_recovery(self):
        """And again, once or twice, while it recovers."""
        self.power_loss()
        for _ in range(self.rng.choice([1, 1, 2])):
            self.begin_recovery()
            self.power_loss()

    # Disks that fail for a while.  The server may survive that or not; if they are only slow it must not notice.

    def disturbed(self, *rules, fails=True, seconds=3):
        """Let clients go on under these rules, then heal the disk; perhaps pull the plug then."""
        statements = self.rng.randint(5, 60)
        self.load.disk_fails = fails
        for rule in rules:
            self.disk.command(rule)
        self.load.wait_for(self.load.count + statements, limit=seconds)
        self.disk.heal()
        self.rng.choice([self.power_loss, self.kill_all, self.stop_fast, lambda: None])()

    def where(self):
        data = self.cluster.data.name
        return self.rng.choice([f'{data}/base/*', f'{data}/base/*', f'{data}/pg_wal/*', '*'])

    @fault(4, crash=False, disk=True)
    def write_error(self):
        error = self.rng.choice(['EIO', 'ENOSPC'])
        self.disturbed(f'error {error} write,fallocate file={self.where()} probability={self.rng.choice([0.02, 0.3])}')

    @fault(4, crash=False, disk=True)
    def read_error(self):
        self.disturbed(f'error EIO read file={self.cluster.data.name}/base/* probability={self.rng.choice([0.02, 0.3])}')

    @fault(4, crash=False, disk=True)
    def sync_error(self):
        error, data = self.rng.choice(['EIO', 'EIO', 'ENOSPC']), self.rng.choice(['kept', 'lost'])
        self.disturbed(f'error {error} fsync file={self.where()} count={self.rng.randint(1, 3)} data={data}')

    @fault(3, crash=False, disk=True)
    def short_transfers(self):
        self.disturbed(f'short read,write file={self.where()} multiple={self.rng.choice([512, 4096])} probability=0.3')

    @fault(3, crash=False, disk=True)
    def stall(self):
        operation = self.rng.choice(['read', 'write', 'fsync', 'write,fsync', 'disk'])
        self.disturbed(f'stall {operation} seconds={self.rng.choice([0.5, 2])} count=1 after={self.rng.randrange(20)}',
                       fails=False)

    @fault(2, crash=False, disk=True)
    def slow(self):
        self.disturbed(f'delay disk latency={self.rng.choice([200, 2000])} jitter=1000', fails=False)

    @fault(3, crash=False, disk=True)
    def full(self):
        used = int(self.disk.status()['used'])
        self.disturbed(f'quota {used + self.rng.choice([0, 100_000, 3_000_000])}')
