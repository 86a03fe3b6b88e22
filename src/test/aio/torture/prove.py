"""Shows that the checks find what is wrong: data of a load is damaged in one way after the other, and checked.

Owner: prove() of its directory.  Each damage is done to a copy of the same sound data, whose check finds nothing.  What
a server's log says, and checksums of pages, are looked at by others than the checker, which are proved likewise.
"""
import dataclasses
import random
import re

import logs
import lookups
import memory as memories
import plans
import settings
import wal
from checker import Checker
from clients import Load
from cluster import Cluster, copy, pglib
from disk import unusable
from pages import PAGE, Pages
from rounds import Rounds
from schema import UNSET
from companion import differences

DAMAGES = {}    # what: function
CRASHED = 'crashed'     # what one returns that pretends a crash

# few connections, and nobody who cleans up in the meantime
SETTINGS = {**settings.FIXED, 'io_method': 'worker', 'autovacuum': 'off', 'shared_buffers': '32MB',
            'io_max_concurrency': 16, 'max_prepared_transactions': 10}


class NotThere(Exception):
    """The schema has nothing that could be damaged in this way."""


def damage(what):
    def add(function):
        DAMAGES[what] = function
        return function
    return add


class Sound:
    """A server with data that is as it should be, and what is known of it."""

    def __init__(self, cluster, schema, memory, transactions):
        self.cluster, self.schema, self.memory, self.transactions = cluster, schema, memory, transactions

    def fork(self):
        """The same for somebody who remembers something else."""
        return Sound(self.cluster, self.schema, self.memory.fork(), self.transactions)

    @property
    def table(self):
        """The first one, which is an ordinary table."""
        return self.schema.tables[0]

    def sql(self, *statements):
        # triggers, and constraints between tables, do not see it
        connection = self.cluster.connect('-c session_replication_role=replica')
        for statement in statements:
            connection.execute(statement)
        connection.close()

    def recent(self):
        """A transaction that has inserted several rows into the table, all of which are still as it left them."""
        rows = self.memory.table(self.table.name)
        for transaction in reversed(self.transactions):
            changes = transaction.changes.get(self.table.name, {})
            if len(changes) > 5 and all(version and rows.get(row) == version for row, version in changes.items()):
                return transaction, sorted(changes)
        raise pglib.PgError('no transaction has left many rows')

    def child(self):
        """A table whose references are in the memory."""
        for table in self.schema.tables:
            if table.linked:
                return table
        raise NotThere('no table refers to another by two columns: it takes another seed')

    def some_row(self):
        return next(iter(self.memory.table(self.table.name)))


@damage('a row that was acknowledged is gone')
def row_gone(sound):
    sound.sql(f'DELETE FROM {sound.table.name} WHERE id = {sound.some_row()}')


@damage('a row is there that nobody has written')
def row_extra(sound):
    # no trigger sets what triggers set
    columns = [column for column in sound.table.columns if column.source in ('given', 'trigger')]
    sound.sql(f'INSERT INTO {sound.table.name} ({", ".join(["id", "version", *[column.name for column in columns]])}) '
              f'SELECT {", ".join(["id", "1", *[column.value("id", "1") for column in columns]])} '
              f'FROM (SELECT 10000000::bigint) s (id)')


@damage('a row has another version')
def row_version(sound):
    sound.sql(f'UPDATE {sound.table.name} SET {sound.table.assignments("id", "(version + 1000)")} '
              f'WHERE id = {sound.some_row()}')


@damage('a row has content of another version')
def content(sound):
    column = next(column for column in sound.table.given() if column.kind not in ('range', 'key'))
    sound.sql(f'UPDATE {sound.table.name} SET {column.name} = {column.value("(id + 1)", "(version + 1)")} '
              f'WHERE id % 2 = 0')


@damage('half of the rows of a transaction are gone')
def half(sound):
    _, rows = sound.recent()
    sound.sql(*(f'DELETE FROM {sound.table.name} WHERE id = {row}' for row in rows[::2]))


@damage('a transaction that was acknowledged is gone, with all that it has done')
def transaction_gone(sound):
    transaction, rows = sound.recent()
    sound.sql(f'DELETE FROM txlog WHERE client = {transaction.client} AND seq = {transaction.seq}',
              *(f'DELETE FROM {sound.table.name} WHERE id = {row}' for row in rows))


@damage('a transaction that has not committed is there')
def transaction_extra(sound):
    sound.sql('INSERT INTO txlog (client, seq) VALUES (0, 1000000)')


