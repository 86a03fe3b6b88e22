"""A client that sends transactions without waiting for answers, and a connection that lets it.

With aio.pipelined_commits the server does not wait for the disk, either, before it goes on with the next one; but it
answers only when the disk has.

Invariant: transactions of one burst have no row in common, so that any of them may fail without the others.
"""
import time

from clients import Client
from wire import Refused


class Pipeliner(Client):
    def work(self, rng):
        if rng.random() < 0.4:
            return super().work(rng)
        self.burst(rng)
        return True

    def burst(self, rng):
        used, messages = {}, []
        for _ in range(rng.choice([2, 5, 20, 50])):
            if rng.random() < 0.05:
                # more than the server can hold back
                messages.append((None, None, "SELECT repeat('x', 20000)"))
                continue
            transaction = self.memory.begin(self.number)
            sql, failure = self.statement(transaction, rng, used)
            note = f'INSERT INTO txlog (client, seq) VALUES ({self.number}, {transaction.seq})'
            messages.append((transaction, failure, f'{note}; {sql}'))
            self.memory.intend(transaction)
            self.memory.sent(transaction)
        self.busy = time.monotonic(), f'{len(messages)} transactions'
        try:
            self.connection.send(*(sql for _, _, sql in messages))
            for transaction, failure, sql in messages:
                self.hear(transaction, failure, sql)
        finally:
            self.busy = None

    def hear(self, transaction, failure, sql):
        self.statements += 1
        self.load.tick()
        try:
            self.connection.answer()
        except Refused as error:
            if transaction:
                self.memory.refused(transaction)
            if error.code != failure:
                self.judge(error, '23P01' if failure else None)
            return
        if failure:
            self.complain(f'should have failed with {failure}: {sql[:500]}')
        if transaction:
            self.memory.acknowledged(transaction)

    def statement(self, transaction, rng, used):
        """(SQL, the SQLSTATE with which it must fail)"""
        table = rng.choice([table for table in self.tables if not table.parent])
        kept = used.setdefault(table.name, set())
        version = rng.randint(1, 900)
        rows = [row for row in self.existing(transaction, table, rng, rng.randint(1, 20)) if row not in kept]
        kind = rng.choice(['insert', 'insert', 'insert', 'update', 'update', 'delete', 'fail']) if rows else 'insert'
        if kind == 'delete' and any(transaction.is_held(table, row, 'on_delete') for row in rows):
            kind = 'update'
        if kind == 'insert' or kind == 'fail' and table.moving:
            rows = self.fresh(transaction, table, rng, rng.randint(1, 20))
            kind = 'insert'
        kept.update(rows)
        there = f"id = ANY ('{{{','.join(map(str, rows))}}}')"
        if kind == 'update':
            for row in rows:
                transaction.put(table, row, transaction.version(table, row) + 1)
            return f'UPDATE {table.name} SET {table.assignments("id", "(version + 1)")} WHERE {there}', None
        if kind == 'delete':
            for row in rows:
                transaction.put(table, row, None)
            return f'DELETE FROM {table.name} WHERE {there}', None
        if kind == 'insert':
            for row in rows:
                transaction.put(table, row, version)
        return (f'INSERT INTO {table.name} ({table.names()}) SELECT {table.row("id", str(version))} '
                f'FROM {self.source(rows)}'), '23505' if kind == 'fail' else None
