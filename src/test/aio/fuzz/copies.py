"""Rounds of COPY FROM STDIN: two servers, of which one has our features on, must do the same with the same input."""
import collections
import random
import re

import inputs
import tables
from servers import Refused, extended, query
from wire import message


def statement(rng, columns):
    """(format, delimiter, options of COPY TO, options of COPY FROM)"""
    form = rng.choice(['text', 'text', 'csv', 'csv', 'binary'])
    both, only = [f'FORMAT {form}'], []
    delimiter = {'text': '\t', 'csv': ','}.get(form, '')
    if form != 'binary':
        if rng.random() < 0.2:
            delimiter = '|'
            both.append("DELIMITER '|'")
        if rng.random() < 0.2:
            both.append("NULL '<null>'")
        if rng.random() < 0.2:
            only.append(rng.choice(['HEADER', 'HEADER MATCH']))
            both.append('HEADER')
        if rng.random() < 0.3:
            only.append('ON_ERROR ignore')
            if rng.random() < 0.3:
                only.append(f'REJECT_LIMIT {rng.choice([1, 2, 10])}')
            if rng.random() < 0.3:
                only.append('LOG_VERBOSITY verbose')
        if rng.random() < 0.2:
            only.append(f"DEFAULT '{rng.choice(['D', 'DEFAULT', 'x'])}'")
        if rng.random() < 0.1:
            only.append(f"ENCODING '{rng.choice(['LATIN1', 'SQL_ASCII', 'EUC_JP', 'WIN1252', 'UTF8'])}'")
    if form == 'csv' and rng.random() < 0.2:
        only.append(f'{rng.choice(["FORCE_NULL", "FORCE_NOT_NULL"])} ({rng.choice(columns)})')
    if any('HEADER' in option for option in only):
        return form, delimiter, both, [option for option in both if option != 'HEADER'] + only
    return form, delimiter, both, both + only


def session_settings(rng, known):
    """Those of our features that a session may choose."""
    chosen = {
        'aio.await_index_inserts': rng.choice(['on', 'on', 'on', 'off']),
        'aio.index_batch_memory': rng.choice([0, '1kB', '20kB', '200kB', '64MB', '64MB']),
        'aio.batch_unique_keys': rng.choice(['on', 'auto', 'off']),
        'aio.max_tasks': rng.choice([1, 2, 64, 1024]),
        'aio.pipelined_commits': rng.choice(['on', 'off']),
        'aio.debug_rows_before_batch': rng.choice([0, 0, 0, 3, 100, 1000]),
        'aio.debug_suspend': rng.choice(['on', 'off']),
        'aio.debug_delay_completions': rng.choice([0, 3, 50]),
        'aio.debug_seed': rng.randrange(1, 2 ** 31),
    }
    return ' '.join(f'-c {name}={value}' for name, value in chosen.items() if name in known)


def script(rng, good):
    """What a client says in one session; (bytes, description, does it hang up).  `good` makes input."""
    columns = rng.choice([tables.NAMES, tables.NAMES, rng.sample(tables.NAMES, rng.choice([1, 4, 10]))])
    form, delimiter, to, options = statement(rng, columns)
    data = inputs.damage(rng, good(columns, to), form, delimiter.encode())
    where = rng.choice(['', '', '', ' WHERE k > 0', ' WHERE s % 2 = 0'])
    wrap = rng.choice(['', '', 'transaction', 'rollback', 'savepoint', 'freeze', 'cursor', 'twice', 'again'])
    if wrap == 'freeze':
        options.append('FREEZE')
    what = f'COPY t ({", ".join(columns)}) FROM STDIN WITH ({", ".join(options)}){where}'
    said, cut = inputs.protocol(rng, data)
    how = rng.choice([query, query, extended])
    if how is query:
        # see README.md, What is not our bug
        said = said.replace(message(b'E', bytes(5)), message(b'E', b'nothing' + bytes(5)))
    before, after = {
        '': ([], []),
        'transaction': (['BEGIN'], ["SELECT content('true')", 'COMMIT']),
        'rollback': (['BEGIN'], ["SELECT content('k > 0')", 'ROLLBACK']),
        'savepoint': (['BEGIN', 'SAVEPOINT a'], ["SELECT content('true')", 'ROLLBACK TO a', "SELECT content('true')",
                                                 'COMMIT']),
        'freeze': (['BEGIN', 'TRUNCATE t'], ['COMMIT']),
        'cursor': (['BEGIN', 'DECLARE c CURSOR FOR SELECT id + 0 FROM t ORDER BY id'], ['FETCH 3 FROM c', 'COMMIT']),
        'twice': ([], []),
        'again': ([], []),
    }[wrap]
    text = b''.join(map(query, before))
    if wrap == 'twice':
        # two in one message: what comes after the end of the first is for the second
        text += query(f'{what}; {what}') + said + said
    else:
        text += how(what) + said
    if wrap == 'again':
        text += how(what) + inputs.protocol(rng, data)[0]
    if cut:
        hang_up = wrap != 'again' and wrap != 'twice' and rng.random() < 0.5 and not any(
            one in said for one in (b'c\0\0\0', b'f\0\0\0', b'X\0\0\0'))
    else:
        hang_up = False
        text += b''.join(map(query, after))
        text += query("SELECT 'alive'")
    return text, f'{wrap} {what}, {len(data)} bytes', hang_up


def comparable(answers):
    """Answers without what differs from one server to another, for reasons that are not ours: see README.md."""
    for kind, body in answers:
        if kind == 'E' and body['C'] == '22P04':
            body = {**body, 'W': re.sub(r', column .*', '', body.get('W', ''), flags=re.DOTALL)}
        if kind == 'E' and 'D' in body:
            # where in the table a row would be is nobody's business
            body = {**body, 'D': re.sub(r'tuple \(\d+,\d+\)', 'tuple', body['D'])}
        if kind != 'S':
            yield kind, body


