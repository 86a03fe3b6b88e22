"""Make a scenario of one value for each dimension.

The table is t, with log, where triggers and functions leave what they have seen; s, from which statements take rows or
keys; p, the parents, and c, the children.  Rows have a number n, of which all columns are made.  Session 0 runs the
statement in the middle; session 1 does something beside it.  What is left to chance is chosen by a generator of random
numbers that is seeded by the scenario's values, so a scenario is made again from these.
"""
import random

from cover import draw, possible
from dimensions import DIMENSIONS
from lockstep import SCHEMA, Scenario, Step

EXISTING = 60       # rows that are there at the beginning
OF_TABLE = ('insert_table', 'nothing_of_table')   # kinds that take their rows from a table
SHIFT = 1700        # to the numbers that updates give
COLUMNS = 'id, k, a, r, w, v'
SERVERS = ('loopback', 'another')    # each other's names, for the server itself
QUERIES = ('select_join', 'select_lateral', 'select_anti', 'select_array', 'select_order', 'select_update', 'select_tids',
           'select_function', 'select_bitmap', 'select_scalar', 'select_clock', 'select_sequence', 'select_locked',
           'foreign_select', 'foreign_append', 'foreign_union')
# of how many statements, and what they vary, but for their tables
THEN = {'nothing': 0, 'some': 3, 'many': 12}
OF_STATEMENTS = ('kind', 'rows', 'returning', 'client', 'block', 'isolation', 'limit', 'expression', 'second', 'beside',
                 'when', 'fault', 'memory')
FAULTS_OF_STATEMENTS = ('none', 'division', 'division_late', 'duplicate', 'duplicate_within', 'null', 'cancel', 'duplicate_oversize',
                        'duplicate_division', 'duplicate_given_up')
OF_MAIN = ('then', 'made')    # only for the first of them
MORE_PARENTS = ('hash', 'partitioned', 'unique')    # of who has several
# settings that are not for tests only
OF_USERS = ('batch_unique_keys', 'index_batch_memory', 'quick_io_time', 'pipelined_commits')
ROLES = ('twin_owner', 'twin_user', 'twin_nobody')


