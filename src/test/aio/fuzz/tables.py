"""Random tables, with indexes of all access methods, and rows for them that a query makes from numbers alone."""

# name, type, the query's expression for row n; {0} is where numbers begin that differ from one run of rows to the next
COLUMNS = [
    ('id', 'int', 'n'),
    ('k', 'int', "(hashint8extended(n, 1) % {wide})::int"),
    ('s', 'smallint', '(hashint8extended(n, 2) % 700)::smallint'),
    ('t', 'text',
     "CASE WHEN n % 11 = 0 THEN NULL ELSE left(repeat(md5(n::text), 9), abs(hashint8extended(n, 3) % 280)::int) END"),
    ('u', 'uuid', 'md5((n * 7)::text)::uuid'),
    ('d', 'date', "date '2026-01-01' + (hashint8extended(n, 4) % 1000)::int"),
    ('m', 'numeric', '(hashint8extended(n, 5) % 1000000) / 7.0'),
    ('f', 'float8', '(hashint8extended(n, 6) % 1000) / 8.0'),
    ('j', 'jsonb', "jsonb_build_object('n', n % 50, 'list', jsonb_build_array(n, 'x', null))"),
    ('a', 'int[]', 'ARRAY[(n % 17)::int, NULL, (n % 5)::int]'),
    ('p', 'point', 'point(hashint8extended(n, 7) % 1000, hashint8extended(n, 8) % 1000)'),
    ('r', 'int4range', 'int4range((n % 1000)::int, (n % 1000 + n % 9)::int)'),
    ('v', 'tsvector', "to_tsvector('simple', md5((n % 20)::text) || ' word ' || n % 100)"),
    ('i', 'inet', "inet '10.0.0.0' + n % 65536"),
    ('y', 'bytea', "decode(md5(n::text), 'hex')"),
]
NAMES = [name for name, _, _ in COLUMNS]

# how to ask an index of these for some rows
PROBES = {
    'btree k': 'k BETWEEN -500000000 AND 0', 'btree s': 's < 100', 'btree t': "t >= 'a'",
    'btree u': "u > '80000000-0000-0000-0000-000000000000'",
    'btree d': "d > '2026-06-01'", 'btree m': 'm > 0', 'btree lower(t)': "lower(t) < 'c'",
    'btree (k + s)': '(k + s) > 0',
    'btree a': "a > '{5}'", 'btree j': "j > '{}'", 'btree y': "y < '\\x80'", 'btree i': "i > '10.0.0.50'",
    'btree f': 'f > 0',
    'hash k': 'k = 7', 'hash t': "t = 'x'", 'hash u': "u = md5('21')::uuid", 'hash s': 's = 5',
    'gin j': """j @> '{"n": 3}'""", 'gin a': "a @> '{4}'", 'gin v': "v @@ 'word'",
    'gist p': "p <@ box '(-500,-500),(500,500)'", 'gist r': "r && '[5,300)'", 'gist s': 's > 10',
    'gist v': "v @@ 'word'",
    'spgist p': "p <@ box '(0,0),(900,900)'", 'spgist r': "r && '[5,300)'", 'spgist t': "t ^@ 'a'",
    'spgist i': "i << '10.0.0.0/20'",
    'brin id': 'id BETWEEN 10 AND 200', 'brin d': "d > '2026-01-01'",
}



def index(rng, partitioned):
    """What follows CREATE INDEX ON t or CREATE UNIQUE INDEX ON t, with the probe; None if it is no index of its own."""
    where = rng.choice(['', '', '', '', ' WHERE s % 3 = 0', ' WHERE t IS NOT NULL'])
    if rng.random() < 0.25:
        key = rng.choice(['id', 'id', 'k', 'k, t', 'u', 'md5(k::text)', 'i, s'])
        if partitioned and not key.startswith('id'):
            key = f'id, {key}'
        nulls = rng.choice(['', '', ' NULLS NOT DISTINCT'])
        return f'CREATE UNIQUE INDEX ON t ({key}){rng.choice(["", " INCLUDE (s)"])}{nulls}{where}', None
    name = rng.choice(list(PROBES))
    method, key = name.split(' ', 1)
    options = ''
    if method == 'gin':
        options = rng.choice(['', ' WITH (fastupdate = off)', ' WITH (fastupdate = off)'])
    elif method == 'btree':
        key += rng.choice(['', '', ' DESC', ' NULLS FIRST'])
        key += rng.choice(['', '', ', s', ', t COLLATE "C"'])
    elif method == 'gist' and key == 'p':
        options = rng.choice(['', ' INCLUDE (t)'])
    elif method == 'brin':
        options = ' WITH (pages_per_range = 2, autosummarize = on)'
    return f'CREATE INDEX ON t USING {method} ({key}){options}{where}', PROBES[name]


