"""Random schemas, whose every row is a function of its table, its id and its version.

A table has the columns `id bigint` and `version int`, and others that are expressions of the two: so whoever knows a
row's version knows its content.  An expression is SQL in which @id and @v stand for the two, and @a, @b, @c for
numbers that look random: of both if the column changes with each version, of the id alone if it does not.

Invariants: what a schema is, depends on its random numbers alone.  Unique columns contain the id, exclusive ranges are
disjoint, so that clients with different ids never wait for each other's keys.  A row refers to one with the same id, or
to none.  What it refers to, and keys to which others refer, are no function of the version: see Reference.
"""
import re

HASHES = {'@a': 1, '@b': 2, '@c': 3}
# what a row refers to that has got the default: nothing
UNSET = -1
# actions that keep a row from being deleted, or from getting another key, and how
HOLDING = {'RESTRICT': '23001', 'NO ACTION': '23503'}
RANGE = '(hashint8extended(%s, %d) & 1048575)'

# name: (type, expression)
KINDS = {
    'number': ('int', '@a::int'),
    'few': ('int', '(@a % 50)::int'),
    'key': ('bigint', '@id * 1000 + @v % 1000'),
    'word': ('text', "'w' || (@a % 300)::text"),
    'text': ('text', 'md5(@a::text)'),
    'long': ('text', 'repeat(md5(@a::text), 1 + (@b % 8 = 0)::int * (@c % 150)::int)'),
    'uuid': ('uuid', 'md5(@a::text)::uuid'),
    'date': ('date', "'2000-01-01'::date + (@a % 10000)::int"),
    'time': ('timestamp', "'2000-01-01'::timestamp + @a * '1 minute'::interval"),
    'numeric': ('numeric', '(@a % 100000) / 7.0'),
    'float': ('float8', '@a / 3.0::float8'),
    'bool': ('bool', '@a % 3 = 0'),
    'bytes': ('bytea', "decode(md5(@a::text), 'hex')"),
    'ints': ('int[]', 'ARRAY[(@a % 40)::int, (@b % 700)::int, (@c % 40)::int]'),
    'words': ('text[]', "string_to_array('a' || (@a % 30)::text || ' b' || (@b % 500)::text, ' ')"),
    'json': ('jsonb', """('{"a": ' || (@a % 60)::text || ', "b": ["' || md5(@b::text) || '", true]}')::jsonb"""),
    'vector': ('tsvector', "to_tsvector('simple', 'x' || (@a % 50)::text || ' y' || (@b % 500)::text)"),
    'range': ('int8range', 'int8range(@id * 10, @id * 10 + 1 + @a % 9)'),
    'span': ('int4range', 'int4range((@a % 20000)::int, (@a % 20000 + 1 + @b % 60)::int)'),
    'point': ('point', 'point(@a % 1000, @b % 1000)'),
    'box': ('box', 'box(point(@a % 1000, @b % 1000), point(@a % 1000 + @c % 20, @b % 1000 + 5))'),
    'inet': ('inet', "'10.0.0.0'::inet + @a"),
}
NOT_NULL = {'key', 'range'}
WITHOUT_EQUALITY = {'point', 'box'}
ORDERED = ['number', 'few', 'key', 'word', 'text', 'uuid', 'date', 'time', 'numeric', 'float', 'bool', 'bytes', 'inet',
           'range', 'ints']
# access method: kinds, each with the operator classes that fit
CLASSES = {
    'hash': {kind: [''] for kind in ('number', 'key', 'word', 'text', 'long', 'uuid', 'date', 'numeric', 'inet')},
    'gin': {'ints': [''], 'words': [''], 'json': ['', 'jsonb_path_ops'], 'vector': ['']},
    'gist': {'range': [''], 'span': [''], 'point': [''], 'box': [''], 'inet': ['inet_ops']},
    'spgist': {'text': [''], 'word': [''], 'point': ['', 'kd_point_ops'], 'inet': [''], 'range': [''], 'span': [''],
               'box': ['']},
    # not those named minmax_multi: PostgreSQL 18 forgets what is inserted while it summarizes (see README.md)
    'brin': {'number': ['', 'int4_bloom_ops'], 'key': ['', 'int8_bloom_ops'], 'date': ['', 'date_bloom_ops'],
             'uuid': ['', 'uuid_bloom_ops'], 'numeric': ['', 'numeric_bloom_ops']},
}

