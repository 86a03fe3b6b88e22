"""What a round is: all of it that is chosen, from the seed and the number of the round.

Rounds come in epochs of 5 to 10, which share a data directory with one schema; with which round an epoch begins depends
on the seed only.  The last round of an epoch may be one of replication or of backup (standby.py).
"""
import dataclasses
import random

import backups
import faults
import settings

# Rounds that are not one fault, each for so many of 10 epochs, and possible last rounds of one.
SPECIAL = {'standby': 2, 'backup': 2}
ENDINGS = ['fast', 'fast', 'fast', 'immediate']


@dataclasses.dataclass
class Epoch:
    number: int
    first: int
    rounds: int
    clients: int
    checksums: bool
    segment: int                # MB
    disk: bool                  # on the one that fails
    special: str                # what its last round is, or None
    companion: str              # 'subscriber', 'standby' or 'backup', beside the server; or None
    compared: bool              # recovery compares pages with those that the WAL has


@dataclasses.dataclass
class Companion:
    settings: dict
    fault: str                  # or None
    statements: int             # after which it comes, those of the plan at most; or when the first server has recovered
    ending: str


@dataclasses.dataclass
class Plan:
    round: int
    epoch: Epoch
    last: bool                  # nothing comes after it in this directory
    fault: str
    settings: dict
    statements: int             # after which the fault comes
    disturbances: list          # (after so many statements, client, is it terminated or cancelled)
    ending: str                 # how the server is stopped after the check
    companion: Companion        # or None

    @property
    def method(self):
        return self.settings['io_method']

    @property
    def direct(self):
        return 'direct' if self.settings['debug_io_direct'] else 'buffered'

    def describe(self):
        where = 'fault disk' if self.epoch.disk else 'disk'
        companion = ''
        if self.companion:
            companion = f', {self.epoch.companion} {self.companion.settings["io_method"]}: {self.companion.fault}'
        return f'{self.method}, {self.direct}, {where}: {self.fault}{companion}'


# Who is beside the server in one epoch after the other, such that each has both kinds of disks.
COMPANIONS = [None, 'subscriber', 'subscriber', 'standby', 'standby', 'subscriber', 'subscriber', 'backup', 'backup', None]


def epoch_of(seed, number, disks, clients=None, companion=None):
    """The epoch of a round; `disks` are those that may be used, False for a plain one, True for one that fails.

    `companion` tells who is beside the server in all epochs, or is 'none', or None.
    """
    lengths, first, index = random.Random(f'{seed} epochs'), 0, 0
    while True:
        length = lengths.randint(5, 10)
        if number < first + length:
            break
        first, index = first + length, index + 1
    rng = random.Random(f'{seed} epoch {index}')
    number_of_clients, disk = rng.randint(4, 7), disks[index % len(disks)]
    checksums, segment = rng.random() < 0.7, rng.choice([1, 1, 16])
    special = rng.choices([None, *SPECIAL], [10 - sum(SPECIAL.values()), *SPECIAL.values()])[0]
    companion = COMPANIONS[index % len(COMPANIONS)] if companion is None else {'none': None}.get(companion, companion)
    if companion and special == 'standby' or companion == 'backup':
        special = None      # it has not what a companion needs, or nothing that this one has not
    compared = companion in ('standby', 'backup') and rng.random() < 0.3
    return Epoch(index, first, length, clients or number_of_clients, checksums, segment, disk, special, companion, compared)


def plan(seed, number, options, our_server, developer):
    """`options` has methods, disks, direct, faults, clients, companion and settings, as the command line of `run`."""
    alone = 'standby' in options.faults or 'backup' in options.faults and options.companion == 'backup'
    companion = 'none' if alone else options.companion
    epoch = epoch_of(seed, number, options.disks, options.clients, companion)
    rng = random.Random(f'{seed} round {number}')
    method = options.methods[number % len(options.methods)]
    last = number == epoch.first + epoch.rounds - 1
    weights = faults.possible(method, epoch.disk)
    if options.faults:
        weights = {name: weight for name, weight in {**weights, **SPECIAL}.items() if name in options.faults}
    fault = rng.choices(list(weights), weights.values())[0] if weights else 'kill_all'
    if last and epoch.special and not options.faults:
        fault = epoch.special
    special = fault in SPECIAL
    streaming = special or epoch.companion in ('standby', 'backup')
    chosen = settings.choose(rng, method, options.direct, our_server, developer, streaming, epoch.disk)
    # servers that follow another take their time, and backups need some
    most = {None: 1000, 'backup': 2000}.get(epoch.companion, 300)
    statements = rng.randint(50, most)
    disturbances = sorted((rng.randrange(statements), rng.randrange(epoch.clients), rng.random() < 0.3)
                          for _ in range(rng.choice([0, 1, 2, 5, 10])))
    ending = rng.choice(ENDINGS)
    companion = None
    if epoch.companion:
        if epoch.companion == 'subscriber':
            settings.publish(rng, chosen, developer)
        elif epoch.companion == 'backup':
            settings.be_backed_up(rng, chosen)
        if epoch.compared:
            settings.be_compared(chosen)
        companion = companion_of(rng, method, options, epoch, statements, our_server, developer)
        if special:
            companion.fault = None
    chosen.update(options.settings)
    return Plan(number, epoch, last or special, fault, chosen, statements, disturbances, ending, companion)


def companion_of(rng, first_method, options, epoch, statements, our_server, developer):
    # an account may have little memory to lock
    methods = [method for method in options.methods if first_method != 'io_uring' or method != 'io_uring']
    method, what = rng.choice(methods or ['worker']), epoch.companion
    chosen = settings.choose(rng, method, options.direct, our_server, developer, what != 'subscriber', epoch.disk)
    {'subscriber': settings.subscribe, 'standby': settings.follow, 'backup': settings.be_backed_up}[what](rng, chosen)
    chosen.update(options.settings)
    chosen['io_method'] = method
    weights = faults.possible(method, epoch.disk)
    if what == 'backup':
        weights = {**backups.FAULTS, **(backups.DISK_FAULTS if epoch.disk else {})}
    if options.faults:
        weights = {name: weight for name, weight in weights.items() if name in options.faults} or weights
    fault = rng.choices(list(weights), weights.values())[0] if rng.random() < 0.7 else None
    # clients are at work while a backup has its own
    last = statements - 1 if what == 'backup' else statements * 5 // 4
    return Companion(chosen, fault, rng.randint(1, last), rng.choice(ENDINGS))