@damage('a transaction that was prepared is gone')
def prepared_gone(sound):
    transaction = sound.memory.begin(0)
    sound.memory.prepare(transaction)
    sound.memory.is_prepared(transaction)


@damage('a transaction is prepared that nobody has prepared')
def prepared_extra(sound):
    sound.sql('BEGIN', f'UPDATE {sound.table.name} SET id = id WHERE id = {sound.some_row()}', "PREPARE TRANSACTION 'extra'")


@damage('a row that a trigger has written is gone')
def note_gone(sound):
    if not sound.cluster.query('SELECT FROM audit LIMIT 1'):
        raise pglib.PgError('no trigger has written anything: it takes another seed')
    sound.sql('DELETE FROM audit WHERE ctid = (SELECT min(ctid) FROM audit)')


@damage('an unlogged table is not empty after a crash')
def unlogged(sound):
    sound.cluster.stop()
    sound.cluster.start()
    return CRASHED


@damage('a byte of a table has changed')
def byte(sound):
    path, = sound.cluster.query(f"SELECT pg_relation_filepath('{sound.table.name}')")[0]
    sound.cluster.stop()
    with open(sound.cluster.data / path, 'r+b') as file:
        file.seek(PAGE + 8000)
        old = file.read(1)
        file.seek(PAGE + 8000)
        file.write(bytes([old[0] ^ 1]))
    sound.cluster.start()


@damage('a row refers to nothing any more')
def link_gone(sound):
    child = sound.child()
    row = next(row for row, slot in sound.memory.table(f'{child.name}.link').items() if slot != UNSET)
    sound.sql(f'UPDATE {child.name} SET up_id = NULL, up_slot = NULL WHERE id = {row}')


@damage('a row has another key, to which others refer')
def other_slot(sound):
    parent = sound.child().parent
    row = next(iter(sound.memory.table(parent.name)))
    sound.sql(f'UPDATE {parent.name} SET slot = slot + 1 WHERE id = {row}')


# What must also be seen by comparing the server with one that has sound data, as with a subscriber.
DIFFERENCES = (row_gone, row_extra, row_version, content, note_gone)

# What the checker makes of indexes does not depend on whose they are; these have all access methods.
PROOF = """
CREATE TABLE proof AS SELECT id, hashint8(id) & 1023 AS n, md5(id::text) AS t, ARRAY[id, id % 50] AS a,
    point(id % 100, id / 100) AS p FROM generate_series(1::bigint, 10000) id;
CREATE INDEX proof_btree ON proof (n); CREATE INDEX proof_hash ON proof USING hash (t);
CREATE INDEX proof_gin ON proof USING gin (a); CREATE INDEX proof_gist ON proof USING gist (p);
CREATE INDEX proof_spgist ON proof USING spgist (t);
CREATE INDEX proof_brin ON proof USING brin (id) WITH (pages_per_range = 2);
"""


