"""What clients know: the version of each of their rows, and which transactions may yet turn out not to have happened.

Each client has rows of its own, which nobody else changes; only its thread touches them here while it works.  A
transaction collects its changes; they are applied when its COMMIT has been sent, and it stays in the client's tail as
long as a crash could undo it: until it is acknowledged, or, if it was acknowledged without waiting for the disk, until
a later one of the same client is.  resolve() then lets the server say which of them it has, and undoes the others.

All of it is written to a log outside of the data directory as well, before COMMIT is sent and when it has returned, so
that read() can tell what must be there after whatever else has been lost.

Invariants: a transaction is in the tail of its client, in the order of commits, or it is settled.  `settled` has those
that must be in txlog, and nobody else may be.  Of a prepared transaction nothing is applied before it is committed.
"""
import copy
import json
import threading

from schema import HOLDING, UNSET

MODULUS = 1 << 61


class Transaction:
    """The changes of one.  Fates: open, unknown, soft, durable; of two-phase commits preparing, prepared, finishing."""

    def __init__(self, memory, client, seq):
        self.memory, self.client, self.seq = memory, client, seq
        self.changes = {}           # table: {id: new version, or None if it is deleted}
        self.before = {}            # the same before, once applied
        self.notes = (0, 0)         # rows in audit: their number, and a sum over them
        self.fate = 'open'
        self.commit = True          # of a prepared one: what becomes of it
        self.lsn = None

    def value(self, name, row):
        """Of a row in the table of this name, or in a ledger."""
        changed = self.changes.get(name, {})
        return changed[row] if row in changed else self.memory.of(self.client, name).get(row)

    def version(self, table, row):
        return self.value(table.name, row)

    def slot(self, table, row):
        """Of a row to which others may refer by it."""
        return self.value(f'{table.name}.slot', row) or 0

    def refers(self, table, row):
        """Does a row of the table, if there is one, refer to its parent?"""
        if table.linked:
            return self.value(f'{table.name}.link', row) not in (None, UNSET)
        return self.version(table, row) is not None

    def is_held(self, table, row, action):
        """Does one that refers to this row forbid that it is deleted ('on_delete'), or gets another key ('on_update')?"""
        return bool(table.child) and getattr(table.child.reference, action) in HOLDING and self.refers(table.child, row)

    def visible(self, table):
        """{id: version} of the client's rows in this table, as the transaction sees it."""
        rows = dict(self.memory.of(self.client, table.name))
        for row, version in self.changes.get(table.name, {}).items():
            if version is None:
                rows.pop(row, None)
            else:
                rows[row] = version
        return rows

    def put(self, table, row, version, noted=True):
        """Note that a row now has this version, or is gone.  `noted` tells whether triggers see that."""
        before = self.version(table, row)
        if table.audited and noted:
            kind = 1 if before is None else 3 if version is None else 2
            number, total = self.notes
            self.notes = (number + 1, total + row * 31 + (before if version is None else version) * 7 + kind)
        self.changes.setdefault(table.name, {})[row] = version
        if table.linked and (before is None) != (version is None):
            # it is inserted with a reference to slot 0
            self.changes.setdefault(f'{table.name}.link', {})[row] = None if version is None else 0
        if version is None:
            self._act(table, row, 'on_delete')
            if table.slotted:
                self.changes.setdefault(f'{table.name}.slot', {})[row] = None

    def link(self, table, row, slot):
        """Note that a row has been updated, and refers to this slot now, or to nothing: None, or UNSET."""
        self.put(table, row, self.version(table, row))
        self.changes.setdefault(f'{table.name}.link', {})[row] = slot

    def move(self, table, row, slot):
        """Note that a row has been updated, and has this slot now."""
        self.put(table, row, self.version(table, row))
        if slot != self.slot(table, row):
            self._act(table, row, 'on_update', slot)
            self.changes.setdefault(f'{table.name}.slot', {})[row] = slot or None

    def _act(self, table, row, when, slot=None):
        """What becomes of the row that refers to this one, which gets another slot, or is deleted."""
        if not table.child or not self.refers(table.child, row):
            return
        action = getattr(table.child.reference, when)
        assert action not in HOLDING
        if action != 'CASCADE':
            self.link(table.child, row, UNSET if action == 'SET DEFAULT' else None)
        elif slot is None:
            self.put(table.child, row, None)
        else:
            self.link(table.child, row, slot)

    def mark(self):
        return {table: dict(rows) for table, rows in self.changes.items()}, self.notes

    def back_to(self, mark):
        self.changes, self.notes = mark

    @property
    def name(self):
        return f'{self.client}_{self.seq}'