class Plan:
    """What the values of dimensions change."""

    def __init__(self, values, number=0):
        self.values, self.rng = values, random.Random(f'{number} {sorted(values.items())}')
        self.before, self.altered, self.late, self.finally_ = [], [], [], []
        self.columns, self.constraints, self.not_null = [], [], []
        self.partition_by, self.partitions, self.persistence, self.storage = None, [], '', ''
        self.method, self.index_options, self.expression, self.predicate = 'btree', '', None, None
        self.include = self.descending = self.two_columns = self.needs_predicate = self.needs_function = False
        self.primary, self.unique, self.made = 'PRIMARY KEY (id)', None, 'first'
        self.triggers, self.function = [], None
        self.foreign, self.missing, self.own_parent, self.children, self.parents = None, False, False, None, 'primary'
        self.nested, self.role, self.by_column, self.policy = None, None, False, None
        self.kind, self.rows, self.returning, self.client = 'insert_select', 20, '', 'simple'
        self.block, self.isolation, self.limit, self.value, self.filter = None, None, None, None, None
        self.second, self.beside, self.when, self.fault = 'select', None, 'after', None
        self.sets, self.settings = [], {}
        self.existing_at_least, self.words, self.cold = EXISTING, False, False
        self.remote, self.crash, self.has_standby, self.has_subscriber = '', None, False, False
        self.publish, self.subscribe, self.conflicts, self.always = [], [], False, False
        self.subscription = {'copy_data': 'false', 'streaming': 'off'}
        # those to which nothing refers
        self.delete_some = 'DELETE FROM t WHERE id % 4 = 1 AND id % 3 = 2 AND id > 35'
        for name, choices in DIMENSIONS.items():
            choices[values[name]](self)
        self.impatient = self.fault == 'timeout'
        self.kinds = {self.kind}    # of all statements in the middle
        self.inserts = not self.kind.startswith(('select', 'update', 'delete', 'parents', 'create_as', 'add_', 'truncate',
                                                 'foreign_select', 'foreign_append', 'foreign_union', 'foreign_update',
                                                 'foreign_delete'))
        self.existing = self.existing_at_least if self.inserts else max(self.existing_at_least, self.rows)
        self.first, self.last = self.existing + 1, self.existing + (self.rows if self.inserts else 20)
        self.parents_until = self.last + 70
        self.more = []              # plans of further statements

    def add(self, other):
        """Another plan's statement comes after those that there are, on the tables of this one."""
        other.existing, other.first = self.existing, self.parents_until + 30
        other.last = other.first + (other.rows if other.inserts else 20) - 1
        other.parents_until = self.parents_until = other.last + 70
        self.kinds.add(other.kind)
        other.impatient = self.impatient
        self.more.append(other)

    # For values of dimensions

    def v(self, n):
        return self.key[1].format(n=n)

    def trigger(self, when, level, body, transition='', condition='', constraint=False):
        self.triggers += [
            f'CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $fire$ DECLARE x text; BEGIN {body} END $fire$',
            f'CREATE {"CONSTRAINT " if constraint else ""}TRIGGER fires {when} ON t {transition} '
            f'{"DEFERRABLE INITIALLY DEFERRED " if constraint else ""}FOR EACH {level} {condition} EXECUTE FUNCTION fire()']

    def awaits(self, **settings):
        for name, value in settings.items():
            prefix = 'aio.' if name in OF_USERS else 'aio.debug_'
            self.settings[prefix + name] = value

    # Tables

    def row(self, n, value=None):
        """The columns of the row with this number; v has this value, if it has one."""
        v = value or (f'(({n}) + 1) / 2' if self.own_parent else f'({n}) % 100')
        return (f'{n}, {self.v(n)}, ARRAY[({n}) % 7, ({n}) % 11, ({n}) % 100]::int[], '
                f'int4range((({n}) * 10)::int, (({n}) * 10 + 5)::int), {self.payload[1].format(n=n)}, ({v})::int')

    def value_of(self, n, plain):
        """What a statement evaluates for a row, or what it does if that is nothing special."""
        return (self.value or plain).format(n=n, bad=self.bad())

    def bad(self):
        """The number of a row for which an expression may fail."""
        return (self.first + self.last) // 2 if self.inserts else 33

    def bad_row(self):
        """The number of the row that the fault is in, or None."""
        return {'division': min(self.first + 2, self.last), 'division_late': self.last, 'duplicate_division': self.last}.get(self.fault)

    def new_row(self, n='n'):
        """A row that the statement in the middle inserts; there may be one for which it fails."""
        bad = self.bad_row()
        if bad is not None and self.inserts:
            return self.row(n, f'({n}) / (({n}) - {bad})')
        return self.row(n, self.value_of(n, '') if self.value else None)

    def where(self, n, word='WHERE'):
        return f' {word} {self.filter.format(n=n, bad=self.bad())}' if self.filter else ''

    def indexes(self):
        if self.method is None:
            return []
        columns = {'btree': 'k', 'hash': 'k', 'brin': 'k', 'gin': 'a', 'gist': 'r', 'spgist': 'r'}
        column = columns[self.method] if self.method != 'brin' or self.key[0] not in ('pair', 'label') else 'id'
        if self.words:
            column = "to_tsvector('simple', w)"
        if self.expression and column == 'k':
            column = {'immutable': "(v * 2)", 'plpgsql': 'twice(v)'}[self.expression]
        if self.descending:
            column += ' DESC NULLS LAST'
        if self.two_columns:
            column += ', v' if self.method == 'btree' else ''
        return [f'CREATE INDEX{{concurrently}} t_index ON t USING {self.method} ({column})'
                f'{" INCLUDE (v)" if self.include and self.method in ("btree", "gist") else ""} {self.index_options} '
                f'{"WHERE " + self.predicate if self.predicate else ""}']

    def setup(self):
        kind = self.key[0]
        parent_kind = {'int': 'bigint', 'bigint': 'numeric'}.get(kind, kind) if self.parents == 'cross' else kind
        lines = [*self.before, 'CREATE SEQUENCE numbers', 'CREATE TABLE log (id int, n bigint)', 'SET check_function_bodies = off',
                 'CREATE FUNCTION twice(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN n * 2; END $$',
                 "CREATE FUNCTION traced(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'row %', n; RETURN n; END $$",
                 'CREATE FUNCTION locks(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM t WHERE id = n + 1 FOR UPDATE; RETURN n; END $$',
                 "CREATE FUNCTION later(c timestamptz) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN IF c < nullif(current_setting('twin.clock', true), '')"
                 "::timestamptz THEN RAISE NOTICE 'the clock runs backwards'; END IF; PERFORM set_config('twin.clock', clock_timestamp()::text, true); "
                 'RETURN true; END $$',
                 'CREATE FUNCTION definer_opens(query text) RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER AS $$ '
                 "DECLARE c refcursor := 'c'; BEGIN OPEN c FOR EXECUTE query; MOVE FORWARD 3 IN c; RETURN c; END $$",
                 'CREATE FUNCTION is_wanted(n int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN n % 3 <> 0; END $$']
        if self.function:
            language, labels, body = self.function
            # its body, as that of others, names tables that are not there yet
            lines += [f'CREATE FUNCTION f(n int) RETURNS int {labels} LANGUAGE {language} AS $f$ {body} $f$']
        columns = [f'id int', f'k {kind}', 'a int[]', 'r int4range', f'w {self.payload[0]}', 'v int', *self.columns]
        constraints = [*self.constraints, *filter(None, [self.primary] if self.made == 'first' else []),
                       *filter(None, [self.unique] if self.made == 'first' else [])]
        lines += self.parents_setup(parent_kind)
        lines.append(f'CREATE {self.persistence} TABLE t ({", ".join(columns + constraints)}) ' +
                     (f'PARTITION BY {self.partition_by}' if self.partition_by else self.storage))
        lines += self.altered + self.partitions
        indexes = self.indexes()
        concurrently = ' CONCURRENTLY' if self.made == 'concurrently' else ''
        if self.made == 'first':
            lines += [index.format(concurrently='') for index in indexes]
        lines.append(f'INSERT INTO t ({COLUMNS}) SELECT {self.row("n", f"(n + 1) / 2" if self.own_parent else "n % 60")} '
                     f'FROM generate_series(1, {self.existing}) n')
        if self.made != 'first':
            lines += [f'ALTER TABLE t ADD {constraint}' for constraint in filter(None, [self.primary, self.unique])]
            lines += [index.format(concurrently=concurrently) for index in indexes]
        lines += [f'ALTER TABLE t ALTER {column} SET NOT NULL' for column in self.not_null]
        if self.foreign:
            lines.append(f'ALTER TABLE t ADD {self.foreign}')
            if self.parents == 'several' and not self.own_parent:
                lines += [f'ALTER TABLE t ADD {self.foreign.replace("REFERENCES p ", f"REFERENCES p_{parent} ")}' for parent in MORE_PARENTS]
        if self.children:
            lines += [f'CREATE {self.persistence} TABLE c (id int DEFAULT 1 {self.children}, n int)', 'CREATE INDEX ON c (id)',
                      f'INSERT INTO c SELECT n, n FROM generate_series(1, {self.existing}, 3) n']
        if self.nested:
            lines += [f'CREATE FUNCTION nested() RETURNS trigger LANGUAGE plpgsql AS $nested$ BEGIN IF OLD.id < 40 THEN {self.nested} '
                      'END IF; RETURN coalesce(NEW, OLD); END $nested$',
                      'CREATE TRIGGER nested BEFORE UPDATE OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION nested()']
        low, high = (self.first, self.last) if self.inserts else (1, self.rows + 10)
        lines += [f'CREATE TABLE s (id int, k {kind}, v int)',
                  f'INSERT INTO s SELECT n, {self.v("n")}, n % 100 FROM generate_series({low}, {high}) n ORDER BY md5(n::text)',
                  f'CREATE VIEW tv AS SELECT {COLUMNS} FROM t WHERE v >= -1000 WITH CHECK OPTION']
        if self.kinds & set(OF_TABLE):
            lines += ['CREATE TABLE source AS SELECT * FROM t WITH NO DATA', 'ALTER TABLE source ADD COLUMN place serial',
                      *(['ALTER TABLE source ALTER w SET STORAGE EXTERNAL'] if self.payload[0].startswith('text') else [])]
            for plan in (self, *self.more):
                lines += plan.fill_source()
        if 'rule' in self.kinds:
            lines += ['CREATE TABLE ruled (n int)', f'CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO t ({COLUMNS}) '
                      f'SELECT {self.row("n")} FROM (SELECT new.n AS n) x']
        lines += self.foreign_setup(kind)
        lines += self.late + self.triggers + self.rights()
        lines += self.finally_
        if self.rng.random() < 0.7:
            lines += ['SELECT pg_stat_force_next_flush()', 'ANALYZE t, s']
        return [*lines, 'SELECT pg_stat_force_next_flush()']

    def fill_source(self):
        """Rows that are inserted from a table, in which long values are out of line."""
        if self.kind not in OF_TABLE:
            return []
        row = self.row('n')
        if self.fault == 'duplicate_oversize' and self.payload[0].startswith('text'):
            payload = self.payload[1].format(n='n')
            row = row.replace(payload, f"CASE WHEN n = {self.last} THEN repeat('x', 20000) ELSE {payload} END")
        return [f'INSERT INTO source ({COLUMNS}) SELECT {row} FROM {self.source()}']

    def foreign_setup(self, kind):
        """Foreign tables: fs for s, fw for w, and fp for the two halves of s."""
        if not self.has_foreign_tables():
            return []
        columns = f'(id int, k {kind}, v int)'

        def options(table):
            return f"OPTIONS (schema_name '{SCHEMA}', table_name '{table}'{', ' + self.remote if self.remote else ''})"
        middle = (self.first + self.last) // 2 if self.inserts else self.rows // 2
        return ['CREATE FUNCTION put(n int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN UPDATE fw SET v = v + 1 WHERE id = n % 50; RETURN n; END $$',
                f'CREATE TABLE w (id int PRIMARY KEY, k {kind}, v int CHECK (v <> 71))',
                f'INSERT INTO w SELECT n, {self.v("n")}, n % 60 FROM generate_series(1, {self.existing}) n',
                f'CREATE FOREIGN TABLE fs {columns} SERVER loopback {options("s")}',
                f'CREATE FOREIGN TABLE fw {columns} SERVER loopback {options("w")}',
                f'CREATE TABLE s1 AS SELECT * FROM s WHERE id < {middle}', f'CREATE TABLE s2 AS SELECT * FROM s WHERE id >= {middle}',
                f'CREATE TABLE fp {columns} PARTITION BY RANGE (id)',
                f'CREATE FOREIGN TABLE fp1 PARTITION OF fp FOR VALUES FROM (MINVALUE) TO ({middle}) SERVER loopback {options("s1")}',
                f'CREATE FOREIGN TABLE fp2 PARTITION OF fp FOR VALUES FROM ({middle}) TO (MAXVALUE) SERVER another {options("s2")}']

    def parents_setup(self, kind):
        if not self.foreign or self.own_parent:
            if 'add_foreign' not in self.kinds:
                return []
        unique = {'primary': ['CREATE TABLE {1} (n int, k {0} PRIMARY KEY)'],
                  'unique': ['CREATE TABLE {1} (n int, k {0} UNIQUE)', 'CREATE INDEX ON {1} (n)'],
                  'hash': ['CREATE TABLE {1} (n int, k {0})', 'CREATE INDEX ON {1} USING hash (k)', 'CREATE UNIQUE INDEX ON {1} (k)'],
                  'cross': ['CREATE TABLE {1} (n int, k {0} PRIMARY KEY)'],
                  'partitioned': ['CREATE TABLE {1} (n int, k {0} PRIMARY KEY) PARTITION BY HASH (k)',
                                  'CREATE TABLE {1}1 PARTITION OF {1} FOR VALUES WITH (MODULUS 2, REMAINDER 0)',
                                  'CREATE TABLE {1}2 PARTITION OF {1} FOR VALUES WITH (MODULUS 2, REMAINDER 1)'],
                  'updated': ['CREATE TABLE {1} (n int, k {0} PRIMARY KEY)'],
                  'rls': ['CREATE TABLE {1} (n int, k {0} PRIMARY KEY)', 'ALTER TABLE {1} ENABLE ROW LEVEL SECURITY']}
        kinds = {'p': 'primary', **{f'p_{kind}': kind for kind in MORE_PARENTS}} if self.parents == 'several' else {'p': self.parents}
        lines = []
        for table, shape in kinds.items():
            lines += [line.format(kind, table) for line in unique[shape]]
            lines.append(f'INSERT INTO {table} SELECT n, {self.v("n")} FROM (SELECT generate_series(1, {self.parents_until}) UNION '
                         f'SELECT generate_series({SHIFT + 1}, {SHIFT + self.existing}) ORDER BY 1) x (n)')
        if self.missing:
            # each statement misses one of one table
            lines += [f'DELETE FROM {self.rng.choice(list(kinds))} WHERE n = {plan.last - plan.rows // 2}'
                      for plan in (self, *self.more) if plan.inserts and plan.rows > 1]
        if self.parents == 'updated':
            lines += ['UPDATE p SET n = n + 1', 'UPDATE p SET n = n - 1 WHERE n % 2 = 0', 'VACUUM p']
        return lines

    def rights(self):
        lines = [f'CREATE POLICY visible ON t TO twin_user USING ({self.policy}) WITH CHECK (true)',
                 'ALTER TABLE t ENABLE ROW LEVEL SECURITY'] if self.policy else []
        tables = ['log', 's', 't']
        if self.role == 'twin_owner':
            lines += [f'ALTER TABLE {table} OWNER TO twin_owner' for table in tables]
            lines += [f'ALTER TABLE {table} OWNER TO twin_owner' for table, there in
                      (('p', self.has_parents()), *((f'p_{parent}', self.has_parents() and self.parents == 'several') for parent in MORE_PARENTS),
                       ('c', self.children), ('ruled', 'rule' in self.kinds)) if there]
            lines += ['ALTER VIEW tv OWNER TO twin_owner', 'ALTER SEQUENCE numbers OWNER TO twin_owner']
        elif self.role == 'twin_user':
            lines += [f'GRANT ALL ON ALL TABLES IN SCHEMA {SCHEMA} TO twin_user',
                      f'GRANT ALL ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO twin_user']
            if self.by_column:
                lines += ['REVOKE ALL ON t FROM twin_user', f'GRANT INSERT ({COLUMNS}) ON t TO twin_user',
                          'GRANT SELECT (id, k, v), UPDATE (v, k) ON t TO twin_user']
        elif self.role:
            lines.append('GRANT SELECT ON s TO twin_nobody')
        return lines

    def has_parents(self):
        return self.foreign and not self.own_parent or 'add_foreign' in self.kinds

    def has_foreign_tables(self):
        return any(kind.startswith('foreign') for kind in self.kinds)

    # The statement in the middle

    def source(self):
        """Numbers of rows to insert, as a FROM list with a column n."""
        middle = (self.first + self.last) // 2
        change = {**dict.fromkeys(('duplicate', 'duplicate_oversize', 'duplicate_division', 'duplicate_given_up'),
                                  f'CASE WHEN g = {middle} THEN 5 ELSE g END'),
                  'duplicate_within': f'CASE WHEN g = {middle} THEN {self.first} ELSE g END',
                  'null': f'nullif(g, {middle})'}.get(self.fault, 'g')
        low = self.first - (20 if self.kind in ('do_nothing', 'do_update', 'do_update_where', 'merge', 'merge_source') else 0)
        return f'(SELECT {change} AS n FROM generate_series({low}, {self.last}) g) x'

    def insert(self, table='t'):
        return f'INSERT INTO {table} ({COLUMNS}) SELECT {self.new_row()} FROM {self.source()}{self.where("n")}'

    def statement(self):
        """The statement."""
        kind = self.kind
        if kind.startswith('foreign_') and kind not in QUERIES:
            return self.foreign_statement()
        target = 'tv' if kind == 'view' else 't'
        returning = self.returning.format(t=target)
        if kind == 'view' and 'ctid' in returning:
            returning = 'RETURNING id, v'
        new = f'INSERT INTO t ({COLUMNS})'
        also = self.where('t.id', 'AND')
        if kind == 'insert_values':
            numbers = range(self.first, min(self.last, self.first + 120) + 1) or [70]
            return f'{new} VALUES {", ".join(f"({self.new_row(str(n))})" for n in numbers)} {returning}'
        if kind in OF_TABLE:
            bad = self.bad_row()
            values = COLUMNS[:-1] + (f'id / (id - {bad})' if bad is not None else self.value_of('id', 'v'))
            of_this = f'id BETWEEN {self.first} AND {self.last} OR id IS NULL OR id = 5'
            rest = ' ON CONFLICT DO NOTHING' if kind == 'nothing_of_table' else ''
            return (f'{new} SELECT {values} FROM (SELECT * FROM source WHERE {of_this} ORDER BY place OFFSET 0) s{self.where("id")}{rest} '
                    f'{returning}')
        if kind == 'insert_unnest':
            return f'{new} SELECT {self.new_row()} FROM unnest(ARRAY(SELECT n FROM {self.source()})) n{self.where("n")} {returning}'
        if kind == 'insert_join':
            query = f'SELECT {self.new_row()} FROM (SELECT s.id AS n FROM s JOIN t x ON x.id = s.id % 50 + 1) y{self.where("n")}'
            return f'{new} {self.limited(query)} {returning}'
        if kind in ('merge', 'merge_source'):
            by_source = ' WHEN NOT MATCHED BY SOURCE AND t.id % 10 = 0 THEN DELETE' if kind == 'merge_source' else ''
            return (f'MERGE INTO t USING {self.source()} ON t.id = x.n WHEN MATCHED AND t.v % 2 = 0 THEN UPDATE SET v = t.v + x.n '
                    f'WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT ({COLUMNS}) VALUES ({self.new_row("x.n")}){by_source} ' +
                    returning.replace('RETURNING', 'RETURNING merge_action(),'))
        if kind == 'with_delete':
            # ids are new, and so are keys, but those that have parents
            columns = self.row('n', self.value_of('n', '') if self.value else None).replace(self.v('n'), self.v(f'n - 5000 + {SHIFT}'))
            return (f'WITH d AS (DELETE FROM t WHERE id % 3 = 0 RETURNING *) {new} SELECT {columns} '
                    f'FROM (SELECT id + 5000 AS n FROM d) y{self.where("n")} RETURNING id')
        if kind in ('loop', 'loop_upsert'):
            rest = ' ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v' if kind == 'loop_upsert' else ''
            return (f'DO $loop$ DECLARE n int; BEGIN FOR n IN SELECT x.n FROM {self.source()} LOOP {new} VALUES ({self.new_row()}){rest};'
                    ' END LOOP; END $loop$')
        if kind == 'add_column':
            return f'ALTER TABLE t ADD COLUMN y int DEFAULT {"f(3)" if self.needs_function and self.function else "(random() * 0)::int"}'
        if kind == 'create_as':
            return f'CREATE TABLE made AS {self.limited(self.query("select_join"))}'
        if kind in QUERIES:
            return self.limited(self.query(kind))
        changed = self.value_of('t.id', 'v + 1')
        return {
            'insert_select': f'{self.insert()} {returning}',
            'update_key': f'UPDATE t SET k = {self.v(f"id + {SHIFT}")}, v = {changed} WHERE id % 3 > 0{also} {returning}',
            'update_other': f'UPDATE t SET v = {changed} WHERE id % 3 > 0{also} {returning}',
            'update_from': f'UPDATE t SET v = s.v + 1 FROM s WHERE s.k = t.k{also} {returning}',
            'update_id': f'UPDATE t SET id = id + 100000 WHERE id % 3 > 0{also} {returning}',
            'delete': f'DELETE FROM t WHERE id % 2 = 0{also} {returning}',
            'delete_using': f'DELETE FROM t USING s WHERE s.k = t.k AND s.id % 2 = 0{also} {returning}',
            'do_nothing': f'{self.insert()} ON CONFLICT DO NOTHING {returning}',
            'do_update': f'{self.insert()} ON CONFLICT (id) DO UPDATE SET v = excluded.v + t.v {returning}',
            'do_update_where': f'{self.insert()} ON CONFLICT (id) DO UPDATE SET v = excluded.v, k = excluded.k WHERE t.v % 2 = 0 {returning}',
            'with': f'WITH i AS ({self.insert()} RETURNING id, v) SELECT count(*), sum(v), (SELECT count(*) FROM t) FROM i',
            'view': f'{self.insert("tv")} {returning}',
            'rule': f'INSERT INTO ruled SELECT n FROM {self.source()}',
            'parents_delete': 'DELETE FROM p WHERE n % 5 = 0',
            'parents_update': f'UPDATE p SET k = {self.v("n + 3300")} WHERE n % 5 = 0 AND n <= {self.existing}',
            'truncate': f'TRUNCATE t CASCADE; {self.insert()}',
            'add_foreign': 'ALTER TABLE t ADD FOREIGN KEY (k) REFERENCES p (k)'}[kind]

    def foreign_statement(self):
        """One that writes to fw, or reads fs."""
        returning, also = self.returning.format(t='fw'), self.where('fw.id', 'AND')
        value = self.value_of('n', 'n % 60')
        return {
            'foreign_source': f'INSERT INTO t ({COLUMNS}) SELECT {self.new_row()} FROM (SELECT id AS n FROM fs) y{self.where("n")} '
                              f'{self.returning.format(t="t")}',
            'foreign_insert': f'INSERT INTO fw (id, k, v) SELECT n, {self.v("n")}, ({value})::int FROM {self.source()}{self.where("n")} '
                              f'{returning}',
            'foreign_update': f'UPDATE fw SET v = {self.value_of("fw.id", "v + 1")} WHERE id % 3 > 0{also} {returning}',
            'foreign_delete': f'DELETE FROM fw USING s WHERE s.k = fw.k AND s.id % 2 = 0{also} {returning}'}[self.kind]

    def query(self, kind):
        value, also = self.value_of('t.id', 't.v'), self.where('t.id', 'AND')
        return {
            'foreign_select': f'SELECT fs.id, {value} AS v FROM fs JOIN t ON t.k = fs.k WHERE fs.v >= 0{also}',
            'foreign_append': 'SELECT p.id, p.v FROM fp p WHERE p.v % 3 > 0 ORDER BY p.id',
            'select_join': f'SELECT s.id, {value} AS v FROM s JOIN t ON t.k = s.k WHERE s.v >= 0{also}',
            'select_lateral': 'SELECT s.id, l.v FROM s, LATERAL (SELECT t.v, t.id FROM t WHERE t.k >= s.k'
                              f'{also} ORDER BY t.k LIMIT 2) l',
            'select_anti': f'SELECT s.id, s.v FROM s WHERE NOT EXISTS (SELECT FROM t WHERE t.k = s.k AND t.v % 4 > 0{also})',
            'select_array': f'SELECT id, v FROM t WHERE k = ANY (ARRAY(SELECT k FROM s)){also}',
            'select_order': f'SELECT id, v FROM t WHERE v >= 0{also} ORDER BY k',
            'select_update': f'SELECT t.id, t.v FROM s JOIN t ON t.k = s.k WHERE s.id % 2 = 0{also} FOR UPDATE OF t',
            'select_tids': f'SELECT id, v FROM t WHERE ctid = ANY (ARRAY(SELECT ctid FROM t WHERE id % 3 = 0)){also}',
            'select_function': f'SELECT s.id, f(t.id) AS v FROM s JOIN t ON t.k = s.k{also}',
            'select_scalar': f'SELECT s.id, {value.replace("t.id", "s.id").replace("t.v", "s.v")} AS x, '
                             f'(SELECT min(t.v) FROM t WHERE t.k = s.k) AS v FROM s WHERE s.v >= 0{also.replace("t.id", "s.id")}',
            'select_clock': 'SELECT o.id, later(o.c) AS x, t.v FROM (SELECT *, clock_timestamp() AS c FROM s OFFSET 0) o JOIN t ON t.k = o.k'
                            f' WHERE t.v >= 0{also}',
            'select_sequence': "SELECT s.id, nextval('numbers') - q.last AS v FROM (s CROSS JOIN LATERAL (SELECT last_value + s.id * 0 AS last"
                               f' FROM numbers OFFSET 0) q) JOIN t ON t.k = s.k WHERE t.v >= 0{also}',
            'select_locked': f'SELECT t.id, t.xmax = 0 AS x, locks(t.id) AS v FROM t JOIN t y ON y.k = t.k WHERE t.v >= 0{also}',
            'foreign_union': 'SELECT put(id) AS id, 1 AS v FROM (SELECT id FROM s ORDER BY id LIMIT 3) x UNION ALL SELECT count(*), 2 FROM fw '
                             'WHERE is_wanted(v) UNION ALL SELECT count(*), 3 FROM fw WHERE is_wanted(v + 1)',
            'select_bitmap': f'SELECT id, v FROM t WHERE (a @> ARRAY[3] OR r && int4range(30, 200) OR k = {self.v("7")}){also}',
        }[kind]

    def limited(self, query):
        if 'FOR UPDATE' in query and self.limit not in (None, 'limit'):
            return query
        if self.kind == 'insert_join' and self.limit not in (None, 'limit', 'offset'):
            return query
        return {None: query, 'limit': f'{query} LIMIT 3' if 'FOR UPDATE' not in query else query.replace('FOR', 'LIMIT 3 FOR'),
                'offset': f'{query} OFFSET 5 LIMIT 4',
                'exists': f'SELECT EXISTS ({query}) AS id, 1 AS v',
                # which of equals comes first is a matter of how much memory a sort has, and assertions take some
                'distinct': f'SELECT DISTINCT ON (v % 3) * FROM ({query}) q ORDER BY v % 3, id, v',
                'ties': f'SELECT * FROM ({query}) q ORDER BY v FETCH FIRST 3 ROWS WITH TIES',
                'scalar': f'SELECT (SELECT id FROM ({query}) q LIMIT 1) AS id, 1 AS v',
                'lateral': f'SELECT q.* FROM generate_series(1, 3) g, LATERAL (SELECT * FROM ({query}) q LIMIT 2) q'}[self.limit]

    # Steps

    def steps(self):
        steps = self.round()
        if self.fault not in ('terminate', 'gone'):
            for other in self.more:
                steps += [Step(0, 'idle'), *[self.say(text) for text in ('DEALLOCATE ALL', 'CLOSE ALL', 'RESET ALL')], *other.round()]
        if self.crash:
            # within: not before the statement in the middle, if there is more than that
            steps.insert(len(steps) if self.crash == 'end' else self.rng.randint(len(steps) // 2, len(steps)), Step(0, 'crash'))
        return steps

    def round(self):
        """The statement in the middle, with what is before and after it."""
        steps = [self.say(f'SET {name}') for name in self.sets]
        if self.role:
            steps.append(self.say(f'SET ROLE {self.role}'))
        if self.impatient:
            steps.append(self.say("SET lock_timeout = '1ms'"))
        block, client = self.block, self.client
        if client in ('cursor', 'scroll', 'hold', 'definer') and not block:
            block = 'commit'
        if client == 'in_procedure':
            block = None
        beside, ends = self.beside_steps()
        if self.when in ('before', 'holds'):
            steps += beside
        if block:
            steps.append(self.say('BEGIN' + (f' ISOLATION LEVEL {self.isolation}' if self.isolation else '')))
            if self.rng.random() < 0.3:
                steps.append(self.say('SELECT count(*) FROM t'))
        if block in ('released', 'rolled_back'):
            steps.append(self.say('SAVEPOINT a'))
        main = [Step(0, 'evict')] if self.cold else []
        main += self.main_steps()
        if self.when == 'between' and len(main) > 1:
            main[1:1] = [*beside, *(ends if self.rng.random() < 0.5 else [])]
            beside = []
        steps += main
        if self.when == 'after':
            steps += beside
        if self.fault == 'cancel':
            steps.append(Step(0, 'cancel'))
        elif self.fault == 'terminate':
            steps.append(Step(0, 'terminate'))
        elif self.fault == 'gone':
            steps.append(Step(0, 'leave'))
        if self.when in ('before', 'holds') or self.beside == 'deadlock':
            steps += ends
            ends = []
        if block == 'released':
            steps.append(self.say('RELEASE a'))
        elif block == 'rolled_back':
            steps.append(self.say('ROLLBACK TO a'))
        steps += self.second_steps()
        if block == 'rollback':
            steps.append(self.say('ROLLBACK'))
        elif block == 'prepared':
            steps += [self.say("PREPARE TRANSACTION 'twin'"), self.say("SELECT count(*) FROM t"),
                      self.say("COMMIT PREPARED 'twin'"), self.say("ROLLBACK PREPARED 'twin'")]
        elif block == 'chain':
            steps += [self.say('COMMIT AND CHAIN'), self.say('SELECT count(*) FROM t'), self.say('COMMIT')]
        elif block:
            steps.append(self.say('COMMIT'))
        if client == 'hold':
            steps += [self.say('FETCH 5 FROM c'), self.say('FETCH ALL FROM c')]
        steps += ends
        return steps

    def say(self, text, session=0):
        return Step(session, 'query', (text,))

    def main_steps(self):
        if self.kind in ('copy', 'copy_where', 'copy_ignore', 'foreign_copy'):
            return self.copy_steps()
        text = self.statement()
        if self.block == 'caught':
            return [self.say(f"DO $do$ BEGIN EXECUTE $main${text}$main$; RAISE EXCEPTION 'back'; EXCEPTION WHEN OTHERS THEN "
                             "RAISE NOTICE '% %', SQLSTATE, SQLERRM; END $do$")]
        client = self.client
        if client == 'paused':
            client = 'portal'
        if ';' in text and client not in ('simple', 'one_message') and not text.startswith('DO'):
            client = 'simple'
        is_query = self.kind in QUERIES or self.kind == 'with' or bool(self.returning)
        if client == 'portal' and not is_query:
            client = 'extended'
        if client == 'definer':
            return [self.say(f'SELECT definer_opens($query${text}$query$)'), self.say('FETCH 4 FROM c'), self.say('FETCH ALL FROM c')]
        if client in ('cursor', 'scroll', 'hold'):
            options = {'cursor': 'NO SCROLL CURSOR', 'scroll': 'SCROLL CURSOR', 'hold': 'CURSOR WITH HOLD'}[client]
            if 'FOR UPDATE' in text:
                options = 'CURSOR'
            back = [self.say('FETCH BACKWARD 2 FROM c')] if client == 'scroll' and 'FOR UPDATE' not in text else []
            rest = [] if client == 'hold' else [self.say('FETCH ALL FROM c')]
            current = [self.say('UPDATE t SET v = v + 1 WHERE CURRENT OF c')] if 'FOR UPDATE' in text else []
            return [self.say(f'DECLARE c {options} FOR {text}'), self.say('FETCH 4 FROM c'), *current, *back, *rest]
        return {
            'simple': [self.say(text)],
            'extended': [Step(0, 'extended', (text,))],
            'pipeline': [Step(0, 'pipeline', ([text, 'SELECT count(*) FROM t', 'SELECT 1 / count(*) FROM t WHERE id < 0',
                                               'SELECT count(*) FROM log'], True))],
            'pipeline_once': [Step(0, 'pipeline', ([text, 'SELECT count(*) FROM t', 'SELECT count(*) FROM log'], False))],
            'portal': [Step(0, 'portal', (text, 2)), Step(0, 'more', (3,)), Step(0, 'more', (0,)), Step(0, 'sync')],
            'one_message': [self.say(f'{text}; SELECT count(*) FROM t; SELECT 1 / count(*) FROM log WHERE n = -3')],
            'prepared': [self.say(f'PREPARE q AS {text}'), *[self.say('EXECUTE q')] * (7 if self.kind.startswith('select') else 1)],
            'explain': [self.say(f'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) {text}')],
            'in_function': [self.say(f'DO $do$ BEGIN EXECUTE $main${text}$main$; PERFORM count(*) FROM t; END $do$')],
            'in_procedure': [self.say(f'DO $do$ BEGIN EXECUTE $main${text}$main$; COMMIT; PERFORM count(*) FROM t; '
                                      'INSERT INTO log VALUES (0, 0); ROLLBACK; END $do$')],
        }[client]

    def copy_steps(self):
        rest = ' WHERE v % 3 <> 1' if self.kind == 'copy_where' else ''
        options = ' WITH (ON_ERROR ignore, LOG_VERBOSITY verbose)' if self.kind == 'copy_ignore' else ''
        table, columns = ('fw', 'id, k, v') if self.kind == 'foreign_copy' else ('t', COLUMNS)
        # the client has evaluated what a statement would
        row = self.row('n') if table == 't' else f'n, {self.v("n")}, n % 60'
        rows = f'SELECT {row} FROM {self.source()}'
        bad = self.kind == 'copy_ignore' or bool(self.fault and 'division' in self.fault)
        steps = [Step(0, 'query', (f'COPY {table} ({columns}) FROM STDIN{options}{rest}',))]
        if table == 'fw':
            # what a server says of rows may be known only at the end, so that there is no pause before it
            return [*steps, Step(0, 'copy_all', (rows, bad))]
        parts = 3 if self.client == 'paused' else 1
        steps += [Step(0, 'copy_rows', (rows, part, parts, bad)) for part in range(parts)]
        if self.fault in ('cancel', 'terminate', 'gone'):
            steps.append(Step(0, {'gone': 'leave'}.get(self.fault, self.fault)))
        return [*steps, Step(0, 'copy_failed' if self.fault == 'duplicate_given_up' else 'copy_done')]

    def second_steps(self):
        new = self.last + 30
        return [self.say(text) for text in {
            None: [], 'select': ['SELECT count(*), sum(v), max(id) FROM t'],
            'by_key': ['SET enable_seqscan = off', f'SELECT id, v FROM t WHERE k = {self.v(str(self.first))}',
                       f'SELECT id FROM t WHERE id = {self.first}', f'SELECT id FROM t WHERE r && int4range({self.first * 10}, '
                       f'{self.first * 10 + 21}) ORDER BY id', 'SELECT count(*) FROM t WHERE a @> ARRAY[3]'],
            'update': [f'UPDATE t SET v = -v WHERE id > {self.existing - 5}', f'UPDATE t SET k = {self.v(f"id + {SHIFT}")} WHERE id < 9'],
            'delete': [f'DELETE FROM t WHERE id > {self.existing - 5} AND id % 2 = 0'],
            'insert': [f'INSERT INTO t ({COLUMNS}) SELECT {self.row("n")} FROM generate_series({new}, {new + 5}) n',
                       f'INSERT INTO t ({COLUMNS}) SELECT {self.row(str(new + 10))}'],
            'duplicate': [f'INSERT INTO t ({COLUMNS}) SELECT {self.row("n")} FROM generate_series({self.last}, {self.last + 3}) n'],
            'check': ["SELECT c.relname, bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE "
                      f"c.relnamespace = '{SCHEMA}'::regnamespace AND a.amname = 'btree' AND c.relkind = 'i' ORDER BY 1"],
            'immediate': ['SET CONSTRAINTS ALL IMMEDIATE', 'SELECT count(*) FROM t'],
            'alter': ['ALTER TABLE t ADD COLUMN zz int DEFAULT 3', 'SELECT sum(zz) FROM t'],
            'index': ['CREATE INDEX t_second ON t (v)', 'SELECT count(*) FROM t WHERE v = 3'],
            'copy_out': ['COPY (SELECT id, v FROM t) TO STDOUT'],
            'lock': ['SELECT id FROM t WHERE id % 7 = 3 ORDER BY id FOR UPDATE'],
        }[self.second]]

    def beside_steps(self):
        """[steps], [steps that end it] of the other session."""
        middle = (self.first + self.last) // 2
        in_block = {
            'same_key': [f'INSERT INTO t ({COLUMNS}) SELECT {self.row(str(middle), str(3))}'],
            'same_key_back': [f'INSERT INTO t ({COLUMNS}) SELECT {self.row(str(middle), str(3))}'],
            'other_key': [f'INSERT INTO t ({COLUMNS}) SELECT {self.row(str(self.last + 50), str(3))}'],
            'update': ['UPDATE t SET v = v + 100 WHERE id BETWEEN 7 AND 9'],
            'update_key': [f'UPDATE t SET k = {self.v(f"id + {SHIFT}")} WHERE id BETWEEN 7 AND 9'],
            'delete': ['DELETE FROM t WHERE id BETWEEN 7 AND 9'],
            'delete_parent': [f'DELETE FROM p WHERE n = {middle}' if self.has_parents() else 'DELETE FROM t WHERE id = 30'],
            'lock_rows': ['SELECT id FROM t WHERE id BETWEEN 7 AND 9 ORDER BY id FOR SHARE'],
            'select': ['SELECT count(*), sum(v) FROM t', f'SELECT count(*) FROM t WHERE k = {self.v(str(middle))}'],
            'alter': ['ALTER TABLE t ADD COLUMN zy text'],
            'truncate': ['TRUNCATE t CASCADE'],
            'drop': ['DROP INDEX IF EXISTS t_index'],
            'index': ['CREATE INDEX t_beside ON t (v)'],
            'revoke': ['REVOKE ALL ON t FROM twin_user', 'REVOKE ALL ON t FROM twin_owner'],
            'function': ["CREATE OR REPLACE FUNCTION f(n int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT n + 1000 $$"],
            'deadlock': ['UPDATE t SET v = v + 100 WHERE id = 7', 'LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE'],
        }
        alone = {'vacuum': ['VACUUM t'], 'analyze': ['ANALYZE t'], 'index_concurrently': ['CREATE INDEX CONCURRENTLY t_beside ON t (v)'],
                 'reindex': ['REINDEX TABLE t']}
        if self.beside in alone:
            return [self.say(text, 1) for text in alone[self.beside]], []
        if self.beside not in in_block:
            return [], []
        back = self.beside == 'same_key_back' or self.when == 'holds'
        return ([self.say(text, 1) for text in ['BEGIN', *in_block[self.beside]]],
                [self.say('ROLLBACK' if back else 'COMMIT', 1)])

    def checks(self):
        tables = self.other_tables()
        return [f'SELECT tableoid::regclass, * FROM t ORDER BY tableoid::regclass::text, ctid',
                *[f'SELECT * FROM {table} ORDER BY ctid' for table in tables],
                # what a transaction has taken that is rolled back may be lost by a crash, or not
                *([] if self.crash else ['SELECT last_value, is_called FROM numbers']),
                'SELECT * FROM twin_tools.by_index()', 'SELECT * FROM twin_tools.check_indexes()',
                'SELECT * FROM twin_tools.statistics()']


    def other_tables(self):
        return (['log', 's'] + (['p'] if self.has_parents() else []) + (['c'] if self.children else []) +
                (['w'] if self.has_foreign_tables() else []))

    def standby_checks(self):
        return [*[f'SELECT tableoid::regclass, * FROM {table} ORDER BY tableoid::regclass::text, ctid' for table in ('t', *self.other_tables())],
                'SELECT * FROM twin_tools.by_index()', 'SELECT * FROM twin_tools.check_indexes()'] if self.has_standby else []

    def differs(self):
        """What is different on a subscriber before it subscribes."""
        lines = list(self.subscribe)
        if self.conflicts:
            lines += [f'INSERT INTO t ({COLUMNS}) SELECT {self.row("n", "n % 90")} FROM generate_series({self.first + 3}, {self.last}, 50) n',
                      f'UPDATE t SET v = 77, k = {self.v("id + 3400")} WHERE id % 11 = 4']
        if self.always and self.triggers:
            lines.append('ALTER TABLE t ENABLE ALWAYS TRIGGER fires')
        # what this has inserted is counted now, and not at some time
        return [*lines, 'SELECT pg_stat_force_next_flush()']


def further(values, number):
    """Values of the statements that come after the one in the middle, on the same tables."""
    rng = random.Random(f'{number} then')
    for _ in range(THEN[values['then']]):
        plain = rng.random() * 0.9
        drawn = {name: draw(name, rng, plain) for name in OF_STATEMENTS}
        if drawn['fault'] not in FAULTS_OF_STATEMENTS:
            drawn['fault'] = 'none'
        if drawn['rows'] not in ('few', 'none', 'one') and rng.random() < 0.7:
            drawn['rows'] = 'few'
        drawn = possible({**values, 'then': 'nothing', 'made': 'first', **drawn}, rng)
        # what makes no sense with these tables is left out
        if all(drawn[name] == values[name] for name in DIMENSIONS if name not in (*OF_STATEMENTS, *OF_MAIN)):
            yield drawn


def make(values, number=0):
    plan = Plan(values, number)
    others = list(further(values, number))
    for place, drawn in enumerate(others):
        plan.add(Plan(drawn, f'{number} {place}'))
    published = plan.has_subscriber
    return Scenario(further=others, setup=plan.setup(), steps=plan.steps(), sessions=2 if any(one.beside for one in (plan, *plan.more)) else 1, checks=plan.checks(),
                    settings=plan.settings, values=values, impatient={0} if plan.impatient else set(),
                    publish=[*plan.publish, 'SELECT 1'] if published else [], subscribe=plan.differs() if published else [],
                    options=', '.join(f'{name} = {value}' for name, value in plan.subscription.items()), standby=plan.standby_checks())


TOOLS = f"""
DROP SCHEMA IF EXISTS twin_tools CASCADE;
CREATE SCHEMA twin_tools;
CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public;
CREATE FUNCTION twin_tools.by_index(OUT index text, OUT by_it bigint, OUT its_hash numeric, OUT there bigint, OUT there_hash numeric)
RETURNS SETOF record LANGUAGE plpgsql SET allow_system_table_mods = on SET search_path = {SCHEMA} AS $by$
DECLARE
    i record;
    operator text;
    query text;
BEGIN
    FOR i IN SELECT x.indexrelid, x.indrelid, c.relname, a.amname, pg_get_indexdef(x.indexrelid, 1, true) AS e,
                    coalesce(pg_get_expr(x.indpred, x.indrelid), 'true') AS p
             FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am a ON a.oid = c.relam
             WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'i' AND x.indisvalid ORDER BY c.relname
    LOOP
        operator := CASE i.amname WHEN 'gin' THEN '@>' WHEN 'gist' THEN '&&' WHEN 'spgist' THEN '&&' ELSE '=' END;
        query := format('SELECT sum(c), sum(h) FROM (SELECT DISTINCT %1$s AS e FROM ONLY %2$s WHERE %1$s IS NOT NULL AND %3$s'
                        ' ORDER BY 1 LIMIT 150) d, LATERAL (SELECT count(*) AS c, sum(hashtext(q::text)) AS h'
                        ' FROM ONLY %2$s q WHERE (%1$s) %4$s d.e AND %3$s OFFSET 0) l', i.e, i.indrelid::regclass, i.p, operator);
        -- where nothing can be written, the planner chooses among those that there are
        IF NOT pg_is_in_recovery() THEN
            UPDATE pg_index SET indisvalid = false WHERE indrelid = i.indrelid AND indexrelid <> i.indexrelid AND indisvalid;
        END IF;
        PERFORM set_config('enable_seqscan', 'off', true);
        EXECUTE query INTO by_it, its_hash;
        IF NOT pg_is_in_recovery() THEN
            UPDATE pg_index SET indisvalid = true WHERE indrelid = i.indrelid AND indexrelid <> i.indexrelid;
        END IF;
        PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
                set_config('enable_bitmapscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
        EXECUTE query INTO there, there_hash;
        PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'on', true),
                set_config('enable_indexonlyscan', 'on', true);
        index := i.relname;
        IF (by_it, its_hash) IS DISTINCT FROM (there, there_hash) THEN
            RAISE WARNING 'index % finds % of %', index, by_it, there;
        END IF;
        RETURN NEXT;
    END LOOP;
END $by$;
CREATE FUNCTION twin_tools.check_indexes(OUT index text, OUT said text)
RETURNS SETOF record LANGUAGE plpgsql SET search_path = {SCHEMA}, public AS $check$
DECLARE
    i record;
BEGIN
    FOR i IN SELECT c.oid, c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index x ON x.indexrelid = c.oid
             WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND c.relkind = 'i' AND x.indisvalid ORDER BY c.relname
    LOOP
        index := i.relname;
        said := 'right';
        BEGIN
            IF i.amname = 'btree' AND pg_is_in_recovery() THEN
                PERFORM bt_index_check(i.oid, true, true);
            ELSIF i.amname = 'btree' THEN
                PERFORM bt_index_parent_check(i.oid, true, true, true);
            ELSIF i.amname = 'gin' THEN
                PERFORM gin_index_check(i.oid);
            END IF;
        EXCEPTION WHEN OTHERS THEN
            said := SQLERRM;
        END;
        RETURN NEXT;
    END LOOP;
END $check$;
CREATE FUNCTION twin_tools.statistics(OUT name text, OUT counts text)
RETURNS SETOF record LANGUAGE sql SET search_path = {SCHEMA} AS $statistics$
    SELECT relname, concat_ws(' ', n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_tup_newpage_upd)
    FROM pg_stat_user_tables WHERE schemaname = '{SCHEMA}' ORDER BY relname
$statistics$;
"""