COMMON = """
CREATE EXTENSION amcheck;
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pageinspect;
-- each transaction that changes anything is in here
CREATE TABLE txlog (client int, seq int, xid xid8 DEFAULT pg_current_xact_id(), PRIMARY KEY (client, seq));
-- what triggers have seen; the kind is 1 for INSERT, 2 for UPDATE, 3 for DELETE
CREATE TABLE audit (xid xid8 DEFAULT pg_current_xact_id(), kind int, id bigint, version int);
CREATE INDEX audit_xid ON audit (xid);
CREATE FUNCTION mangled(i bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN i # 12345; END';
CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (kind, id, version)
        VALUES (strpos('IUD', left(TG_OP, 1)), coalesce(NEW.id, OLD.id), coalesce(NEW.version, OLD.version));
    RETURN NULL;
END$$;
CREATE FUNCTION note_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit (kind, id, version) SELECT strpos('IUD', left(TG_OP, 1)), id, version FROM changed;
    RETURN NULL;
END$$;
"""


def fill_in(expression, row, version, moves=True):
    """The expression for this id and version."""
    seed = f'{row} * 1000003 + {version}' if moves else row
    values = {'@id': row, '@v': version, **{name: RANGE % (seed, n) for name, n in HASHES.items()}}
    return re.sub('@[a-z]+', lambda match: values[match[0]], expression)


class Column:
    """One of a table.  It is `given` by the client, `generated`, or set by a `trigger`."""

    def __init__(self, rng, name, kind, moves, nullable):
        self.name, self.kind, self.moves = name, kind, moves
        self.type, self.expression = KINDS[kind]
        if not moves:
            self.expression = self.expression.replace(' + @v % 1000', '')
        if nullable:
            self.expression = f'CASE WHEN @b % 9 > 0 THEN {self.expression} END'
        self.nullable = nullable
        self.source = 'given'
        self.storage = rng.choice(['EXTERNAL', 'EXTENDED', 'MAIN']) if kind == 'long' else None

    def value(self, row, version):
        return fill_in(self.expression, row, version, self.moves)

    def definition(self):
        words = [self.name, self.type]
        if self.source == 'generated':
            words.append(f'GENERATED ALWAYS AS ({self.value("id", "version")}) STORED')
        if self.storage:
            words.insert(2, f'STORAGE {self.storage}')
        if not self.nullable:
            words.append('NOT NULL')
        return ' '.join(words)

    def differs(self):
        """Whether what is in the table is not what should be."""
        found, right = self.name, f'({self.value("id", "version")})'
        if self.kind in WITHOUT_EQUALITY:
            found, right = f'{found}::text', f'{right}::text'
        return f'{found} IS DISTINCT FROM {right}'


class Reference:
    """The foreign key of a table, of one column or two.

    With one, a row refers to a row by its id.  With two, it does by (up_id, up_slot), to (id, slot); the slots of parents
    change, and rows may lose what they refer to.  Both are in ledgers of the memory, as other columns are in its versions:
    each slot that is not 0, and for each row the slot to which it refers, or UNSET if it has got its default, or nothing.
    """

    def __init__(self, rng):
        self.wide = rng.random() < 0.75
        kept = ['CASCADE', 'RESTRICT', 'NO ACTION']
        actions = [*kept, 'SET NULL', 'SET DEFAULT'] if self.wide else kept
        self.on_delete, self.on_update = rng.choice(actions), rng.choice(actions)
        self.deferred = rng.choice(['', ' DEFERRABLE INITIALLY DEFERRED'])

    def constraint(self, rng, table, parent):
        """The statements that make it."""
        columns = [('up_id', 'id'), ('up_slot', 'slot')] if self.wide else [('id', 'id')]
        rng.shuffle(columns)
        mine, theirs = (', '.join(names) for names in zip(*columns))
        yield (f'ALTER TABLE {table.name} ADD FOREIGN KEY ({mine}) REFERENCES {parent.name} ({theirs}) '
               f'ON DELETE {self.on_delete} ON UPDATE {self.on_update}{self.deferred}')
        if self.wide:
            # not named as those that maintenance drops: searches would take too long
            yield f'CREATE INDEX up_{table.name} ON {table.name} ({rng.choice(["up_id, up_slot", "up_slot, up_id", "up_id"])})'