class Memory:
    def __init__(self, log=None):
        self.rows = {}              # (client, table): {id: version}
        self.tails = {}             # client: its transactions that a crash could undo
        self.prepared = {}          # client: its prepared transaction
        self.settled = set()        # (client, seq)
        self.notes = {}             # (client, seq): rows in audit
        self.fresh = {}             # table: ids whose acknowledged state nobody has checked
        self.numbers = {}           # client: the number of its last transaction
        self.history = False        # keep acknowledged transactions in tails
        self.lock = threading.Lock()
        self.log = open(log, 'a') if log else None

    def write(self, *words):
        if self.log:
            with self.lock:
                self.log.write(json.dumps(words, separators=(',', ':')) + '\n')
                self.log.flush()

    def of(self, client, table):
        return self.rows.setdefault((client, table), {})

    def table(self, name):
        """{id: version} of all clients."""
        return {row: version for (_, table), rows in list(self.rows.items()) if table == name
                for row, version in rows.items()}

    # What clients tell, each of its own transactions.

    def begin(self, client):
        self.numbers[client] = self.numbers.get(client, 0) + 1
        return Transaction(self, client, self.numbers[client])

    def intend(self, transaction):
        """COMMIT, or PREPARE TRANSACTION, is about to be sent."""
        self.write('intend', transaction.client, transaction.seq, transaction.changes, transaction.notes)

    def sent(self, transaction):
        """COMMIT has been sent: the client goes on as if it had succeeded."""
        transaction.fate = 'unknown'
        self._apply(transaction)
        self.tails.setdefault(transaction.client, []).append(transaction)

    def acknowledged(self, transaction, durable=True):
        tail = self.tails[transaction.client]
        transaction.fate = 'durable' if durable else 'soft'
        self.write(transaction.fate, transaction.client, transaction.seq)
        if durable and not self.history:
            # its commit record is on disk, and so is all that was written before
            while tail and tail[0].fate != 'unknown':
                self._settle(tail.pop(0))

    def refused(self, transaction):
        """COMMIT has failed."""
        self.tails[transaction.client].remove(transaction)
        self._undo(transaction)

    def prepare(self, transaction):
        transaction.fate = 'preparing'
        self.prepared[transaction.client] = transaction

    def is_prepared(self, transaction):
        transaction.fate = 'prepared'
        self.write('prepared', transaction.client, transaction.seq)

    def finish(self, transaction, commit):
        """COMMIT PREPARED or ROLLBACK PREPARED is about to be sent."""
        transaction.fate, transaction.commit = 'finishing', commit
        self.write('finish', transaction.client, transaction.seq, commit)

    def finished(self, transaction):
        del self.prepared[transaction.client]
        self.write('finished', transaction.client, transaction.seq, transaction.commit)
        if transaction.commit:
            self._apply(transaction)
            self._settle(transaction)

    def forget(self, transaction):
        """PREPARE TRANSACTION has failed."""
        del self.prepared[transaction.client]
        self.write('absent', transaction.client, transaction.seq)

    # What becomes known of them all, when no client is at work.

    def resolve(self, present, must=lambda transaction: transaction.fate == 'durable'):
        """Keep the transactions that the server has, undo the others; yields what is wrong with that.

        `present` has those that are in txlog; must() tells of a transaction in a tail whether it has to be there.
        """
        for client, tail in self.tails.items():
            lost, absent = None, []
            for transaction in tail:
                if (client, transaction.seq) in present:
                    if lost:
                        yield f'transaction {transaction.name} is there, and {lost.name} before it is not'
                    self.write('present', client, transaction.seq)
                    self._settle(transaction)
                else:
                    if must(transaction):
                        yield (f'transaction {transaction.name}, which was acknowledged, is gone: '
                               f'{summary(transaction.changes)}')
                    if transaction.fate in ('soft', 'durable'):
                        lost = lost or transaction
                    absent.append(transaction)
            for transaction in reversed(absent):
                self._undo(transaction)
            tail.clear()
        gone, extra = self.settled - present, present - self.settled
        for client, seq in sorted(gone)[:5]:
            yield f'transaction {client}_{seq}, which was acknowledged, is not in txlog ({len(gone)} like it)'
        for client, seq in sorted(extra)[:5]:
            yield f'transaction {client}_{seq} is in txlog, and was never committed ({len(extra)} like it)'

    def resolve_prepared(self, gids, present, finish):
        """Finish what is prepared, by finish(gid, commit); yields what is wrong.  The server has these gids."""
        for transaction in list(self.prepared.values()):
            gid = transaction.name
            there, committed = gid in gids, (transaction.client, transaction.seq) in present
            gids = gids - {gid}
            if there:
                if transaction.fate != 'finishing':
                    self.finish(transaction, transaction.seq % 2 == 0)
                finish(gid, transaction.commit)
                self.finished(transaction)
                continue
            if transaction.fate == 'prepared':
                yield f'{gid}, which was prepared, is not there'
            if transaction.fate == 'finishing' and transaction.commit:
                if not committed:
                    yield f'{gid} was prepared, and neither it nor what it did is there'
                self.finished(transaction)
            else:
                if committed:
                    yield f'{gid} was not committed, and is there'
                self.forget(transaction)
        for gid in sorted(gids):
            yield f'{gid} is prepared, and nobody has done that'
            finish(gid, False)

    def clear(self, table):
        """The table has been emptied by recovery, as it was unlogged."""
        self.write('clear', table)
        for (_, name), rows in self.rows.items():
            if name == table:
                rows.clear()
        for transaction in [*self.prepared.values(), *(t for tail in self.tails.values() for t in tail)]:
            transaction.changes.pop(table, None)
            transaction.before.pop(table, None)
        self.fresh.pop(table, None)

    def checked(self):
        """How many rows have been changed since the last time, by transactions that are acknowledged."""
        number = sum(len(rows) for rows in self.fresh.values())
        self.fresh = {}
        return number

    def fork(self):
        """A memory of the same, for a copy of the server."""
        log, self.log, lock, self.lock = self.log, None, self.lock, None
        other = copy.deepcopy(self)
        self.log, self.lock, other.lock = log, lock, threading.Lock()
        return other

    def settle_history(self):
        """The server has not failed: nothing that was acknowledged by its disk can be undone any more."""
        self.history = False
        for tail in self.tails.values():
            durable = [n for n, transaction in enumerate(tail) if transaction.fate == 'durable']
            for _ in range(durable[-1] + 1 if durable else 0):
                self._settle(tail.pop(0))

    def _apply(self, transaction):
        for table, changes in transaction.changes.items():
            rows = self.of(transaction.client, table)
            before = transaction.before[table] = {}
            for row, version in changes.items():
                before[row] = rows.get(row)
                if version is None:
                    rows.pop(row, None)
                else:
                    rows[row] = version

    def _undo(self, transaction):
        self.write('absent', transaction.client, transaction.seq)
        for table, before in transaction.before.items():
            rows = self.of(transaction.client, table)
            for row, version in before.items():
                if version is None:
                    rows.pop(row, None)
                else:
                    rows[row] = version

    def _settle(self, transaction):
        self.settled.add((transaction.client, transaction.seq))
        if transaction.notes[0]:
            self.notes[transaction.client, transaction.seq] = transaction.notes
        with self.lock:
            for table, changes in transaction.changes.items():
                # what is in ledgers is of rows that count already
                if '.' not in table:
                    self.fresh.setdefault(table, set()).update(changes)


