"""Statements that change or read a client's own rows, each with what it does to the memory.

A statement is a function of a client, its transaction, a table and random numbers.  It sends SQL with client.run() and
tells the transaction what has changed.  It returns False if it finds nothing to do.  Those marked `plain` need no
answer from the server, so that several of them can be sent as one message.
"""
import functools

import lookups
from indexes import INDEXES, Index, probes
from schema import HOLDING
from wire import Gone, Refused

STATEMENTS = {}     # name: (function, weight, is it plain)


def statement(weight, plain=False):
    def add(function):
        STATEMENTS[function.__name__] = function, weight, plain
        return function
    return add


def some(rng, most):
    """A number from 1 to this; small ones are as likely as large ones."""
    return max(1, round(most ** rng.random()))


def scattered(transaction, table, rng, number):
    """Rows of the client that are there, in no order, up to as many."""
    rows = sorted(transaction.visible(table))
    return rng.sample(rows, min(number, len(rows)))


def referred(transaction, table, rng, number):
    """Likewise rows to which others refer, half of the time, if there are any."""
    if table.child and rng.random() < 0.5:
        rows = [row for row in sorted(transaction.visible(table)) if transaction.refers(table.child, row)]
        if rows:
            return rng.sample(rows, min(number, len(rows)))
    return scattered(transaction, table, rng, number)


def for_stable_keys(function):
    """A table whose key changes with the version has no conflict between two versions of a row."""
    @functools.wraps(function)
    def only_there(client, transaction, table, rng):
        return False if table.moving else function(client, transaction, table, rng)
    return only_there


@statement(weight=18)
def copy(client, transaction, table, rng):
    rows, version = client.fresh(transaction, table, rng, 100 + some(rng, 3000)), rng.randint(1, 900)
    if not rows:
        return False
    form = rng.choice(['text', 'text', 'csv', 'binary'])
    data = client.copy_out(f'COPY (SELECT {table.row("id", str(version))} FROM {client.source(rows)}) '
                           f'TO STDOUT (FORMAT {form})')
    client.copy_in(f'COPY {table.name} ({table.names()}) FROM STDIN (FORMAT {form})', data)
    for row in rows:
        transaction.put(table, row, version)


@statement(weight=10, plain=True)
def insert_select(client, transaction, table, rng):
    rows, version = client.fresh(transaction, table, rng, some(rng, 2500)), rng.randint(1, 900)
    if not rows:
        return False
    client.run(f'INSERT INTO {table.name} ({table.names()}) SELECT {table.row("id", str(version))} '
               f'FROM {client.source(rows)}', rows)
    for row in rows:
        transaction.put(table, row, version)


@statement(weight=8, plain=True)
def insert_values(client, transaction, table, rng):
    rows, version = client.fresh(transaction, table, rng, rng.choice([1, 1, 2, 5, 20])), rng.randint(1, 900)
    if not rows:
        return False
    values = ', '.join(f'({table.row(f"{row}::bigint", str(version))})' for row in rows)
    client.run(f'INSERT INTO {table.name} ({table.names()}) VALUES {values}', rows)
    for row in rows:
        transaction.put(table, row, version)


def old_and_new(client, transaction, table, rng):
    """Rows of which some exist, and a version."""
    most = rng.choice([100, 100, 1500])
    return sorted({*client.existing(transaction, table, rng, some(rng, most)),
                   *client.fresh(transaction, table, rng, some(rng, most))}), rng.randint(1, 900)


def chill(client, table, rng):
    """Half of the time, let what follows in the transaction look up its rows on disk."""
    if rng.random() < 0.5:
        client.run(lookups.settings(rng, table.partitions or [table.name]))


@statement(weight=7, plain=True)
@for_stable_keys
def upsert(client, transaction, table, rng):
    rows, version = old_and_new(client, transaction, table, rng)
    if not rows:
        return False
    chill(client, table, rng)
    client.run(f'INSERT INTO {table.name} ({table.names()}) SELECT {table.row("id", str(version))} '
               f'FROM {client.source(rows)} ON CONFLICT ({table.key}) DO UPDATE SET {table.excluded()}', rows)
    for row in rows:
        transaction.put(table, row, version)


