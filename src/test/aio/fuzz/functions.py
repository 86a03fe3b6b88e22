"""Rounds of our functions and views: called with what they do not expect, where they do not expect it."""
import contextlib
import random

from servers import Hang, Lost, Refused

OBJECTS = """
CREATE EXTENSION aio;
CREATE TABLE kinds (id int PRIMARY KEY, a int[], p point, t text);
CREATE INDEX kinds_hash ON kinds USING hash (id);
CREATE INDEX kinds_gin ON kinds USING gin (a);
CREATE INDEX kinds_gist ON kinds USING gist (p);
CREATE INDEX kinds_spgist ON kinds USING spgist (p);
CREATE INDEX kinds_brin ON kinds USING brin (id);
INSERT INTO kinds SELECT n, ARRAY[n], point(n, n), n FROM generate_series(1, 5000) n;
CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY HASH (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
CREATE VIEW a_view AS SELECT * FROM kinds;
CREATE MATERIALIZED VIEW a_matview AS SELECT * FROM kinds;
CREATE SEQUENCE a_sequence;
CREATE TYPE a_type AS (x int);
CREATE ROLE nobody LOGIN
"""

ARGUMENTS = {
    'oid': ['NULL', '0', '1', '4294967295', '-1', '2147483648', "'kinds'::regclass", "'kinds_pkey'::regclass",
            "'kinds_hash'::regclass",
            "'kinds_gin'::regclass", "'kinds_gist'::regclass", "'kinds_brin'::regclass", "'parts'::regclass",
            "'parts_pkey'::regclass",
            "'a_view'::regclass", "'a_matview'::regclass", "'a_sequence'::regclass", "'a_type'::regclass",
            "'pg_class'::regclass",
            "'pg_class_oid_index'::regclass", "'pg_database_oid_index'::regclass", "'pg_stat_aio'::regclass",
            "'kinds'::regtype::oid",
            "(SELECT indexrelid FROM pg_index JOIN pg_class c ON indrelid = reltoastrelid WHERE relname = 'kinds')",
            '(SELECT max(oid)::bigint + 1 FROM pg_class)::oid', "'x'", "''", '4294967296', '1.5', 'pg_backend_pid()'],
}
OTHERS = ['NULL', '0', '-1', "'x'", '2147483647', "''", '9223372036854775808', 'now()', "'{}'::int[]"]

# a call, in something
PLACES = [
    'SELECT {call}', 'SELECT * FROM {call}', 'SELECT * FROM {call} x LIMIT 1',
    'SELECT * FROM generate_series(1, 3) n, LATERAL {call} x',
    'SELECT count(*) FROM (SELECT {call} FROM generate_series(1, 50)) x', 'SELECT ({call})',
    'SELECT {call} WHERE false',
    'BEGIN READ ONLY; SELECT {call}; COMMIT', 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT {call}; ROLLBACK',
    'BEGIN; SELECT 1 / 0; SELECT {call}; ROLLBACK',
    'BEGIN; SAVEPOINT a; SELECT {call}; ROLLBACK TO a; SELECT {call}; COMMIT',
    'BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT * FROM {call} x; FETCH 1 FROM c; COMMIT; '
    'FETCH BACKWARD 1 FROM c; CLOSE c',
    'BEGIN; DECLARE c CURSOR FOR SELECT {call}; FETCH 1 FROM c; FETCH 100 FROM c; ROLLBACK',
    'CREATE TEMP TABLE made AS SELECT * FROM {call} x; DROP TABLE made',
    'EXPLAIN (ANALYZE, COSTS off) SELECT * FROM {call} x',
    'SELECT set_config(\'debug_parallel_query\', \'regress\', false); SELECT {call}; RESET debug_parallel_query',
    'PREPARE s AS SELECT {call}; EXECUTE s; EXECUTE s; DEALLOCATE s',
    'INSERT INTO kinds (id, t) SELECT -1, {call}::text ON CONFLICT DO NOTHING',
    'SELECT * FROM ROWS FROM ({call}, generate_series(1, 3)) WITH ORDINALITY',
    'SET ROLE nobody; SELECT {call}; RESET ROLE',
    'DO $$BEGIN PERFORM {call}; EXCEPTION WHEN OTHERS THEN IF sqlstate LIKE \'XX%\' THEN RAISE; END IF; END$$',
]
VIEWS = ['pg_stat_aio', 'pg_stat_aio_latency', 'pg_stat_aio_depth', 'pg_stat_aio_relation', 'pg_aio_tasks', 'pg_aios']
QUERIES = [
    'TABLE {view}', 'SELECT count(*) FROM {view}', 'SELECT x FROM {view} x ORDER BY x::text LIMIT 2',
    'SELECT * FROM {view} a JOIN {view} b ON a::text = b::text',
    'SELECT to_jsonb(x) FROM {view} x', 'INSERT INTO {view} DEFAULT VALUES', 'DELETE FROM {view}',
    'SELECT ctid FROM {view}', 'LOCK {view}',
    'BEGIN; DECLARE c CURSOR FOR TABLE {view}; FETCH 1 FROM c; MOVE 5 IN c; COMMIT', 'SELECT * FROM {view} FOR UPDATE',
    'VACUUM {view}', 'ANALYZE {view}',
    'SET ROLE nobody; TABLE {view}; RESET ROLE', 'COPY {view} TO STDOUT',
    'COPY (TABLE {view}) TO STDOUT (FORMAT binary)', 'TABLE {view}; TABLE {view}',
]
OPTIONS = ['aio', 'AIO on', 'aio off', 'aio 2', "aio 'x'", 'aio garbage', 'aio, aio', 'aio 1.5', 'aio true, analyze',
           'analyze, aio false, aio', 'aio default',
           'analyze, aio, format json', 'analyze, aio, format xml', 'analyze, aio, format yaml', 'aio -1', "aio ''",
           'aio null']