class Table:
    """A table.  `owner` is the only client that uses it, or None; `parent` the table to which it refers, or None."""

    def __init__(self, rng, name, role):
        self.name, self.role = name, role
        self.parent = self.child = self.owner = self.reference = None
        self.partitions = []
        self.audited = self.moving = False
        self.exclusive = self.deferred = None
        self.unlogged = role == 'unlogged'
        self.partitioned = role == 'partitioned'
        hot = rng.random() < 0.5
        self.columns = []
        chosen = rng.sample(sorted(KINDS), rng.randint(4, 9))
        if 'long' not in chosen and rng.random() < 0.7:
            chosen.append('long')
        for number, kind in enumerate(chosen):
            self.columns.append(Column(rng, f'c{number}_{kind}', kind, rng.random() < (0.3 if hot else 0.8),
                                       kind not in NOT_NULL and rng.random() < 0.4))
        for column in self.columns:
            if rng.random() < 0.12:
                column.source = 'generated'
        self.hot = hot
        self.part, self.key = None, 'id'
        if self.partitioned:
            self.moving = rng.random() < 0.5
            if self.moving or rng.random() < 0.5:
                self.key = 'id, part'
            self.part = Column(rng, 'part', 'few', self.moving, False)
            self.part.expression = '(@a % 16)::int'
            self.columns.insert(rng.randrange(len(self.columns) + 1), self.part)
        elif rng.random() < 0.4:
            # not a generated one: they are computed after triggers have run
            given = [column for column in self.columns if column.source == 'given']
            if given:
                rng.choice(given).source = 'trigger'

    @property
    def linked(self):
        """Does it refer by columns of its own?"""
        return self.reference is not None and self.reference.wide

    @property
    def slotted(self):
        """Is it referred to by its slots?"""
        return self.child is not None and self.child.linked

    def ledgers(self):
        """{name in the memory: expression} of what is no function of the version; NULL is not in the memory."""
        ledgers = {}
        if self.linked:
            ledgers[f'{self.name}.link'] = f'CASE WHEN up_id = id THEN up_slot WHEN up_slot IS NOT NULL THEN {UNSET} END'
        if self.slotted:
            ledgers[f'{self.name}.slot'] = 'nullif(slot, 0)'
        return ledgers

    def given(self):
        return [column for column in self.columns if column.source == 'given']

    def names(self):
        return ', '.join(['id', 'version', *[column.name for column in self.given()], *['up_id'] * self.linked])

    def row(self, row, version):
        """What to put into the columns of names()."""
        return ', '.join([row, version, *[column.value(row, version) for column in self.given()], *[row] * self.linked])

    def assignments(self, row, version):
        moving = [column for column in self.given() if column.moves]
        return ', '.join([f'version = {version}',
                          *[f'{column.name} = {column.value(row, version)}' for column in moving]])

    def excluded(self):
        """Assignments that take everything from the row that was to be inserted, but what it refers to."""
        return ', '.join(f'{name} = excluded.{name}' for name in ['version', *[column.name for column in self.given()]])

    def differs(self):
        return ' OR '.join([*[column.differs() for column in self.columns],
                            *['(up_id <> id OR up_id IS NOT NULL AND up_slot IS NULL) IS TRUE'] * self.linked])

    def of(self, kinds):
        return [column for column in self.columns if column.kind in kinds]