@statement(weight=4, plain=True)
@for_stable_keys
def insert_missing(client, transaction, table, rng):
    rows, version = old_and_new(client, transaction, table, rng)
    missing = [row for row in rows if transaction.version(table, row) is None]
    if not rows:
        return False
    chill(client, table, rng)
    client.run(f'INSERT INTO {table.name} ({table.names()}) SELECT {table.row("id", str(version))} '
               f'FROM {client.source(rows)} ON CONFLICT ({table.key}) DO NOTHING', missing)
    for row in missing:
        transaction.put(table, row, version)


@statement(weight=14, plain=True)
def update(client, transaction, table, rng):
    rows = client.existing(transaction, table, rng, some(rng, 400))
    if not rows:
        return False
    client.run(f'UPDATE {table.name} SET {table.assignments("id", "(version + 1)")} WHERE {client.where(rows)}', rows)
    for row in rows:
        transaction.put(table, row, transaction.version(table, row) + 1)


@statement(weight=5, plain=True)
def update_from(client, transaction, table, rng):
    """Rows here and there, each of which is looked up."""
    rows = scattered(transaction, table, rng, some(rng, 400))
    if not rows:
        return False
    client.run(lookups.settings(rng, table.partitions or [table.name]))
    client.run(f'UPDATE {table.name} o SET {table.assignments("o.id", "(o.version + 1)")} '
               f"FROM unnest('{array(rows)}'::bigint[]) AS s (id) WHERE o.id = s.id", rows)
    for row in rows:
        transaction.put(table, row, transaction.version(table, row) + 1)


@statement(weight=3, plain=True)
def delete_using(client, transaction, table, rng):
    rows = referred(transaction, table, rng, some(rng, 300))
    if not rows:
        return False
    release(client, transaction, table, rows)
    client.run(lookups.settings(rng, table.partitions or [table.name]))
    client.run(f"DELETE FROM {table.name} o USING unnest('{array(rows)}'::bigint[]) AS s (id) WHERE o.id = s.id", rows)
    for row in rows:
        transaction.put(table, row, None)


@statement(weight=6, plain=True)
def delete(client, transaction, table, rng):
    return remove(client, transaction, table, client.existing(transaction, table, rng, some(rng, 300)))


def remove(client, transaction, table, rows):
    if not rows:
        return False
    release(client, transaction, table, rows)
    client.run(f'DELETE FROM {table.name} WHERE {client.where(rows)}', rows)
    for row in rows:
        transaction.put(table, row, None)


def release(client, transaction, table, rows):
    """Delete what keeps these rows from being deleted."""
    held = [row for row in rows if transaction.is_held(table, row, 'on_delete')]
    if held:
        client.run(f"DELETE FROM {table.child.name} WHERE id = ANY ('{array(held)}')", held)
    for row in held:
        transaction.put(table.child, row, None)


@statement(weight=8, plain=True)
def move_keys(client, transaction, table, rng):
    """Rows of some parent get other keys, or the same again."""
    parents = [parent for parent in client.tables if parent.slotted]
    if not parents:
        return False
    parent = rng.choice(parents)
    rows = referred(transaction, parent, rng, some(rng, 400))
    slots = {row: rng.randrange(3) for row in rows if not transaction.is_held(parent, row, 'on_update')}
    if not slots:
        return False
    if rng.random() < 0.5:
        client.forget_keys(parent)
    client.run(f"UPDATE {parent.name} o SET slot = s.slot FROM unnest('{array(slots)}'::bigint[], "
               f"'{array(slots.values())}'::int[]) AS s (id, slot) WHERE o.id = s.id", slots)
    for row, slot in slots.items():
        transaction.move(parent, row, slot)