def summary(changes):
    return ', '.join(f'{len(rows)} rows of {table}' for table, rows in changes.items()) or 'no rows'


def read(log):
    """The memory that a log tells of.  What is still unknown is in tails, as it was."""
    memory, known = Memory(), {}
    for line in open(log):
        what, *words = json.loads(line)
        if what == 'clear':
            memory.clear(words[0])
            continue
        client, seq = words[:2]
        if what == 'intend':
            transaction = known[client, seq] = Transaction(memory, client, seq)
            transaction.changes = {table: {int(row): version for row, version in rows.items()}
                                   for table, rows in words[2].items()}
            transaction.notes = tuple(words[3])
            continue
        _tell(memory, known[client, seq], what, words[2:])
    for transaction in known.values():
        if transaction.fate == 'open':
            memory.sent(transaction)
    return memory


def _tell(memory, transaction, what, words):
    two_phases = transaction.fate in ('prepared', 'finishing') or what == 'prepared'
    if two_phases and transaction.fate == 'open':
        memory.prepare(transaction)
    if what == 'prepared':
        memory.is_prepared(transaction)
    elif what == 'finish':
        memory.finish(transaction, *words)
    elif what == 'finished':
        memory.finished(transaction)
    elif what == 'absent' and two_phases:
        memory.forget(transaction)
    else:
        if transaction.fate == 'open':
            memory.sent(transaction)
        if what in ('durable', 'soft'):
            memory.acknowledged(transaction, what == 'durable')
        else:
            tail = memory.tails[transaction.client]
            if transaction in tail:
                tail.remove(transaction)
                (memory._settle if what == 'present' else memory._undo)(transaction)