def page_of_index(method):
    def zero(sound):
        path, size = sound.cluster.query(
            f"SELECT pg_relation_filepath('proof_{method}'), pg_relation_size('proof_{method}')")[0]
        sound.cluster.stop()
        with open(sound.cluster.data / path, 'r+b') as file:
            # BRIN can do without all but its last page
            file.seek((size - PAGE if method == 'brin' else size // 2) // PAGE * PAGE)
            file.write(bytes(PAGE))
        sound.cluster.start()
    return zero


def entries_of_index(method):
    def lose(sound):
        ready = f"UPDATE pg_index SET indisready = %s WHERE indexrelid = 'proof_{method}'::regclass"
        sound.sql('BEGIN', ready % 'false', 'CREATE TEMP TABLE kept AS SELECT * FROM proof WHERE id % 10 = 0',
                  'DELETE FROM proof WHERE id % 10 = 0', 'INSERT INTO proof SELECT * FROM kept', ready % 'true',
                  'COMMIT')
    return lose


for each in ('btree', 'hash', 'gin', 'gist', 'spgist', 'brin'):
    DAMAGES[f'a page of an index is zeros ({each})'] = page_of_index(each)
    # BRIN has no entries for rows
    if each != 'brin':
        DAMAGES[f'entries of an index are missing ({each})'] = entries_of_index(each)


# Which files of a server that has been shut down, by their queries; and does it matter that a byte of a page is wrong?
WRONG_PAGES = {
    'of a table': ("SELECT pg_relation_filepath('proof')", True),
    'of an index': ("SELECT pg_relation_filepath('proof_gin')", True),
    'of a shared catalog': ("SELECT pg_relation_filepath('pg_database')", True),
    'of a catalog of another database': (
        "SELECT format('base/%s/1255', oid) FROM pg_database WHERE datname = 'template1'", True),
    'of a file that belongs to nobody': ("SELECT pg_relation_filepath('proof') || '999'", False),
}

# Queries that know whether lookups are made ahead of need, are they ordered, and is what they give worth a complaint?
AHEAD = "current_setting('aio.lookup_ahead') <> '0'"
LOOKUPS = [
    ('the same rows', 'SELECT id FROM proof ORDER BY id', True, False),
    ('rows in another order, if it does not matter', f'SELECT id FROM proof ORDER BY id * ({AHEAD})::int', False, False),
    ('rows in another order', f'SELECT id FROM proof ORDER BY CASE WHEN {AHEAD} THEN -id ELSE id END', True, True),
    ('a row too few', f'SELECT id FROM proof WHERE id <> 77 OR NOT {AHEAD}', False, True),
    ('the last row twice', f'SELECT least(id, 10000) FROM generate_series(1, 10000 + ({AHEAD})::int) id ORDER BY id', True, True),
    ('a row of another', f'SELECT id, CASE WHEN id = 77 AND {AHEAD} THEN NULL ELSE n END FROM proof', False, True),
]

# What a log says, what is known of the disk, and is that worth a complaint?  See complaints() for the former.
SAYS = '2026-01-01 00:00:00.000 UTC [1] '
DIES = f'{SAYS}postmaster|00000|LOG:  client backend (PID 2) was terminated by signal %d: Whatever\n'
PANICS = f'{SAYS}walwriter|58030|PANIC:  could not write to log file "1" at offset 0, length 8192: %s\n'
TRAP = 'TRAP: failed Assert("%s"), File: "x.c", Line: 1, PID: %d\n'
INSIDE = '!IsTransactionOrTransactionBlock()'
LEADER = f'{SAYS}client backend|57P01|FATAL:  postmaster exited during a parallel transaction\n'
TWICE = f'{SAYS}client backend|01000|WARNING:  Abort%s while in ABORT state\n'
SENDER = f'{SAYS}walsender|55000|ERROR:  another connection of this base backup has failed\n'
FAILS = f'{SAYS}client backend|58030|ERROR:  could not open file "x": Input/output error\n'
HAS_COMMITTED = f'{SAYS}client backend|XX000|PANIC:  cannot abort transaction 7, it was already committed\n'
FUTURE = f'{SAYS}startup|01000|WARNING:  removing future two-phase state file for transaction 7\n%s' + \
    f'{SAYS}postmaster|00000|LOG:  startup process (PID 1) was terminated by signal 6: Aborted\n'
STALE = f'{SAYS}startup|01000|WARNING:  removing stale two-phase state from memory for transaction 7\n'
TOO_NEW = TRAP % ('TransactionIdPrecedesOrEquals(xid, XidFromFullTransactionId(nextFullXid))', 1)
LOGS = [
    ('a process was killed', DIES % 9, {'killed': True}, False),
    ('a process was killed, and nobody has done it', DIES % 9, {}, True),
    ('a process has no right to some memory', DIES % 11, {'killed': True, 'disk_fails': True}, True),
    ('a process gives up, as its disk fails', PANICS % 'Input/output error' + DIES % 6, {'disk_fails': True}, False),
    ('a process gives up, and its disk is fine', PANICS % 'Input/output error' + DIES % 6, {}, True),
    ('a process gives up, and does not say why', DIES % 6, {'disk_fails': True}, True),
    ('a process gives up as it has committed', FAILS + HAS_COMMITTED + DIES % 6, {'disk_fails': True}, False),
    ('a process gives up as it has committed, and its disk is fine', FAILS + HAS_COMMITTED + DIES % 6, {}, True),
    ('a process gives up as it has committed, and does not say why', HAS_COMMITTED + DIES % 6, {'disk_fails': True}, True),
    ('a pin was left', f'{SAYS}client backend|01000|WARNING:  resource was not closed: buffer 7\n',
     {'disk_fails': True}, True),
    ('a file cannot be read', f'{SAYS}checkpointer|58030|ERROR:  could not fsync file "x": Bad address\n', {}, True),
    ('an assertion has failed', TRAP % ('x', 2), {'disk_fails': True}, True),
    ('memory was overwritten', f'{SAYS}client backend|01000|WARNING:  problem in alloc set x: detected write past chunk end\n',
     {'disk_fails': True}, True),
    ('a shutdown is replayed again', STALE, {'streaming': True}, False),
    ('a prepared transaction ends twice', STALE, {}, True),
    ('a two-phase file is too new', FUTURE % TOO_NEW, {}, False),
    ('a two-phase file is too new, and recovery fails otherwise', FUTURE % (TRAP % ('x', 1)), {}, True),
    ('a leader has lost the postmaster', LEADER + TRAP % (INSIDE, 1), {'killed': True}, False),
    ('a leader has lost it, and nobody has done it', LEADER + TRAP % (INSIDE, 1), {}, True),
    ('a leader has lost it, and fails otherwise', LEADER + TRAP % ('x', 1), {'killed': True}, True),
    ('a leader has lost it, and another process fails', LEADER + TRAP % (INSIDE, 2), {'killed': True}, True),
    ('a leader has lost it, and aborts twice', LEADER + TWICE % 'Transaction', {'killed': True}, False),
    ('a leader has lost it, and aborts a subtransaction twice', LEADER + TWICE % 'SubTransaction', {'killed': True}, False),
    ('an abort begins twice, and the postmaster is there', TWICE % 'SubTransaction', {'killed': True}, True),
    ('a subscriber has lost the publisher', f'{SAYS}logical replication apply worker|08006|ERROR:  could not connect to the '
     'publisher: no such file\n', {'subscriber': True}, False),
    ('a change cannot be applied', f'{SAYS}logical replication apply worker|55000|ERROR:  logical replication target '
     'relation "public.t" does not exist\n', {'subscriber': True}, True),
    ('a change meets another', f'{SAYS}logical replication apply worker|00000|LOG:  conflict detected on relation "public.t": '
     'conflict=update_missing\n', {'subscriber': True, 'disk_fails': True}, True),
    ('a base backup fails, which its client knows', SENDER, {'backups': True}, False),
    ('a base backup fails, and nobody takes one', SENDER, {'streaming': True}, True),
    ('a sanitizer has found something', 'x.c:1:2: runtime error: shift exponent 32 is too large\n', {}, True),
]


def compare_lookups(cluster, query, ordered):
    """Run a query without lookups ahead and with them, at once and by several cursors; the complaints of each time."""
    connection = cluster.connect()
    connection.rows('BEGIN')
    runs = [list(lookups.compare(connection.rows, random.Random(seed), query, ordered, ['proof'])) for seed in range(9)]
    connection.close()
    return runs


def wrong_page(cluster, query):
    """Change a byte of the first page of a file, or of one that is made, and look at all checksums."""
    path, = cluster.query(query)[0]
    pages = Pages(cluster)
    cluster.stop()
    path = cluster.data / path
    content = path.read_bytes() if path.exists() else (cluster.data / 'global' / '1262').read_bytes()
    at = PAGE - 100
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
    pglib.give_to_account(path)
    return list(pages.check())


def holes(cluster, segment):
    """Have zeros where each segment of the WAL begins; returns what holes there were before, and are."""
    # one of them has more than a page then, which no checkpoint removes
    cluster.query("SELECT pg_logical_emit_message(true, 'proof', repeat('x', 100000))")
    cluster.stop('immediate')
    before = list(wal.holes(cluster.data, segment))
    for path in (cluster.data / 'pg_wal').glob('[0-9A-F]' * 24):
        content = path.read_bytes()
        path.write_bytes(bytes(PAGE) + content[PAGE:])
    return before, list(wal.holes(cluster.data, segment))


def prove(options, directory, report):
    """Whether everything was found."""
    rounds = Rounds(options, directory, report)
    epoch = dataclasses.replace(plans.epoch_of(options.seed, 0, [False]), checksums=True, clients=5, companion=None)
    publisher = None
    rounds.enter(epoch, 0)
    try:
        sound = load(rounds, options, SETTINGS)
        rounds.cluster.query(PROOF)
        complaints = check(sound)
        twice = [compare_lookups(rounds.cluster, query, ordered) for _, query, ordered, _ in LOOKUPS]
        rounds.cluster.stop()
        found = memories.read(directory / 'epoch' / 'memory.log')
        same = found.settled == sound.memory.settled and all(
            found.table(name) == sound.memory.table(name) for table in sound.schema.tables
            for name in (table.name, *table.ledgers()))
        results = [say('nothing is wrong, and nothing is found', not complaints, complaints),
                   say('the log tells what the memory has', same, [])]
        for (what, _, _, matters), runs in zip(LOOKUPS, twice):
            as_it_should = all(bool(complaints) == matters for complaints in runs)
            results.append(say(f'lookups ahead give {what}', as_it_should,
                               [text.splitlines()[-1] for run in runs for text in run]))
        good = directory / 'good'
        copy(rounds.cluster.data, good)
        other = directory / 'epoch' / 'other'
        copy(good, other)
        publisher = Cluster(options.install, other, directory / 'epoch' / 'other.log')
        publisher.start(SETTINGS)
        for what, function in DAMAGES.items():
            pglib.remove(rounds.cluster.data)
            copy(good, rounds.cluster.data)
            rounds.cluster.start(SETTINGS)
            damaged = sound.fork()
            before = function in DIFFERENCES and compare(publisher, rounds.cluster, sound, report)
            try:
                crashed = function(damaged) == CRASHED
            except NotThere as why:
                print(f'skipped {what}: {why}')
                rounds.cluster.stop('immediate')
                continue
            if function in DIFFERENCES:
                complaints = compare(publisher, rounds.cluster, sound, report)
                results.append(say(f'a subscriber: {what}', complaints and not before, before or complaints))
            complaints = check(damaged, crashed)
            results.append(say(what, complaints, complaints))
            rounds.cluster.stop('immediate')
        for what, (query, matters) in WRONG_PAGES.items():
            pglib.remove(rounds.cluster.data)
            copy(good, rounds.cluster.data)
            rounds.cluster.start(SETTINGS)
            complaints = wrong_page(rounds.cluster, query)
            results.append(say(f'a checksum is wrong, {what}', bool(complaints) == matters, complaints))
        pglib.remove(rounds.cluster.data)
        copy(good, rounds.cluster.data)
        rounds.cluster.start(SETTINGS)
        before, complaints = holes(rounds.cluster, epoch.segment << 20)
        results.append(say('pages of the WAL are zeros', complaints and not before, before or complaints))
    finally:
        if publisher:
            publisher.close()
        rounds.leave()
    for what, text, known, matters in LOGS:
        complaints = list(logs.complaints(text, **known))
        results.append(say(f'the log: {what}', bool(complaints) == matters, complaints))
    if unusable():
        print(f'skipped power loss: {unusable()}')
    else:
        results.append(lose_power(options, rounds, dataclasses.replace(epoch, disk=True)))
    return all(results)


def load(rounds, options, chosen):
    """Have clients work for a while; returns what they leave."""
    rounds.cluster.start(chosen)
    connection = rounds.cluster.connect()
    rounds.schema.create(connection)
    connection.close()
    rounds.memory.history = True
    clients = Load(rounds.cluster, rounds.schema, rounds.memory, f'{options.seed} prove', rounds.epoch.clients)
    clients.start()
    clients.wait_for(600)
    clients.stop()
    for complaint in clients.complaints:
        raise pglib.PgError(complaint)
    transactions = [transaction for tail in rounds.memory.tails.values() for transaction in tail]
    return Sound(rounds.cluster, rounds.schema, rounds.memory, transactions)


def compare(publisher, subscriber, sound, report):
    return list(differences(publisher, subscriber, sound.schema, report))


def check(sound, crashed=False):
    return Checker(sound.cluster, sound.schema, sound.memory, random.Random(0), deep=True).check(crashed).complaints


def lose_power(options, rounds, epoch):
    """What a server has that does not sync is not what it has acknowledged, when the power is back."""
    rounds.enter(epoch, 0)
    try:
        sound = load(rounds, options, {**SETTINGS, 'fsync': 'off'})
        rounds.cluster.query('CHECKPOINT')
        rounds.disk.lose_power('512', 0.5)
        rounds.cluster.kill()
        rounds.cluster.wait_for_orphans()
        rounds.disk.unmount()
        rounds.disk.mount()
        # that would be enough for it not to start
        (rounds.cluster.data / 'postmaster.pid').unlink(missing_ok=True)
        log = rounds.cluster.log_size()
        try:
            rounds.cluster.start()
            complaints = check(sound, crashed=True)
        except pglib.PgError:
            said = rounds.cluster.read_log(log)
            complaints = [line for line in said.splitlines()
                          if re.search(r'\] (startup|postmaster|checkpointer)\|\w+\|(FATAL|PANIC):', line)]
        return say('power is lost, and fsync was off', complaints, complaints)
    finally:
        rounds.leave()


def say(what, good, complaints):
    print(f'{"ok" if good else "FAILED"} {what}', *(f'    {complaint.strip()[:200]}' for complaint in complaints[:2]),
          sep='\n', flush=True)
    return bool(good)