@statement(weight=5, plain=True)
def refer(client, transaction, table, rng):
    """Rows of some child refer to their parents, as far as there are any, or to nothing."""
    children = [child for child in client.tables if child.linked]
    if not children:
        return False
    child = rng.choice(children)
    rows = client.existing(transaction, child, rng, some(rng, 400))
    if not rows:
        return False
    loose, slots = rng.random() < 0.2, {}
    for row in rows:
        there = transaction.version(child.parent, row) is not None
        slots[row] = transaction.slot(child.parent, row) if there and not loose else None
    if rng.random() < 0.5:
        client.forget_keys(child)
    texts = ['NULL' if slot is None else slot for slot in slots.values()]
    client.run(f"UPDATE {child.name} o SET up_id = CASE WHEN s.slot IS NOT NULL THEN s.id END, up_slot = s.slot "
               f"FROM unnest('{array(slots)}'::bigint[], '{array(texts)}'::int[]) AS s (id, slot) WHERE o.id = s.id", slots)
    for row, slot in slots.items():
        transaction.link(child, row, slot)


@statement(weight=6, plain=True)
def merge(client, transaction, table, rng):
    """Update some, delete others, and insert those that are missing."""
    rows, version = old_and_new(client, transaction, table, rng)
    if not rows:
        return False
    chill(client, table, rng)
    deleted = [row for row in rows if row % 5 == 0 and transaction.version(table, row) is not None]
    release(client, transaction, table, deleted)
    source = f'(SELECT id, {version} AS version FROM {client.source(rows)}) n'
    client.run(f'MERGE INTO {table.name} o USING {source} ON o.id = n.id '
               f'WHEN MATCHED AND o.id % 5 = 0 THEN DELETE '
               f'WHEN MATCHED THEN UPDATE SET {table.assignments("o.id", "n.version")} '
               f'WHEN NOT MATCHED THEN INSERT ({table.names()}) VALUES ({table.row("n.id", "n.version")})', rows)
    for row in rows:
        transaction.put(table, row, None if row in deleted else version)


@statement(weight=4, plain=True)
@for_stable_keys
def insert_or_update(client, transaction, table, rng):
    """As upsert, in subtransactions."""
    rows, version = old_and_new(client, transaction, table, rng)
    if not rows:
        return False
    client.run(f"""DO $$
        DECLARE
            i bigint;
        BEGIN
            FOREACH i IN ARRAY '{array(rows)}'::bigint[] LOOP
                BEGIN
                    INSERT INTO {table.name} ({table.names()}) SELECT {table.row('i', str(version))};
                EXCEPTION WHEN unique_violation OR exclusion_violation THEN
                    UPDATE {table.name} SET {table.assignments('id', str(version))} WHERE id = i;
                END;
            END LOOP;
        END$$""")
    for row in rows:
        transaction.put(table, row, version)


@statement(weight=2, plain=True)
def nested(client, transaction, table, rng):
    """Many levels of savepoints, in some of which nothing is kept."""
    kept = []
    for number, row in enumerate(client.fresh(transaction, table, rng, rng.choice([5, 80]))):
        client.run(f'SAVEPOINT nested_{number}')
        client.run(f'INSERT INTO {table.name} ({table.names()}) SELECT {table.row(f"{row}::bigint", "1")}', [row])
        if number % 7 == 3:
            client.run(f'ROLLBACK TO nested_{number}')
        else:
            kept.append(row)
    for row in kept:
        transaction.put(table, row, 1)
    return bool(kept)


@statement(weight=3, plain=True)
def lock(client, transaction, table, rng):
    rows = client.existing(transaction, table, rng, some(rng, 50))
    if not rows:
        return False
    strength = rng.choice(['UPDATE', 'NO KEY UPDATE', 'SHARE', 'KEY SHARE'])
    client.run(f'SELECT id FROM {table.name} WHERE {client.where(rows)} FOR {strength}', rows)


@statement(weight=8)
def look(client, transaction, table, rng):
    """The client sees what it has written, whatever way the server goes."""
    rows = client.existing(transaction, table, rng, some(rng, 1000))
    if not rows:
        return False
    found = client.rows(f'SELECT id, version FROM {table.name} WHERE {client.where(rows)}')
    right = sorted((row, transaction.version(table, row)) for row in rows)
    if sorted(found) != right:
        client.complain(f'{table.name} shows {difference(found, right)} to the client that wrote it')