def create_statements(rng, table):
    """All that makes a table, with its constraints and triggers, in order."""
    storage = []
    if rng.random() < 0.5:
        storage.append(f'fillfactor = {rng.choice([30, 60, 80, 90])}')
    if rng.random() < 0.3:
        storage.append('autovacuum_enabled = off')
    if rng.random() < 0.3:
        storage.append(f'toast_tuple_target = {rng.choice([128, 512, 4000])}')
    options = f' WITH ({", ".join(storage)})' if storage else ''
    if table.partitioned and table.key == 'id':
        # the key of partitions has to be in it
        method, by = 'hash', 'id'
    else:
        method, by = rng.choice(['hash', 'range', 'list']), 'part'
    parts = ['id bigint NOT NULL', 'version int NOT NULL CHECK (version > 0)',
             *[column.definition() for column in table.columns], f'PRIMARY KEY ({table.key})']
    if table.slotted:
        parts.insert(rng.randrange(len(parts)), 'slot int NOT NULL DEFAULT 0')
    if table.linked:
        parts[rng.randrange(len(parts)):0] = ['up_id bigint', 'up_slot int DEFAULT 0']
    rest = f' PARTITION BY {method} ({by})' if table.partitioned else options
    holes = rng.random() < 0.3
    if holes:
        parts.insert(rng.randrange(len(parts)), 'hole int')
    yield f'CREATE {"UNLOGGED " * table.unlogged}TABLE {table.name} ({", ".join(parts)}){rest}'
    if holes:
        yield f'ALTER TABLE {table.name} DROP COLUMN hole'
    if table.partitioned:
        for number, bounds in enumerate(partition_bounds(rng, method)):
            name = f'{table.name}_p{number}'
            table.partitions.append(name)
            yield f'CREATE TABLE {name} PARTITION OF {table.name} {bounds}{options}'
    if table.slotted:
        yield f'ALTER TABLE {table.name} ADD UNIQUE ({rng.choice(["id, slot", "slot, id"])})'
    if table.parent:
        yield from table.reference.constraint(rng, table, table.parent)
    keys = table.of({'key'})
    if keys and rng.random() < 0.6:
        table.deferred = rng.choice(keys)
        columns = table.deferred.name + (f', {by}' if table.partitioned else '')
        yield f'ALTER TABLE {table.name} ADD UNIQUE ({columns}) DEFERRABLE INITIALLY DEFERRED'
    ranges = table.of({'range'})
    if ranges and not table.partitioned and rng.random() < 0.8:
        table.exclusive = rng.choice(ranges)
        yield f'ALTER TABLE {table.name} ADD EXCLUDE USING gist ({table.exclusive.name} WITH &&)'
    for column in table.columns:
        if column.source == 'trigger':
            yield (f'CREATE FUNCTION {table.name}_set() RETURNS trigger LANGUAGE plpgsql AS $$\n'
                   f'BEGIN\n    NEW.{column.name} := {column.value("NEW.id", "NEW.version")};\n    RETURN NEW;\nEND$$')
            yield (f'CREATE TRIGGER set BEFORE INSERT OR UPDATE ON {table.name} '
                   f'FOR EACH ROW EXECUTE FUNCTION {table.name}_set()')
    if table.audited == 'rows':
        yield (f'CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON {table.name} '
               f'FOR EACH ROW EXECUTE FUNCTION note_row()')
    elif table.audited:
        for event, side in (('INSERT', 'NEW'), ('UPDATE', 'NEW'), ('DELETE', 'OLD')):
            yield (f'CREATE TRIGGER note_{event} AFTER {event} ON {table.name} REFERENCING {side} TABLE AS changed '
                   f'FOR EACH STATEMENT EXECUTE FUNCTION note_rows()')


def partition_bounds(rng, method):
    if method == 'hash':
        modulus = rng.randint(2, 4)
        return [f'FOR VALUES WITH (MODULUS {modulus}, REMAINDER {n})' for n in range(modulus)]
    cuts = sorted(rng.sample(range(1, 16), rng.randint(1, 3)))
    if method == 'range':
        edges = ['MINVALUE', *cuts, 'MAXVALUE']
        return [f'FOR VALUES FROM ({low}) TO ({high})' for low, high in zip(edges, edges[1:])]
    edges = [0, *cuts]
    lists = [f'FOR VALUES IN ({", ".join(map(str, range(low, high)))})' for low, high in zip(edges, edges[1:])]
    return [*lists, 'DEFAULT']


def index_statement(rng, table, name, on=None, concurrently=False, methods=None):
    """CREATE INDEX of a random index of the table, or of its partition `on`."""
    method, keys, unique, storage = random_keys(rng, table, methods)
    words = ['CREATE', 'UNIQUE INDEX' if unique else 'INDEX', 'CONCURRENTLY' if concurrently else '', name, 'ON',
             on or table.name, 'USING', method, f'({", ".join(keys)})']
    include = [column for column in table.columns if column.kind not in ('long', 'json')]
    if method in ('btree', 'gist') and include and rng.random() < 0.25:
        words.append(f'INCLUDE ({rng.choice(include).name})')
    if storage:
        words.append(f'WITH ({storage})')
    if rng.random() < 0.2:
        words.append(f'WHERE {rng.choice(["id % 3 > 0", "id % 2 = 0"] + ["version % 3 > 0"] * (not table.hot))}')
    return ' '.join(word for word in words if word)