def table(rng):
    """Statements that make a table t in the schema that is current, and conditions that its indexes know."""
    partitioned = rng.random() < 0.35
    foreign = partitioned and rng.random() < 0.4
    kind = rng.choice(['', '', '', 'UNLOGGED ']) if not partitioned else ''
    columns = []
    for name, type_, _ in COLUMNS:
        columns.append(f'{name} {type_}')
    if rng.random() < 0.2:
        columns[2] += ' NOT NULL'
    if rng.random() < 0.3:
        columns[3] += " DEFAULT 'a default'"
        columns[1] += ' DEFAULT 42'
    if rng.random() < 0.2:
        columns.append("g text GENERATED ALWAYS AS (md5(u::text)) STORED")
    statements = [f'CREATE {kind}TABLE t ({", ".join(columns)})']
    if partitioned:
        parts = rng.choice([2, 7])
        if rng.random() < 0.5:
            statements[0] += ' PARTITION BY HASH (id)'
            statements += [f'CREATE TABLE t_{n} PARTITION OF t FOR VALUES WITH (MODULUS {parts}, REMAINDER {n})'
                           for n in range(parts)]
        else:
            statements[0] += ' PARTITION BY RANGE (id)'
            ends = ['MINVALUE', *(n * 700 for n in range(1, parts)), rng.choice(['MAXVALUE', '20000'])]
            statements += [f'CREATE TABLE t_{n} PARTITION OF t FOR VALUES FROM ({first}) TO ({last})'
                           for n, (first, last) in enumerate(zip(ends, ends[1:]))]
        if foreign:
            # the last one is in a table of a server, which is this one
            made = statements.pop()
            statements += [f'CREATE TABLE remote ({", ".join(columns)}, CHECK (s > -699))',
                           'CREATE INDEX ON remote (u)',
                           rng.choice(['CREATE UNIQUE INDEX ON remote (id)', 'CREATE INDEX ON remote USING hash (k)']),
                           f"{made.replace('TABLE', 'FOREIGN TABLE')} SERVER {rng.choice(['one', 'ten', 'thousand'])} "
                           "OPTIONS (schema_name 'fuzzed', table_name 'remote')"]
    probes = ['true']
    for _ in range(rng.choice([1, 3, 5, 8])):
        statement, probe = index(rng, partitioned)
        if foreign and 'UNIQUE' in statement:
            continue
        statements.append(statement)
        if probe:
            probes.append(probe)
    constraints = ['ADD CHECK (s > -699)', 'ADD CHECK (length(t) < 9000)', 'ADD CHECK (k IS NOT NULL) NOT VALID',
                   'ADD FOREIGN KEY (s) REFERENCES parents',
                   'ADD FOREIGN KEY (s) REFERENCES parents DEFERRABLE INITIALLY DEFERRED']
    if not partitioned:
        constraints += ['ADD UNIQUE (k) DEFERRABLE', 'ADD UNIQUE (k, s) DEFERRABLE INITIALLY DEFERRED',
                        'ADD EXCLUDE USING gist (k WITH =)', 'ADD EXCLUDE USING gist (r WITH &&) WHERE (s = 3)']
    if foreign:
        constraints = constraints[:3]
    for constraint in rng.sample(constraints, rng.choice([0, 0, 1, 2])):
        if 'parents' in constraint:
            statements.append('CREATE TABLE IF NOT EXISTS parents (s smallint PRIMARY KEY)')
            statements.append('INSERT INTO parents SELECT n FROM generate_series(-700, 699) n ON CONFLICT DO NOTHING')
            if rng.random() < 0.3:
                # some keys have no parent
                statements.append('DELETE FROM parents WHERE s % 97 = 5')
        statements.append(f'ALTER TABLE t {constraint}')
    for trigger in rng.sample(['BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.alter_row()',
                               'AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION public.note_row()',
                               'AFTER INSERT ON t REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT '
                               'EXECUTE FUNCTION public.note_all()'],
                              rng.choice([0, 0, 0, 1, 2])):
        statements.append(f'CREATE TRIGGER "{trigger.split()[0].lower()}_{len(statements)}" {trigger}')
    return statements, probes