def indexes_of(client):
    """All indexes.  One that is dropped after one of its rows in the catalogs has been read, and before the other, is an error."""
    try:
        return [Index(*row) for row in client.rows(INDEXES)]
    except Refused as error:
        if 'cache lookup failed for relation' in str(error):
            raise Gone(error.code, str(error)) from None
        raise


@statement(weight=12)
def look_up(client, transaction, table, rng):
    """A query with lookups ahead and without: of all rows, or of the client's own if others may change meanwhile."""
    indexes = [index for index in indexes_of(client)
               if index.table in (table.name, *table.partitions) and index.key and index.method in lookups.METHODS]
    rows = scattered(transaction, table, rng, rng.randint(1, 200))
    if not indexes or not rows:
        return False
    index, others = rng.choice(indexes), rng.choice(client.tables)
    keys = client.rows(index.keys(f"id = ANY ('{array(rows)}')"))
    if not keys:
        return False
    sql, ordered = lookups.query(rng, table, others, index, probes(keys[0][0], [key for _, key in keys]), client.clients,
                                 'true' if client.repeatable else client.own())
    for complaint in lookups.compare(client.rows, rng, sql, ordered, [index.table, *(others.partitions or [others.name])]):
        client.complain(complaint)
    client.load.compared += 1


@statement(weight=4)
def copy_of_table(client, transaction, table, rng):
    """CREATE TABLE AS, which some build by parallel workers, and what is in it."""
    right = sorted(transaction.visible(table).items())
    name = f'copy_{transaction.name}_{client.statements}'
    kind = rng.choice(['TABLE', 'TABLE', 'UNLOGGED TABLE', 'TEMP TABLE'])
    client.temporary = client.temporary or kind == 'TEMP TABLE'
    client.run(f'CREATE {kind} {name} AS SELECT * FROM {table.name} WHERE {client.own()}', right)
    if rng.random() < 0.5:
        client.run(f'CREATE INDEX ON {name} ({rng.choice(["id", "version, id"])})')
    found = client.rows(f'SELECT id, version FROM {name}')
    if sorted(found) != right:
        client.complain(f'a copy of {table.name} has {difference(found, right)}')
    if rng.random() < 0.9:
        client.run(f'DROP TABLE {name}')


def has_gist(client, table):
    """Has the table a GiST index?  PostgreSQL 18 does not protect its pages if their inserts are not logged: README.md."""
    names = ', '.join(f"'{name}'::regclass" for name in table.partitions or [table.name])
    return client.rows('SELECT FROM pg_index, pg_class, pg_am WHERE indexrelid = pg_class.oid AND relam = pg_am.oid '
                       f"AND amname = 'gist' AND indrelid IN ({names})")


@statement(weight=6)
def refill(client, transaction, table, rng):
    """Rows into a table that the same transaction has emptied, which need no WAL if there is but little."""
    if table.owner is None or client.prepares:
        return False
    rows, version = client.fresh(transaction, table, rng, some(rng, 3000)), rng.randint(1, 900)
    for row in transaction.visible(table):
        transaction.put(table, row, None, noted=False)
    if client.load.cluster.settings.get('wal_level') == 'minimal' and has_gist(client, table):
        client.run('SET LOCAL wal_skip_threshold = 1000000')
    client.run(f'TRUNCATE {table.name}')
    data = client.copy_out(f'COPY (SELECT {table.row("id", str(version))} FROM {client.source(rows)}) TO STDOUT')
    client.copy_in(f'COPY {table.name} ({table.names()}) FROM STDIN', data)
    for row in rows:
        transaction.put(table, row, version)


@statement(weight=5)
def fail(client, transaction, table, rng):
    """What must not succeed, after some of its rows have been inserted."""
    ways = [twice, negative, null, division, garbage]
    if table.exclusive and table.exclusive.source == 'given':
        ways.append(overlap)
    if table.deferred and table.deferred.source == 'given' and not table.partitioned:
        ways.append(too_late)
    if table.parent:
        ways.append(orphan)
    if table.child:
        ways.append(held)
    return rng.choice(ways)(client, transaction, table, rng)


def insert_of(table, row, version, source):
    return f'INSERT INTO {table.name} ({table.names()}) SELECT {table.row(row, version)} FROM {source}'