def overtaken(mine, yours):
    """Is one answer about the input, instead of an error of a foreign server that has been sent rows before?

    We await its answers later than PostgreSQL does, which the manual says.
    """
    return mine[0] == yours[0] == 'E' and mine[1].get('W', '').startswith('COPY t, line ') and \
        yours[1].get('W', '').startswith('remote SQL command: ')


def lost(answers):
    """Are these the answers of a server that cannot read the next message, after an error in the middle of one?"""
    return [kind == 'E' and body['C'] for kind, body in answers] == ['08P01']


def difference(ours, theirs):
    """What the first difference of two answers is, or None."""
    ours, theirs = list(comparable(ours)), list(comparable(theirs))
    for number, (mine, yours) in enumerate(zip(ours, theirs)):
        if mine == yours:
            continue
        if not overtaken(mine, yours):
            return f'answer {number}: {mine} instead of {yours}'
        if lost(ours[number + 1:]) and (mine[1]['C'] == '08P01' or all(kind == 'Z' for kind, _ in theirs[number + 1:])):
            # the input ended within a message, or was a statement, where the other server, which had reported its error,
            # skipped that, or carried it out
            return None
    if len(ours) != len(theirs):
        return f'{len(ours)} answers instead of {len(theirs)}; the last ones: {ours[-2:]} instead of {theirs[-2:]}'
    return None


class Copies:
    """Rounds; `statements` counts what has been compared, `failed` how many of those were errors."""

    def __init__(self, server, reference):
        self.server, self.reference = server, reference
        self.statements, self.failed, self.checks, self.codes = 0, 0, 0, collections.Counter()
        with server.session() as connection:
            self.known = {name for name, in connection.rows("SELECT name FROM pg_settings WHERE name LIKE 'aio.%'")}
        self.alter = None       # the proof's: what happens to one side

    def good(self, first, count, wide):
        """Makes good input of these rows."""
        def copied(columns, options):
            with self.reference.session() as connection:
                rows = f'SELECT {", ".join(columns)} FROM ({tables.rows(first, count, wide)}) rows'
                return b''.join(connection.execute(f'COPY ({rows}) TO STDOUT WITH ({", ".join(options)})').data)
        return copied

    def both(self, text, options, ours, hang_up=False):
        """Say it to both servers; what is different?"""
        theirs = self.reference.talk(text, options, hang_up)
        answers = self.server.talk(self.alter(text) if self.alter else text, f'{options} {ours}', hang_up)
        self.statements += 1
        errors = [body['C'] for kind, body in theirs if kind == 'E']
        self.failed += bool(errors)
        self.codes.update(errors[:1])
        return difference(answers, theirs)

    def round(self, seed):
        """Yields what is wrong."""
        rng = random.Random(seed)
        options = '-c search_path=fuzzed,public'
        definition, probes = tables.table(rng)
        definition = ['SET client_min_messages = warning', 'DROP SCHEMA IF EXISTS fuzzed CASCADE',
                      'CREATE SCHEMA fuzzed',
                      'TRUNCATE notes', *definition]
        for side in (self.server, self.reference):
            with side.session(options) as connection:
                for one in definition:
                    connection.execute(one)
        first, wide = rng.choice([1, 400]), rng.choice([50, 1_000_000_000, 1_000_000_000, 1_000_000_000])
        for _ in range(rng.choice([1, 2, 3, 4])):
            count = rng.choice([1, 10, 100, 100, 1100, 2500])
            ours = session_settings(rng, self.known)
            text, what, hang_up = script(rng, self.good(first, count, wide))
            wrong = self.both(text, options, ours, hang_up)
            where = f'rows {first} to {first + count - 1}, {what}; {ours}'
            if wrong:
                yield f'{wrong}; {where}'
            if rng.random() < 0.5:
                first += count
            wrong = self.compare(options)
            if wrong:
                yield f'{wrong}; after {where}'
                return
        yield from (f'{one}; table: {"; ".join(definition[4:])}' for one in self.check(options, probes))

    def compare(self, options):
        """Is the content of the tables the same?"""
        contents = []
        for side in (self.server, self.reference):
            with side.session(options) as connection:
                contents.append(connection.rows("SELECT content('true'), count(*), sum(id) FROM notes")[0])
        if contents[0] != contents[1]:
            return f'content {contents[0]} instead of {contents[1]}'
        return None

    def check(self, options, probes):
        """What is wrong with the table's indexes, that is not also wrong in the other server?"""
        found = self.complaints(self.server, options, probes)
        self.checks += 1
        if found and found == self.complaints(self.reference, options, probes):
            return []
        return found

    @staticmethod
    def complaints(side, options, probes):
        conditions = ', '.join("'" + probe.replace("'", "''") + "'" for probe in probes)
        with side.session(options) as connection:
            try:
                found = connection.rows(f'SELECT complaints(ARRAY[{conditions}])')
                found += connection.rows("""SELECT 'I/O left: ' || a FROM pg_aios a
                    WHERE pid NOT IN (SELECT pid FROM pg_stat_activity)""")
                found += connection.rows("""SELECT 'lock left: ' || l FROM pg_locks l
                    WHERE pid <> pg_backend_pid() AND locktype = 'relation'""")
                if connection.rows("SELECT FROM pg_extension WHERE extname = 'aio'"):
                    found += connection.rows("SELECT 'task left: ' || t FROM pg_aio_tasks t")
                return [one for one, in found]
            except Refused as error:
                return [str(error)]