# what tables use
COMMON = """
CREATE EXTENSION amcheck;
CREATE EXTENSION btree_gist;
CREATE EXTENSION postgres_fdw;
CREATE TABLE notes (what text, id int);
CREATE FUNCTION alter_row() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF new.k % 13 = 0 THEN RETURN NULL; END IF;
    new.s := new.s / 2;
    RETURN new;
END$$;
CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    IF new.k % 50 = 0 AND EXISTS (SELECT FROM t WHERE t.id = new.id) THEN
        INSERT INTO public.notes VALUES (tg_table_name, new.id);
    END IF;
    RETURN NULL;
END$$;
CREATE FUNCTION note_all() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
    INSERT INTO public.notes SELECT 'all', count(*) FROM fresh;
    RETURN NULL;
END$$;
CREATE FUNCTION content(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    EXECUTE 'SELECT count(*) || '' rows, '' || coalesce(sum(hashtextextended(t::text, 0)), 0) FROM t WHERE '
        || condition INTO found;
    RETURN found;
END$$;
CREATE FUNCTION complaints(conditions text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    i regclass;
    u boolean;
    condition text;
    scanned text;
BEGIN
    FOR i, u IN SELECT indexrelid, indisunique AND indimmediate FROM pg_index JOIN pg_class c ON c.oid = indexrelid
        JOIN pg_am am ON am.oid = relam WHERE amname = 'btree' AND relkind = 'i'
        AND indrelid IN (SELECT relid FROM pg_partition_tree('t') WHERE isleaf)
    LOOP
        PERFORM bt_index_parent_check(i, true, true, u);
    END LOOP;
    FOR i IN SELECT indexrelid FROM pg_index JOIN pg_class c ON c.oid = indexrelid
        JOIN pg_am am ON am.oid = relam WHERE amname = 'gin' AND relkind = 'i'
        AND indrelid IN (SELECT relid FROM pg_partition_tree('t') WHERE isleaf)
    LOOP
        PERFORM gin_index_check(i);
    END LOOP;
    FOREACH condition IN ARRAY conditions LOOP
        SET LOCAL enable_indexscan = off;
        SET LOCAL enable_bitmapscan = off;
        SET LOCAL enable_indexonlyscan = off;
        scanned := content(condition);
        SET LOCAL enable_seqscan = off;
        SET LOCAL enable_indexscan = on;
        SET LOCAL enable_indexonlyscan = on;
        IF scanned <> content(condition) THEN
            RETURN NEXT 'index scan ' || condition || ': ' || content(condition) || ' instead of ' || scanned;
        END IF;
        SET LOCAL enable_bitmapscan = on;
        SET LOCAL enable_indexscan = off;
        IF scanned <> content(condition) THEN
            RETURN NEXT 'bitmap scan ' || condition || ': ' || content(condition) || ' instead of ' || scanned;
        END IF;
        SET LOCAL enable_seqscan = on;
    END LOOP;
    RETURN QUERY SELECT relid || ': ' || msg
        FROM pg_partition_tree('t') JOIN pg_class c ON c.oid = relid, verify_heapam(relid)
        WHERE isleaf AND relkind = 'r';
END$$;
"""


def rows(first, count, wide):
    """A query for good rows, the same ones each time."""
    columns = ', '.join(f'{expression.format(wide=wide)} AS {name}' for name, _, expression in COLUMNS)
    return f'SELECT {columns} FROM generate_series({first}, {first + count - 1}) n'
