"""Rounds of parameters: values of all kinds, by all roads, while a load runs."""
import contextlib
import random
import re
import threading

from servers import BAD, FIXED, LIMIT, Connection, Hang, Lost, Refused, pglib

# upstream's that decide about I/O as ours do
UPSTREAMS = ['io_method', 'io_max_concurrency', 'io_workers', 'io_combine_limit', 'io_max_combine_limit',
             'effective_io_concurrency',
             'maintenance_io_concurrency', 'debug_io_direct', 'backend_flush_after', 'checkpoint_flush_after',
             'wal_buffers',
             'track_io_timing', 'file_copy_method', 'sync']
TEXTS = ['', ' ', 'on', 'off', 'true', 'f', '2', 'yes', 'ON', 'async_capable', 'default', 'auto', 'io_uring', 'libaio',
         'worker', 'sync', 'garbage',
         'ä𝄞', '1 kB', '1kb', '1KB', '1MB', '3GB', '1TB', '9999999TB', '1ms', '7min', '1B', '8kB', '1.5', '1.5kB',
         '.5', '0.4999', '1e3', '1e400',
         '0x10', '0X7fffffff', '010', '0b11', '0o17', '-1', '-0', '+5', '1_000', '2147483647', '2147483648',
         '-2147483648', '-2147483649',
         '9223372036854775808', '9' * 400, 'NaN', 'inf', '-inf', 'x' * 5000, "'", '"', '\\', '%s%n', '$libdir', '1;2',
         '1,2', '\t1 ', '1\n',
         '0 kB', '-1kB', '-1B', 'kB', '1 kB kB', 'data', 'data,wal', 'wal, data', ',', 'none', 'NULL', '--', '/*',
         '\x01', '\u00a0' + '1']

# how a value may be refused
CLEAR = {
    '22023': 'the value is not valid', '42602': 'the name is not', '42704': 'there is no such thing',
    '55P02': 'not now', '42501': 'not allowed',
    '42601': 'syntax', '25001': 'not in a transaction', '22021': 'not in this encoding', '22P02': 'not a number',
    '42939': 'a reserved name',
    '54000': 'too long', '0A000': 'not supported', '58000': 'a limit of the system', '53200': 'out of memory',
    'F0000': 'the file',
    '22P05': 'not in this encoding', '42622': 'too long a name', '42P02': 'no such parameter',
}
ROADS = ['set', 'set', 'local', 'set_config', 'set_config', 'role', 'database', 'system', 'options', 'packet',
         'function', 'file', 'reset', 'show']

LOAD = """
CREATE TABLE load (id int PRIMARY KEY, u uuid, t text, k int);
CREATE INDEX ON load (u);
CREATE INDEX ON load USING hash (u);
CREATE INDEX ON load USING gin (string_to_array(u::text, '-')) WITH (fastupdate = off);
CREATE INDEX ON load USING gist (point(k, id));
CREATE INDEX ON load USING brin (id);
CREATE ROLE fuzzed LOGIN;
CREATE DATABASE fuzzed;
GRANT SET ON PARAMETER aio.effective_io_method TO fuzzed;
GRANT ALL ON SCHEMA public TO fuzzed;
"""


class Load:
    """A client that inserts rows and knows how many; leave it with stop(), which tells what is wrong."""

    def __init__(self, server, rng):
        self.server, self.rows, self.wrong, self.seed = server, 0, [], rng.random()
        self.stopping = threading.Event()
        self.rows = server.query('SELECT count(*) FROM load')[0][0]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        rng = random.Random(self.seed)
        try:
            with self.server.session() as connection:
                while not self.stopping.is_set():
                    count = rng.choice([1, 50, 1200])
                    connection.execute(f"INSERT INTO load SELECT n, md5(n::text)::uuid, repeat('x', n % 40), n % 90 "
                                       f'FROM generate_series({self.rows + 1}, {self.rows + count}) n')
                    self.rows += count
                    if rng.random() < 0.05:
                        connection.execute('CHECKPOINT')
        except (Lost, Refused, Hang) as error:
            self.wrong.append(f'the load: {type(error).__name__} {error}')

    def stop(self):
        self.stopping.set()
        self.thread.join()
        if not self.wrong:
            found = self.server.query("""
                SELECT count(*), count(DISTINCT id), sum(k), (SELECT sum(n % 90) FROM generate_series(1, max(id)) n)
                FROM load""")[0]
            if found[0] != self.rows or found[1] != self.rows or found[2] != found[3]:
                self.wrong.append(f'the load has inserted {self.rows} rows, and there are {found}')
        return self.wrong