def random_keys(rng, table, methods=None):
    """(access method, keys, is it unique, storage parameters)"""
    # where updates shall be HOT, what changes with the version is not indexed
    columns = [column for column in table.columns if not (table.hot and column.moves)]
    usable = {'btree': ['id'] + [column for column in columns if column.kind in ORDERED]}
    for method, classes in CLASSES.items():
        usable[method] = [column for column in columns if column.kind in classes]
    if table.role in ('unlogged', 'private'):
        # it may be unlogged; PostgreSQL 18 forgets what is inserted into such a BRIN index after a crash (see README.md)
        usable['brin'] = []
    possible = [method for method in methods or usable if usable[method]] or ['btree']
    method = 'btree' if 'btree' in possible and rng.random() < 0.45 else rng.choice(possible)
    if method != 'btree':
        column = rng.choice(usable[method])
        keys = [f'{column.name} {rng.choice(CLASSES[method][column.kind])}'.strip()]
        if method == 'gin' and rng.random() < 0.3:
            keys.append(rng.choice(usable[method]).name)
        storage = {'gin': ['fastupdate = off', 'fastupdate = on', 'gin_pending_list_limit = 64', ''],
                   'hash': ['fillfactor = 50', ''], 'gist': ['buffering = on', 'fillfactor = 60', ''],
                   'spgist': ['fillfactor = 60', ''],
                   'brin': ['pages_per_range = 2', 'pages_per_range = 16, autosummarize = on']}[method]
        return method, keys, False, rng.choice(storage)

    keys, unique, storage = [], False, rng.choice(['', '', 'fillfactor = 60', 'deduplicate_items = off'])
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        column = rng.choice(usable['btree'])
        if column == 'id':
            key = rng.choice(['id', 'mangled(id)', '(id % 100)'])
        elif column.type == 'text':
            key = rng.choice([column.name, f'{column.name} text_pattern_ops', f'lower({column.name})',
                              f'{column.name} COLLATE "POSIX"', f'md5({column.name})'])
        elif column.type == 'int':
            key = rng.choice([column.name, f'({column.name} + 1)', f'mangled({column.name})'])
        else:
            key = column.name
        keys.append(key + rng.choice(['', '', '', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST']))
    unique_columns = [column.name for column in columns if column.kind == 'key']
    if not table.partitioned and rng.random() < 0.2:
        keys, unique = [rng.choice(['id', 'id DESC', 'mangled(id)', *unique_columns])], True
    return 'btree', keys, unique, storage


class Schema:
    """The tables of a cluster, and the statements that make them."""

    def __init__(self, rng, clients):
        roles = ['plain', 'partitioned', 'child', 'unlogged', 'private', 'private']
        roles += rng.sample(['plain', 'partitioned', 'child'], rng.randint(0, 2))
        self.tables, self.statements = [], [COMMON]
        self.published = False      # is there a subscriber?
        for number, role in enumerate(roles):
            table = Table(rng, f't{number}', role)
            if role == 'child':
                # one child is enough for what goes with a parent, which may have partitions
                parents = [parent for parent in self.tables[:2] if parent.key == 'id' and not parent.child]
                table.parent = parents[0] if parents else None
                if table.parent:
                    table.parent.child = table
                    table.reference = Reference(rng)
            self.tables.append(table)
        first, second = [table for table in self.tables if table.role == 'private']
        first.owner, second.owner = 0, 1 % clients
        audited = rng.choice([table for table in self.tables if not table.moving])
        audited.audited = rng.choice(['rows', 'statements'])
        if audited.partitioned:
            audited.audited = 'rows'    # README.md: MERGE and transition tables
        for table in self.tables:
            self.statements += create_statements(rng, table)
            for number in range(rng.randint(1, 2) if table.role == 'private' else rng.randint(2, 5)):
                self.statements.append(index_statement(rng, table, f'{table.name}_i{number}'))
        self.named = {table.name: table for table in self.tables}

    def create(self, connection):
        for statement in self.statements:
            connection.execute(statement)
