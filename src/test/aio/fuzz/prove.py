"""Does the fuzzer see what is wrong?  Each is done on purpose, and must be reported."""
import os
import signal

from cluster import wait_until
from servers import query
from wire import message


def prove(fuzzer):
    fuzzer.begin(0)
    # the last test has the server crash, and does not wait until it is back
    wrong = list(fuzzer.work['copy'].round('nothing is wrong'))
    print(f'{"REPORTED" if wrong else "quiet"}: nothing is wrong')
    missed = []
    for test in (byte_altered, row_lost, row_altered, index_incomplete, lock_left, limit_wrong, internal_error, crash):
        found = list(test(fuzzer))
        print(f'{"found" if found else "MISSED"}: {test.__doc__} {found[:1]}'[:300], flush=True)
        if not found:
            missed.append(test)
    return not missed and not wrong


OPTIONS = '-c search_path=fuzzed,public'
INPUT = query('COPY t FROM STDIN') + message(b'd', b'1\t2\n3\t4\n') + message(b'c')


def fresh(fuzzer):
    """A small table in both servers."""
    for side in (fuzzer.ours, fuzzer.reference):
        with side.session(OPTIONS) as connection:
            for statement in ('SET client_min_messages = warning', 'DROP SCHEMA IF EXISTS fuzzed CASCADE',
                              'CREATE SCHEMA fuzzed',
                              'CREATE TABLE t (id int, k int)', 'CREATE INDEX ON t (k)',
                              'CREATE UNIQUE INDEX ON t (id)'):
                connection.execute(statement)
    return fuzzer.work['copy']


def byte_altered(fuzzer):
    """one byte of the input differs"""
    copies = fresh(fuzzer)
    copies.alter = lambda text: text.replace(b'3\t4', b'1\t4')
    try:
        yield from filter(None, [copies.both(INPUT, OPTIONS, '')])
    finally:
        copies.alter = None


def changed(fuzzer, statement):
    copies = fresh(fuzzer)
    if copies.both(INPUT, OPTIONS, '') or copies.compare(OPTIONS):
        raise AssertionError('the servers differ already')
    with fuzzer.ours.session(OPTIONS) as connection:
        connection.execute(statement)
    yield from filter(None, [copies.compare(OPTIONS)])


def row_lost(fuzzer):
    """a row is missing"""
    yield from changed(fuzzer, 'DELETE FROM t WHERE id = 3')


def row_altered(fuzzer):
    """a row is another one"""
    yield from changed(fuzzer, 'UPDATE t SET k = 5 WHERE id = 3')


def index_incomplete(fuzzer):
    """an index lacks an entry"""
    copies = fresh(fuzzer)
    with fuzzer.ours.session(OPTIONS) as connection:
        connection.execute("UPDATE pg_index SET indisready = false WHERE indexrelid = 't_k_idx'::regclass")
        connection.execute('INSERT INTO t VALUES (7, 7)')
        connection.execute("UPDATE pg_index SET indisready = true WHERE indexrelid = 't_k_idx'::regclass")
    yield from copies.check(OPTIONS, ['k = 7'])


def lock_left(fuzzer):
    """a lock is left"""
    copies = fresh(fuzzer)
    with fuzzer.ours.session(OPTIONS) as connection:
        connection.execute('BEGIN')
        connection.execute('LOCK TABLE t IN SHARE MODE')
        yield from copies.check(OPTIONS, ['k = 7'])


def limit_wrong(fuzzer):
    """a parameter has a value beyond its limit"""
    parameters = fuzzer.work['parameters']
    known, parameters.known = parameters.known, {**parameters.known, 'aio.max_tasks': ('integer', 'user', '1', '10',
                                                                                       None, '')}
    try:
        with fuzzer.ours.session('-c aio.max_tasks=11') as connection:
            yield from parameters.all_valid(connection)
    finally:
        parameters.known = known


def internal_error(fuzzer):
    """a function fails with an internal error"""
    functions = fuzzer.work['functions']
    known, functions.functions = functions.functions, [('pg_get_viewdef_of_nothing', 'oid')]
    fuzzer.ours.query("CREATE FUNCTION pg_get_viewdef_of_nothing(oid) RETURNS text LANGUAGE plpgsql AS "
                      "$$BEGIN RAISE 'internal' USING errcode = 'XX000'; END$$")
    try:
        yield from functions.round('0')
    finally:
        functions.functions = known


def crash(fuzzer):
    """a session crashes"""
    with fuzzer.ours.session() as connection:
        os.kill(connection.pid, signal.SIGSEGV)
        try:
            connection.execute('SELECT 1')
        except Exception:   # which one does not matter
            pass
    # it may accept connections until the postmaster has noticed
    found = []
    wait_until(lambda: found.extend(fuzzer.ours.complaints()) or found, 'the end of a session')
    fuzzer.ours.alive()
    yield from found
