"""Clients, each a thread with a connection, that change their own rows and remember what they were told.

Client 0 does maintenance, too (maintenance.py); the last one sends transactions without waiting (pipeline.py).

What a transaction does depends on the seed, the client, and its number; the order among clients is up to the server.
Every statement ends with success or an SQLSTATE that fits, and within LIMIT seconds.  A connection is lost only if it
was terminated, or if the server has crashed.  Whatever else happens is a complaint.
"""
import random
import re
import signal
import threading
import time
import traceback

from cluster import LIMIT, hang
from statements import STATEMENTS, array, remove
from wire import Gone, Lost, Refused

# rows of a client in a table, from which on it rather deletes
MANY_ROWS = 3000

# what may happen to any statement: cancelled, deadlock, lock not to be had, terminated
ANY_TIME = {'57014', '40P01', '55P03', '57P01', '57P02', '57P03'}
# a REPEATABLE READ transaction whose rows a foreign key has locked
REPEATABLE = {'40001'}
# input and output failed, disk full
DISK = {'58030', '53100'}
DISK_SAYS = re.compile(r'Input/output error|No space left on device|checkpoint request failed|'
                       # a file of which only a part was read is taken for corrupted
                       r'read (?:only )?\d+ of \d+|read too few bytes|'
                       # and who starts a parallel worker does not tell why it cannot read this
                       r'PG_VERSION" does not contain valid data')

INCARNATION = "SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'"


class AsPlanned(Exception):
    """A statement has failed, as it was meant to; its transaction is over."""


class Load:
    """All clients of one round."""

    def __init__(self, cluster, schema, memory, seed, number, kinds=None, streaming=False, savepoints=True):
        self.cluster, self.schema, self.memory, self.seed = cluster, schema, memory, seed
        self.kinds = kinds          # of statements, or None for all
        self.streaming = streaming  # take down where in the WAL transactions are, and leave none prepared
        self.savepoints = savepoints    # may changes be rolled back without their transaction
        self.count = 0              # statements that have ended
        self.compared = 0           # queries that were run without lookups ahead and with them
        self.changed = threading.Condition()
        self.stopping = threading.Event()
        self.complaints = []
        self.lost = set()           # clients whose connection was lost
        self.terminated = set()     # clients that were terminated
        self.struck = False         # has the fault of the server begun?
        self.disk_fails = self.dark = False     # what the disk does, or did; whether there is power
        self.incarnation = None
        from maintenance import Maintainer
        from pipeline import Pipeliner
        kinds_of_clients = [Maintainer, *[Client] * (number - 2), Pipeliner][:number]
        self.clients = [kind(self, n, number) for n, kind in enumerate(kinds_of_clients)]

    def start(self):
        self.incarnation = self.cluster.query(INCARNATION)
        for client in self.clients:
            client.thread.start()

    def tick(self):
        with self.changed:
            self.count += 1
            self.changed.notify_all()

    def wait_for(self, count, limit=LIMIT):
        """Until so many statements have ended, no client is left, or that many seconds have passed."""
        deadline = time.monotonic() + limit
        with self.changed:
            while self.count < count and time.monotonic() < deadline:
                self.changed.wait(0.1)
                if not any(client.thread.is_alive() for client in self.clients):
                    return
                self.watch()

    def watch(self):
        for client in self.clients:
            busy = client.busy
            if busy and time.monotonic() - busy[0] > LIMIT:
                hang(f'client {client.number} has waited for {LIMIT} s, for: {busy[1][:300]}')

    def stop(self):
        """Clients end their transactions, and disconnect."""
        self.stopping.set()
        for client in self.clients:
            while client.thread.is_alive():
                client.thread.join(0.1)
                self.watch()

    def complain(self, text):
        self.complaints.append(text)

    def disturb(self, number, terminate):
        """Cancel what a client is doing, or terminate its session."""
        pid = self.clients[number].pid
        if pid:
            if terminate:
                self.terminated.add(number)
            self.cluster.signal(pid, signal.SIGTERM if terminate else signal.SIGINT)