def literal(text):
    text = text.replace("'", "''")
    return "E'" + text.replace('\\', '\\\\') + "'" if '\\' in text else f"'{text}'"


class Parameters:
    def __init__(self, server):
        self.server, self.tried, self.accepted, self.refused = server, 0, 0, 0
        with server.session() as connection:
            self.known = {row[0]: row[1:] for row in connection.rows(
                "SELECT name, vartype, context, min_val, max_val, enumvals::text, coalesce(unit, '') FROM pg_settings "
                "WHERE name LIKE 'aio.%' "
                f"OR name IN ({', '.join(map(literal, UPSTREAMS))})")}

    def value(self, rng, name):
        kind, _, low, high, options, _ = self.known.get(name, ('string', '', None, None, None, ''))
        if kind == 'integer' and rng.random() < 0.6:
            low, high = int(low), int(high)
            any_of_them = rng.randint(low, high)
            return str(rng.choice([low - 1, low, low + 1, high - 1, high, high + 1, (low + high) // 2, any_of_them]))
        if kind == 'enum' and rng.random() < 0.4:
            return rng.choice(options.strip('{}').split(','))
        if kind == 'bool' and rng.random() < 0.4:
            return rng.choice(['on', 'off', '1', '0', 'tru', 'o'])
        return rng.choice(TEXTS)

    def expected(self, name, value):
        """Must it be accepted (True), or be refused (False)?  None if that is not obvious."""
        kind, context, low, high, options, _ = self.known.get(name, ('string', '', None, None, None, ''))
        if context != 'user':
            return None
        if kind == 'integer':
            plain = re.fullmatch('-?[1-9][0-9]*|0', value)
            return int(low) <= int(value) <= int(high) if plain else None
        if kind == 'enum':
            return True if value in options.strip('{}').split(',') else None
        if kind == 'bool':
            return True if value in ('on', 'off', '1', '0', 'tru') else False if value in ('2', 'o', '',
                                                                                           'garbage') else None
        return None

    def valid(self, name, setting):
        """Is what the server says its value is within what it says its limits are?"""
        kind, _, low, high, options, _ = self.known[name]
        if kind == 'integer':
            return int(low) <= int(setting) <= int(high)
        if kind == 'bool':
            return setting in ('on', 'off')
        if kind == 'enum':
            # options that are hidden are shown as their like
            return setting in options.strip('{}').split(',')
        return True

    def all_valid(self, connection):
        """What is not, in this session."""
        names = ', '.join(map(literal, self.known))
        return [f'{name} is {setting}' for name,
                setting in connection.rows(f'SELECT name, setting FROM pg_settings WHERE name IN ({names})')
                if not self.valid(name, setting)]

    def attempt(self, rng, connection, road, name, value):
        """By this road, to this value.  Yields what is wrong; raises Refused as the server does."""
        shown = f'"{name}"' if '.' not in name else '.'.join(f'"{part}"' for part in name.split('.', 1))
        if '"' in name or '\0' in name:
            shown = name
        if road == 'set':
            connection.execute(f'SET {shown} TO {rng.choice([literal, literal, literal, str])(value)}')
        elif road == 'local':
            connection.execute('BEGIN')
            try:
                connection.execute(f'SET LOCAL {shown} = {literal(value)}')
                if rng.random() < 0.5:
                    connection.execute('SAVEPOINT a')
                    connection.execute(f'SET {shown} = DEFAULT')
                    connection.execute('ROLLBACK TO a')
                yield from self.all_valid(connection)
                connection.execute('CREATE TEMP TABLE IF NOT EXISTS scratch (id int, u uuid)')
                connection.execute('INSERT INTO scratch SELECT n, md5(n::text)::uuid FROM generate_series(1, 100) n')
            finally:
                connection.execute('ROLLBACK')
        elif road == 'set_config':
            connection.rows(f'SELECT set_config({literal(name)}, {literal(value)}, {rng.choice(["true", "false"])})')
        elif road in ('role', 'database'):
            connection.execute(f'ALTER {road} fuzzed SET {shown} = {literal(value)}')
            try:
                with self.server.session(f'-c {"role" if road == "role" else "search_path"}=fuzzed') as other:
                    yield from self.all_valid(other)
            finally:
                connection.execute(f'ALTER {road} fuzzed RESET ALL')
        elif road == 'system':
            connection.execute(f'ALTER SYSTEM SET {shown} = {literal(value)}')
            try:
                connection.rows('SELECT pg_reload_conf()')
                with self.server.session() as other:
                    yield from self.all_valid(other)
            finally:
                connection.execute(f'ALTER SYSTEM RESET {shown}')
                connection.rows('SELECT pg_reload_conf()')
        elif road == 'options':
            text = value.replace('\\', '\\\\').replace(' ', '\\ ').replace('\n', '\\\n').replace('\t', '\\\t')
            with contextlib.closing(self.server.connect(f'-c {name}={text}', LIMIT)) as other:
                yield from self.all_valid(other)
        elif road == 'packet' and name:
            yield from self.packet(name, value)
        elif road == 'function':
            connection.execute(f'CREATE OR REPLACE FUNCTION with_setting() RETURNS text LANGUAGE sql '
                               f'SET {shown} = {literal(value)} AS $$SELECT current_setting({literal(name)})$$')
            connection.rows('SELECT with_setting()')
        elif road == 'file':
            yield from self.file(connection, name, value)
        elif road == 'reset':
            connection.execute(rng.choice([f'RESET {shown}', 'RESET ALL', 'DISCARD ALL', f'SET {shown} FROM CURRENT',
                                           f'SET SESSION {shown} TO DEFAULT']))
        else:
            connection.rows(rng.choice([f'SHOW {shown}', f'SELECT current_setting({literal(name)})',
                                        f'SELECT pg_settings FROM pg_settings WHERE name = {literal(name)}',
                                        f'SELECT current_setting({literal(name)}, true)']))

    def packet(self, name, value):
        """As a parameter of the startup packet, of its own."""
        with contextlib.closing(Connection(
                f'{self.server.socket_dir}/.s.PGSQL.{self.server.port}', LIMIT, **{name: value})) as other:
            yield from self.all_valid(other)

    def file(self, connection, name, value):
        """In a file of the configuration, which does not name what it does not understand, but does not fail either."""
        path = self.server.data / 'fuzzed.conf'
        path.write_text(f'{name} = {literal(value)}\n', errors='replace')
        pglib.give_to_account(path)
        try:
            connection.rows('SELECT pg_reload_conf()')
            with self.server.session() as other:
                yield from self.all_valid(other)
                other.rows('SELECT * FROM pg_file_settings')
        finally:
            path.write_text('')
            connection.rows('SELECT pg_reload_conf()')

    def round(self, seed):
        rng = random.Random(seed)
        load = Load(self.server, rng)
        wrong = []
        try:
            with self.server.session() as connection:
                for _ in range(60):
                    name, road = self.name(rng), rng.choice(ROADS)
                    value = self.value(rng, name)
                    wrong += self.judge(rng, connection, road, name, value)
                    if connection.closed:
                        break
                if not connection.closed:
                    wrong += self.all_valid(connection)
        finally:
            wrong += load.stop()
        return wrong

    def name(self, rng):
        if rng.random() < 0.93:
            return rng.choice(sorted(self.known))
        return rng.choice(['aio.', 'aio', '.aio', 'aio.nothing', 'aio.max_tasks.more', 'AIO.MAX_TASKS',
                           'aio.Max_Tasks', 'aio.max tasks', 'aio.ä',
                           'aio.' + 'x' * 300, 'aio.max_task', 'pgaio.x', 'aio..max_tasks', 'io_methods', '',
                           'aio.max_tasks '])

    def judge(self, rng, connection, road, name, value):
        """Try it; what is wrong with the outcome?"""
        what = f'{road} {name[:60]} = {value[:60]!r}'
        self.tried += 1
        try:
            wrong = list(self.attempt(rng, connection, road, name, value))
            self.accepted += 1
            expected = self.expected(name, value)
            if expected is False and road in ('local', 'set_config', 'role', 'database', 'options', 'packet',
                                              'function', 'system'):
                wrong.append('accepted, and should not be')
            if road in ('set', 'set_config') and name in self.known:
                wrong += self.all_valid(connection)
        except (Refused, Lost) as error:
            self.refused += 1
            code = getattr(error, 'code', None) or str(error).partition(':')[0]
            wrong = [] if code in CLEAR else [f'{type(error).__name__}: {error}']
            if self.expected(name, value) and road in ('local', 'set_config', 'role', 'database', 'options', 'packet',
                                                       'function', 'system'):
                wrong.append(f'refused, and should be accepted: {error}')
        return [f'{what}: {one}' for one in wrong]


# what a server may be started with, at the limits; and what it may not, or what may be too much
STARTS = {
    'io_max_concurrency': [-1, 1, 2, 3, 64], 'io_workers': [1, 2, 32], 'io_method': ['auto', 'worker', 'io_uring',
                                                                                     'libaio', 'sync'],
    'aio.write_buffers': [-1, 0, 1, 2, 15, 16, 17, 1000, '8kB', '8MB'], 'aio.write_behind': [0, 1, 255, 256],
    'shared_buffers': ['128kB', '1MB', '64MB'], 'wal_buffers': [-1, 4, 8, '1MB'], 'aio.wal_write_ahead': [0, 8, 16,
                                                                                                          16384],
    'aio.max_tasks': [1, 2, 1024], 'max_connections': [4, 10, 30], 'debug_io_direct': ['', 'data', 'wal,data',
                                                                                       'wal_init'],
    'aio.preallocation_size': [0, 1, 2, 131072], 'aio.wal_syncs': [1, 2, 8], 'aio.bulk_flush_after': [0, 1, 131072],
    'effective_io_concurrency': [0, 1, 1000], 'io_combine_limit': [1, 128], 'io_max_combine_limit': [1, 128],
    'wal_level': ['minimal', 'logical'], 'aio.backup_buffers': [0, 1, '255kB', '256kB', '1GB'],
}
DOUBTFUL = {
    'io_max_concurrency': [-2, 0, 1023, 1024, 1025], 'io_workers': [0, 33], 'io_method': ['none', '', 'AUTO'],
    'aio.write_buffers': [-2, '1kB', '1GB', '8TB', 2 ** 30 - 1, 2 ** 30, 2 ** 27, '9999999TB'],
    'aio.write_behind': [-1, 257],
    'aio.wal_write_ahead': [-1, 16385, '1GB'], 'wal_buffers': [0, -2, 2 ** 18], 'aio.max_tasks': [0, 1025],
    'max_connections': [1, 0],
    'debug_io_direct': ['x', 'data wal', ','], 'aio.preallocation_size': [-1, 131073, '1.5'], 'aio.wal_syncs': [0, 9, 'x'],
    'aio.nothing': [1], 'aio.effective_io_method': ['sync'], 'aio.backup_buffers': [-1, '2GB', 'x'],
}


def starts(rng, server):
    """Start a server with settings that only a start can change, at their limits; yields what is wrong."""
    settings = {**FIXED, 'log_min_messages': 'warning'}
    for name, values in STARTS.items():
        if rng.random() < 0.5:
            settings[name] = rng.choice(values)
    if rng.random() < 0.4:
        name = rng.choice(list(DOUBTFUL))
        settings[name] = rng.choice(DOUBTFUL[name])
    what = ' '.join(f'{name}={value}' for name, value in settings.items() if FIXED.get(name) != value)
    server.stop()
    before = server.log_size()
    try:
        server.start(settings, limit=30)
    except pglib.PgError:
        said = server.read_log(before)
        codes = {line.split('|')[1] for line in said.splitlines() if '|FATAL:' in line and line.count('|') >= 2}
        reason = re.search('invalid|outside the valid range|must be|could not map|io_uring|has no effect', said)
        if not (codes or reason) or BAD.search(said) or not reason and any(code.startswith('XX') for code in codes):
            yield f'start with {what}: {said.strip()[-700:]}'
        return
    load = Load(server, rng)
    load.stopping.wait(0.5)
    for one in load.stop():
        yield f'start with {what}: {one}'