EXPLAINED = ['SELECT * FROM kinds',
             'INSERT INTO kinds SELECT n FROM generate_series(-3000, -1000) n ON CONFLICT DO NOTHING',
             'DELETE FROM kinds WHERE id < 0',
             'SELECT * FROM kinds WHERE id = 5', 'CREATE TABLE not_made AS SELECT * FROM kinds',
             'DECLARE c CURSOR FOR SELECT 1', 'EXECUTE nothing', 'SELECT 1 / 0',
             'MERGE INTO kinds USING (VALUES (-1), (2)) v(x) ON id = x WHEN NOT MATCHED THEN INSERT VALUES (x) '
             'WHEN MATCHED THEN UPDATE SET t = 1']


class Functions:
    def __init__(self, server):
        self.server, self.tried, self.refused = server, 0, 0
        self.functions = server.query("""SELECT proname, array_to_string(proargtypes::regtype[], ',') FROM pg_proc
            WHERE oid IN (SELECT objid FROM pg_depend JOIN pg_extension e ON e.oid = refobjid AND extname = 'aio'
                          WHERE classid = 'pg_proc'::regclass)
            OR proname IN ('pg_get_aios') ORDER BY 1, 2""")

    def call(self, rng):
        name, types = rng.choice(self.functions)
        arguments = [rng.choice(ARGUMENTS[kind] if kind in ARGUMENTS and rng.random() < 0.9 else OTHERS)
                     for kind in types.split(',') if kind]
        if rng.random() < 0.05:
            arguments = rng.choice([[], arguments + ['NULL'], [*arguments, '1']])
        return f'{name}({", ".join(arguments)})'

    def statements(self, rng):
        kind = rng.random()
        if kind < 0.55:
            return rng.choice(PLACES).format(call=self.call(rng)).split('; ')
        if kind < 0.8:
            return rng.choice(QUERIES).format(view=rng.choice(VIEWS)).split('; ')
        return [f'EXPLAIN ({rng.choice(OPTIONS)}) {rng.choice(EXPLAINED)}']

    def round(self, seed):
        """Yields what is wrong."""
        rng = random.Random(seed)
        with self.server.session('-c statement_timeout=30s') as connection:
            for _ in range(120):
                statements = self.statements(rng)
                if statements[0].startswith('DO '):
                    statements = ['; '.join(statements)]
                for statement in statements:
                    self.tried += 1
                    try:
                        connection.execute(statement)
                    except Refused as error:
                        self.refused += 1
                        if error.code.startswith('XX') or error.code == '57014':
                            yield f'{statement}: {error}'
                    except (Lost, Hang) as error:
                        yield f'{statement}: {type(error).__name__} {error}'
                        return
                with contextlib.suppress(Refused):
                    connection.execute('ROLLBACK')
                    connection.execute('RESET ROLE')