class Client:
    lock_timeout = '15s'

    def __init__(self, load, number, clients):
        self.load, self.memory = load, load.memory
        self.number, self.clients = number, clients
        self.thread = threading.Thread(target=self.live, daemon=True)
        self.tables = [table for table in load.schema.tables if table.owner in (None, number)]
        self.connection = self.pid = None
        self.busy = None            # since when, with what
        self.statements = 0
        self.batch = None           # statements that are going to be sent as one message
        self.temporary = False      # the transaction has used temporary tables
        self.prepares = False       # and will be prepared
        self.repeatable = False     # what it sees does not change
        self.doomed = None          # or its COMMIT must fail with this SQLSTATE
        self.next = {table.name: self.first_row(table) for table in self.tables}

    def first_row(self, table):
        rows = self.memory.of(self.number, table.name)
        return (max(rows) - self.number) // self.clients + 1 if rows else 1

    def live(self):
        try:
            turn = 0
            while not self.load.stopping.is_set() and self.turn(turn):
                turn += 1
        except Exception:
            self.complain(traceback.format_exc())
        finally:
            self.disconnect()

    def turn(self, number):
        """One transaction; False if it was the last one."""
        try:
            if not self.connection:
                self.connect()
            return self.work(random.Random(f'{self.load.seed} {self.number} {number}'))
        except Lost:
            self.load.lost.add(self.number)
            pid = self.pid
            self.disconnect()
            return self.come_back(pid)

    def complain(self, text):
        self.load.complain(f'client {self.number}: {text}')

    # The connection

    def connect(self):
        self.connection = self.load.cluster.connect(f'-c lock_timeout={self.lock_timeout}')
        self.pid = self.connection.pid

    def disconnect(self):
        connection, self.connection, self.pid = self.connection, None, None
        if connection:
            connection.close()

    def come_back(self, pid):
        """Connect again after the connection was lost, and find out about a COMMIT that got no answer.

        False if the server has failed: then it is not for a client to find out what is left.
        """
        while not self.load.stopping.is_set():
            try:
                self.connect()
                if self.rows(INCARNATION) != self.load.incarnation:
                    return False
                while pid and self.rows(f'SELECT 1 FROM pg_stat_activity WHERE pid = {pid}'):
                    time.sleep(0.02)
                for transaction in list(self.memory.tails.get(self.number, ())):
                    if transaction.fate == 'unknown':
                        if self.rows(f'SELECT 1 FROM txlog WHERE client = {self.number} AND seq = {transaction.seq}'):
                            self.memory.acknowledged(transaction, durable=False)
                        else:
                            self.memory.refused(transaction)
                return self.number not in self.memory.prepared
            except (Lost, Refused):
                self.disconnect()
                time.sleep(0.05)
        return False

    # Statements

    def execute(self, sql, data=None):
        """Send a statement, with data if it is a COPY; return the result."""
        self.statements += 1
        self.busy = time.monotonic(), sql
        try:
            return self.connection.execute(sql, data)
        finally:
            self.busy = None
            self.load.tick()

    def run(self, sql, rows=None):
        """Send a statement, now or with the batch.  `rows` are those that it has to change, or return."""
        if self.batch is not None:
            self.batch.append(sql)
            return
        result = self.execute(sql)
        if rows is not None and result.count != len(rows):
            self.complain(f'{result.tag} instead of {len(rows)} rows: {sql[:500]}')

    def rows(self, sql):
        return self.execute(sql).rows

    def copy_out(self, sql):
        return b''.join(self.execute(sql).data)

    def copy_in(self, sql, data):
        self.execute(sql, data)

    def fails(self, sql, *codes, data=None):
        """A statement that must fail with one of these, which ends the transaction or what follows a savepoint."""
        try:
            self.execute(sql, data)
        except Refused as error:
            if error.code in codes:
                raise AsPlanned from error
            raise
        self.complain(f'should have failed with {codes[0]}: {sql[:500]}')
        raise AsPlanned

    def dooms(self, sql, code):
        """A statement that must fail with this, or let COMMIT fail with it."""
        try:
            self.execute(sql)
        except Refused as error:
            if error.code == code:
                raise AsPlanned from error
            raise
        self.doomed = code

    # Rows

    def fresh(self, transaction, table, rng, number):
        """Rows that are not there, as many if they can be had."""
        if table.parent:
            there = transaction.visible(table)
            rows = [row for row in transaction.visible(table.parent) if row not in there
                    and not (table.linked and transaction.slot(table.parent, row))]
            first = rng.randrange(len(rows)) if rows else 0
            return sorted(rows[first:first + number])
        first = self.next[table.name]
        self.next[table.name] += number
        return [place * self.clients + self.number for place in range(first, first + number)]

    def existing(self, transaction, table, rng, number):
        """Rows that are there, neighbours by id, up to as many."""
        rows = sorted(transaction.visible(table))
        first = rng.randrange(len(rows)) if rows else 0
        return rows[first:first + number]

    def source(self, rows):
        """What goes into FROM to get these ids."""
        if len(rows) > 2 and rows[-1] - rows[0] == (len(rows) - 1) * self.clients:
            return f'generate_series({rows[0]}::bigint, {rows[-1]}, {self.clients}) AS s (id)'
        return f"unnest('{array(rows)}'::bigint[]) AS s (id)"

    def own(self):
        return f'id % {self.clients} = {self.number}'

    def where(self, rows):
        """These ids, which are neighbours among those that the client has in a table."""
        return f'id BETWEEN {rows[0]} AND {rows[-1]} AND {self.own()}'

    # Transactions

    def work(self, rng):
        shapes = {'block': 70, 'message': 15, 'rollback': 6, 'prepare': 0 if self.load.streaming else 5}
        shape = rng.choices(list(shapes), shapes.values())[0]
        return self.transaction(rng, shape)

    def transaction(self, rng, shape):
        """One transaction; False if the client has to rest, as one of its transactions is prepared."""
        transaction = self.memory.begin(self.number)
        self.temporary, self.prepares, self.doomed = False, shape == 'prepare', None
        # as one message, or one by one
        self.batch = [] if shape == 'message' else None
        durable = shape == 'prepare' or rng.random() < 0.9
        try:
            self.repeatable = rng.random() < 0.3
            self.run(f'BEGIN ISOLATION LEVEL {"REPEATABLE READ" if self.repeatable else "READ COMMITTED"}')
            self.fill(transaction, rng, durable)
            if shape == 'rollback':
                self.run('ROLLBACK')
            elif shape == 'prepare' and not self.temporary:
                return self.commit_in_two_phases(transaction, rng)
            else:
                self.commit(transaction, durable)
        except AsPlanned:
            self.roll_back()
        except Refused as error:
            self.judge(error)
            self.batch = None
            self.roll_back()
        finally:
            self.batch = None
        return True

    def roll_back(self):
        """End a transaction that has failed.

        If a subtransaction has, statement_timeout is still what the transaction has set, also for ROLLBACK.
        """
        while True:
            try:
                return self.run('ROLLBACK')
            except Refused as error:
                if error.code != '57014':
                    raise

    def fill(self, transaction, rng, durable):
        """All between BEGIN and COMMIT."""
        note = f'INSERT INTO txlog (client, seq) VALUES ({self.number}, {transaction.seq})'
        if not durable:
            self.run('SET LOCAL synchronous_commit = off')
        if rng.random() < 0.04:
            self.run(f'SET LOCAL statement_timeout = {rng.choice([1, 5, 20, 100])}')
        early = rng.random() < 0.5
        if early:
            self.run(note)
        for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5])):
            if not self.doomed:
                self.change(transaction, rng)
        if not early:
            self.run(note)

    def change(self, transaction, rng):
        """One statement, or one within a savepoint."""
        table = rng.choice(self.tables)
        names = [name for name, (_, _, plain) in STATEMENTS.items()
                 if (plain or self.batch is None) and (not self.load.kinds or name in self.load.kinds)]
        names = names or ['insert_values']
        function = STATEMENTS[rng.choices(names, [STATEMENTS[name][1] for name in names])[0]][0]
        savepoint = rng.random() < 0.15 or function.__name__ == 'fail' and rng.random() < 0.7
        savepoint = savepoint and self.load.savepoints
        if len(self.memory.of(self.number, table.name)) > MANY_ROWS and rng.random() < 0.4:
            remove(self, transaction, table, self.existing(transaction, table, rng, MANY_ROWS))
        if rng.random() < 0.5:
            self.forget_keys(table)
        if not savepoint:
            function(self, transaction, table, rng)
            return
        mark, doomed = transaction.mark(), self.doomed
        self.run('SAVEPOINT s')
        try:
            function(self, transaction, table, rng)
            back = rng.random() < 0.4
        except AsPlanned:
            back = True
        except Refused as error:
            self.judge(error)
            back = True
        if back:
            transaction.back_to(mark)
            self.doomed = doomed
            self.run('ROLLBACK TO s')
        if rng.random() < 0.5:
            self.run('RELEASE s')

    def forget_keys(self, table):
        """Have foreign keys look up on disk what rows refer to, and what refers to rows."""
        for other in filter(None, (table.parent, table.child)):
            names = ', '.join(f"'{name}'::regclass" for name in other.partitions or [other.name])
            self.run(f'SELECT pg_buffercache_evict_relation(indexrelid), pg_buffercache_evict_relation(indrelid) '
                     f'FROM pg_index WHERE indrelid IN ({names}) AND (indisprimary OR ARRAY(SELECT attname::text '
                     f"FROM pg_attribute WHERE attrelid = indexrelid) && '{{slot,up_id}}')")

    def commit(self, transaction, durable):
        self.memory.intend(transaction)
        self.memory.sent(transaction)
        sql = 'COMMIT' if self.batch is None else ';\n'.join([*self.batch, 'COMMIT'])
        try:
            status = self.execute(sql).tag
        except Refused as error:
            self.memory.refused(transaction)
            if error.code != self.doomed:
                raise
            return
        if status != 'COMMIT' or self.doomed:
            self.complain(f'COMMIT: {status}, and not {self.doomed or "COMMIT"}')
        self.note_place(transaction)
        self.memory.acknowledged(transaction, durable)

    def note_place(self, transaction):
        """Where in the WAL what was acknowledged ends."""
        if self.load.streaming:
            try:
                transaction.lsn = self.rows("SELECT pg_current_wal_insert_lsn() - '0/0'")[0][0]
            except Refused as error:
                self.judge(error)

    def commit_in_two_phases(self, transaction, rng):
        choice = rng.choice(['commit', 'commit', 'rollback', 'leave'])
        self.memory.intend(transaction)
        self.memory.prepare(transaction)
        try:
            self.execute(f"PREPARE TRANSACTION '{transaction.name}'")
        except Refused as error:
            self.memory.forget(transaction)
            if error.code != self.doomed:
                raise
            return True
        if self.doomed:
            self.complain(f'PREPARE TRANSACTION should have failed with {self.doomed}')
        self.memory.is_prepared(transaction)
        if choice == 'leave':
            return False
        self.memory.finish(transaction, choice == 'commit')
        try:
            self.execute(f"{choice} PREPARED '{transaction.name}'")
        except Refused as error:
            self.judge(error)
            return False
        self.memory.finished(transaction)
        return True

    def judge(self, error, *codes):
        """Complain unless that may happen."""
        known = ANY_TIME | REPEATABLE | set(codes)
        of_disk = error.code in DISK or DISK_SAYS.search(str(error)) or self.not_reopened(error)
        if isinstance(error, Gone) or error.code in known:
            return
        if not (of_disk and (self.load.disk_fails or self.load.dark)):
            self.complain(f'unexpected error {error}')

    def not_reopened(self, error):
        """An I/O worker that cannot open a file says that there is none, whatever the reason, which the log has."""
        path = re.search('could not read blocks .* in file "([^"]+)": No such file or directory', str(error))
        return path and re.search(rf'\[\d+\] io worker\|58030\|ERROR:  could not open file "{re.escape(path[1])}"',
                                  self.load.cluster.read_log())