def twice(client, transaction, table, rng):
    rows = client.existing(transaction, table, rng, 1)
    if not rows or table.moving:
        return False
    rows = [*client.fresh(transaction, table, rng, some(rng, 1200)), *rows]
    client.fails(insert_of(table, 'id', '1', client.source(rows)), '23505', '23P01')


def negative(client, transaction, table, rng):
    rows = client.fresh(transaction, table, rng, some(rng, 1200))
    if not rows:
        return False
    client.fails(insert_of(table, 'id', f'(CASE id WHEN {rows[-1]} THEN -1 ELSE 1 END)', client.source(rows)), '23514')


def null(client, transaction, table, rng):
    """No version, and perhaps no partition, either."""
    rows = client.fresh(transaction, table, rng, some(rng, 50))
    if not rows:
        return False
    client.fails(insert_of(table, 'id', f'(CASE id WHEN {rows[-1]} THEN NULL ELSE 1 END)', client.source(rows)),
                 '23502', '23514')


def division(client, transaction, table, rng):
    rows = client.existing(transaction, table, rng, some(rng, 200))
    if not rows:
        return False
    version = f'(version + 1 / (id - {rows[-1]}))'
    client.fails(f'UPDATE {table.name} SET {table.assignments("id", version)} WHERE {client.where(rows)}', '22012')


def garbage(client, transaction, table, rng):
    rows = client.fresh(transaction, table, rng, some(rng, 2000))
    if not rows:
        return False
    data = client.copy_out(f'COPY (SELECT {table.row("id", "1")} FROM {client.source(rows)}) TO STDOUT')
    client.fails(f'COPY {table.name} ({table.names()}) FROM STDIN', '22P02', data=data + b'garbage\t1\n')


def overlap(client, transaction, table, rng):
    rows = client.existing(transaction, table, rng, 2)
    if len(rows) < 2:
        return False
    column = table.exclusive
    client.fails(f'UPDATE {table.name} SET {column.name} = {column.value(f"{rows[0]}::bigint", "1")} '
                 f'WHERE id = {rows[1]}', '23P01')


def too_late(client, transaction, table, rng):
    """The transaction is doomed, and does not know it before COMMIT."""
    rows = client.existing(transaction, table, rng, 2)
    if len(rows) < 2:
        return False
    name = table.deferred.name
    client.dooms(f'UPDATE {table.name} SET {name} = (SELECT {name} FROM {table.name} WHERE id = {rows[0]}) '
                 f'WHERE id = {rows[1]}', '23505')


def orphan(client, transaction, table, rng):
    """One row, at most, refers to a key that is not there, or not any more; the others are good."""
    rows = client.fresh(transaction, table, rng, some(rng, 1200))
    there = transaction.visible(table)
    moved = [row for row in transaction.visible(table.parent) if row not in there
             and table.linked and transaction.slot(table.parent, row)]
    # nobody has used the next one yet, but it may be left of a row whose parent had it
    row = client.next[table.parent.name] * client.clients + client.number
    while row in there:
        row += client.clients
    if moved:
        row = rng.choice(sorted(moved))
    client.dooms(insert_of(table, 'id', '1', client.source(sorted([*rows, row]))), '23503')


def held(client, transaction, table, rng):
    """Rows to which others refer are deleted, or get other keys."""
    reference = table.child.reference
    ways = {'on_delete': f'DELETE FROM {table.name}', 'on_update': f'UPDATE {table.name} SET slot = slot + 1'}
    if not table.slotted:
        del ways['on_update']
    way = rng.choice(sorted(ways))
    rows = referred(transaction, table, rng, some(rng, 300))
    if not any(transaction.is_held(table, row, way) for row in rows):
        return False
    client.dooms(f"{ways[way]} WHERE id = ANY ('{array(rows)}')", HOLDING[getattr(reference, way)])


def array(rows):
    return '{%s}' % ','.join(map(str, rows))


def difference(found, right):
    found, right = set(map(tuple, found)), set(right)
    return f'{len(right - found)} rows too few, such as {sorted(right - found)[:3]}, ' \
           f'and {len(found - right)} too many, such as {sorted(found - right)[:3]}'
