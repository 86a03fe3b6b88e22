"""What scenarios vary: dimensions with their values.

A dimension is a class, and its values are its methods, in the order in which they stand here; the first is the plain one,
to which a failing scenario shrinks.  A value changes the Plan of a scenario (scenario.py), before there are any
statements; plans ask for dimensions in the order of this file.  CONTRIBUTING says how to add one.
"""
DIMENSIONS = {}


def dimension(cls):
    """Take a class as a dimension of its name, in lower case."""
    DIMENSIONS[cls.__name__.lower()] = {name.rstrip('_'): value for name, value in vars(cls).items()
                                        if not name.startswith('__')}
    return cls


def nothing(plan):
    """A plain value."""


# What tables look like

@dimension
class Key:
    """The type of the key, and the n-th value of it."""
    # each two have the same hash value: whoever relies on that alone is found out by whatever scenario has such an index
    def colliding(plan): plan.key = ('bigint', '((({n}) / 2)::bigint << (32 * (({n}) % 2))::int)')
    def integer(plan): plan.key = ('int', '({n})::int')
    def text(plan): plan.key = ('text', "('key ' || ({n}))")
    def numeric(plan): plan.key = ('numeric', '(({n})::numeric / 8)')
    def uuid(plan): plan.key = ('uuid', "md5(({n})::text)::uuid")
    def timestamptz(plan): plan.key = ('timestamptz', "(timestamptz '2001-02-03 04:05Z' + ({n}) * interval '1 minute')")
    def date(plan): plan.key = ('date', "(date '2001-02-03' + ({n})::int)")
    def bpchar(plan): plan.key = ('char(12)', "('c' || ({n}))::char(12)")
    def varchar(plan): plan.key = ('varchar(30)', "('v' || ({n}))::varchar(30)")
    def float(plan): plan.key = ('float8', '(({n})::float8 / 4)')
    # whose type and operators some roles may not name
    def citext(plan): plan.key = ('twin_extensions.citext', "('Key ' || ({n}))")

    def domain(plan):
        plan.before.append('CREATE DOMAIN natural_number AS int CHECK (VALUE >= 0)')
        plan.key = ('natural_number', '({n})::natural_number')

    def collation(plan):
        plan.before.append("CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        plan.key = ('text COLLATE any_case', "(CASE WHEN ({n}) % 2 = 0 THEN 'Key ' ELSE 'kEY ' END || ({n}))")

    def composite(plan):
        plan.before.append('CREATE TYPE pair AS (x int, y text)')
        plan.key = ('pair', "ROW(({n})::int, 'y')::pair")

    def enum(plan):
        plan.before.append("DO $$ BEGIN EXECUTE (SELECT 'CREATE TYPE label AS ENUM (' || string_agg(quote_literal('e' || n), ',')"
                           " || ')' FROM generate_series(0, 9000) n); END $$")
        plan.key = ('label', "('e' || ({n}))::label")


@dimension
class Payload:
    """Another column, w."""
    def number(plan): plan.payload = ('int', '({n})::int')
    def toast(plan): plan.payload = ('text', "repeat(md5(({n})::text), 1 + (({n}) % 9 = 0)::int * 400)")
    def external(plan): plan.payload = ('text STORAGE EXTERNAL', "repeat('x', (({n}) % 5 = 0)::int * 5000)")
    def json(plan): plan.payload = ('jsonb', "jsonb_build_object('n', ({n}), 's', md5(({n})::text))")
    def null(plan): plan.payload = ('text', "CASE WHEN ({n}) % 3 > 0 THEN 'w' || ({n}) END")
    def wide(plan): plan.payload = ('text STORAGE PLAIN', "repeat('w', 2000 + ({n})::int % 100)")


@dimension
class Column:
    """One more column, that no statement names."""
    none = nothing
    def default(plan): plan.columns.append("d int DEFAULT 7")
    def default_volatile(plan): plan.columns.append("d float8 DEFAULT random() * 0")
    def default_function(plan): plan.columns.append("d int DEFAULT f(1)"); plan.needs_function = True
    def serial(plan): plan.columns.append('d serial')
    def identity(plan): plan.columns.append('d int GENERATED ALWAYS AS IDENTITY')
    def stored(plan): plan.columns.append('d int GENERATED ALWAYS AS (v * 2 + 1) STORED')
    def virtual(plan): plan.columns.append('d int GENERATED ALWAYS AS (v * 2 + 1) VIRTUAL')
    def dropped(plan): plan.columns.insert(0, 'd int'); plan.altered.append('ALTER TABLE t DROP COLUMN d')
    def tree_of_points(plan):
        plan.existing_at_least = 1500   # enough for inner pages; what has no place there comes later
        plan.columns.append("d point GENERATED ALWAYS AS (point(CASE WHEN id > 1500 AND v % 10 = 3 THEN 'NaN'::float8 ELSE v END, id)) STORED")
        plan.late.append('CREATE INDEX ON t USING spgist (d)')

    def added(plan): plan.late.append("ALTER TABLE t ADD COLUMN d text DEFAULT 'added'")


@dimension
class Partition:
    """How the table is stored."""
    none = nothing

    def range(plan):
        plan.partition_by = 'RANGE (id)'
        plan.partitions = ["CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (60)",
                           "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (60) TO (900)",
                           "CREATE TABLE t3 PARTITION OF t DEFAULT"]

    def hash(plan):
        plan.partition_by = 'HASH (id)'
        plan.partitions = [f"CREATE TABLE t{n} PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER {n - 1})"
                           for n in (1, 2, 3)]

    def reordered(plan):
        plan.partition_by = 'RANGE (id)'
        plan.partitions = ["CREATE TABLE t1 (LIKE t INCLUDING GENERATED INCLUDING DEFAULTS INCLUDING CONSTRAINTS)", "ALTER TABLE t1 ADD COLUMN z int",
                           "ALTER TABLE t1 DROP COLUMN a, ADD COLUMN a int[]", "ALTER TABLE t1 DROP COLUMN z",
                           "ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (MINVALUE) TO (500)",
                           "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (500) TO (MAXVALUE)"]

    def nested(plan):
        plan.partition_by = 'RANGE (id)'
        plan.partitions = ["CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (MINVALUE) TO (75) PARTITION BY HASH (id)",
                           "CREATE TABLE t11 PARTITION OF t1 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
                           "CREATE TABLE t12 PARTITION OF t1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
                           "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (75) TO (MAXVALUE)"]

    def inherits(plan):
        plan.late.append('CREATE TABLE child () INHERITS (t)')
        plan.late.append(f'INSERT INTO child (id, k, v, r) SELECT n, {plan.v("n")}, n, int4range(n * 10, n * 10 + 5) '
                         f'FROM generate_series(3401, 3410) n')

    def unlogged(plan): plan.persistence = 'UNLOGGED'
    def fillfactor(plan): plan.storage = 'WITH (fillfactor = 40)'


@dimension
class Method:
    """An access method, beside which a B-tree on the id is there in most cases."""
    btree = nothing
    def none(plan): plan.method = None
    def hash(plan): plan.method = 'hash'
    def gin(plan): plan.method = 'gin'; plan.index_options = 'WITH (fastupdate = off)'
    def gin_pending(plan): plan.method = 'gin'; plan.index_options = 'WITH (gin_pending_list_limit = 64)'
    def words(plan):
        plan.method, plan.words = 'gin', True
        plan.payload = ('text', "CASE WHEN ({n}) % 5 = 3 THEN repeat('a', 3000) ELSE 'word ' || ({n}) END")

    def gist(plan): plan.method = 'gist'
    def spgist(plan): plan.method = 'spgist'
    def brin(plan): plan.method = 'brin'; plan.index_options = 'WITH (pages_per_range = 1, autosummarize = off)'
    def several(plan): plan.late += [f'CREATE INDEX ON t USING {method}' for method in (
        'hash (k)', 'gin (a) WITH (fastupdate = off)', 'gist (r)', 'spgist (r)', 'brin (id) WITH (pages_per_range = 1)')]


@dimension
class Shape:
    """What that index is on."""
    plain = nothing
    def expression(plan): plan.expression = 'immutable'
    def function(plan): plan.expression = 'plpgsql'
    def partial(plan): plan.predicate = 'v % 3 <> 0'
    def partial_function(plan): plan.predicate = 'is_wanted(v)'; plan.needs_predicate = True
    def include(plan): plan.include = True
    def descending(plan): plan.descending = True
    def two(plan): plan.two_columns = True


@dimension
class Unique:
    """What is unique beside, or instead of, the id."""
    id = nothing
    def none(plan): plan.primary = None
    def key(plan): plan.unique = 'UNIQUE (k)'
    def nulls(plan): plan.unique = 'UNIQUE NULLS NOT DISTINCT (k)'
    def deferrable(plan): plan.unique = 'UNIQUE (k) DEFERRABLE'
    def deferred(plan): plan.unique = 'UNIQUE (k) DEFERRABLE INITIALLY DEFERRED'
    def primary_deferred(plan): plan.primary = 'PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED'
    def exclusion(plan): plan.unique = 'EXCLUDE USING gist (r WITH &&)'
    def exclusion_deferred(plan): plan.unique = 'EXCLUDE USING gist (r WITH &&) DEFERRABLE INITIALLY DEFERRED'
    def exclusion_btree(plan): plan.unique = f'EXCLUDE (k WITH OPERATOR({"twin_extensions" if "citext" in plan.key[0] else "pg_catalog"}.=))'
    def words(plan):
        plan.payload = ('text', "CASE WHEN ({n}) % 5 = 3 THEN repeat('a', 3000) ELSE 'word ' || ({n}) END")
        plan.late.append("CREATE UNIQUE INDEX t_words ON t (md5(to_tsvector('simple', w)::text || id), id)")

    def own_operator(plan):
        plan.before += [
            "CREATE FUNCTION is_same(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE NOTICE 'is % %?', $1, $2; RETURN $1 = $2; END $$",
            'CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = is_same, COMMUTATOR = ===)',
            'CREATE OPERATOR CLASS own_operators FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 ===, OPERATOR 4 >=, '
            'OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int)']
        plan.late.append('CREATE UNIQUE INDEX t_own ON t (id own_operators)')

    def overlaps(plan): plan.unique = 'UNIQUE (r)'; plan.not_null.append('r')


@dimension
class Made:
    """When and how indexes are made."""
    first = nothing
    def last(plan): plan.made = 'last'
    def reindexed(plan): plan.finally_.append('REINDEX TABLE t')
    def concurrently(plan): plan.made = 'concurrently'
    def reindexed_concurrently(plan): plan.finally_.append('REINDEX TABLE CONCURRENTLY t')
    def clustered(plan): plan.finally_.append('CLUSTER t USING t_pkey') if plan.primary else None
    def vacuumed(plan): plan.finally_ += [plan.delete_some, 'VACUUM t']
    def dead(plan): plan.finally_ += [plan.delete_some]


@dimension
class Trigger:
    """What it does, or looks at."""
    none = nothing

    def before_changes(plan):
        plan.trigger('BEFORE INSERT OR UPDATE', 'ROW', 'NEW.v := coalesce(NEW.v, 0) + 1000; RETURN NEW;')

    def before_skips(plan):
        plan.trigger('BEFORE INSERT OR UPDATE', 'ROW', 'IF NEW.v % 5 = 2 THEN RETURN NULL; END IF; RETURN NEW;')

    def before_looks(plan):
        plan.trigger('BEFORE INSERT', 'ROW', 'NEW.v := (SELECT count(*) FROM t WHERE id BETWEEN NEW.id - 3 AND NEW.id);'
                     ' RETURN NEW;')

    def after_looks(plan):
        plan.trigger('AFTER INSERT OR UPDATE', 'ROW', 'INSERT INTO log SELECT NEW.id, count(*) FROM t WHERE id < NEW.id + 2'
                     ' AND id > NEW.id - 2; RETURN NULL;')

    def after_by_key(plan):
        plan.trigger('AFTER INSERT OR UPDATE OR DELETE', 'ROW', 'INSERT INTO log SELECT coalesce(NEW.id, OLD.id), count(*)'
                     ' FROM t WHERE k = coalesce(NEW.k, OLD.k); RETURN NULL;')

    def statement(plan):
        plan.trigger('AFTER INSERT OR UPDATE OR DELETE', 'STATEMENT',
                     'INSERT INTO log SELECT 0, count(*) FROM t WHERE id > 0; RETURN NULL;')

    def transition(plan):
        plan.trigger('AFTER INSERT', 'STATEMENT', 'INSERT INTO log SELECT n.id, count(*) FROM new_rows n JOIN t USING (id)'
                     ' GROUP BY n.id ORDER BY n.id; RETURN NULL;', 'REFERENCING NEW TABLE AS new_rows')

    def constraint(plan):
        plan.trigger('AFTER INSERT OR UPDATE', 'ROW', "IF NEW.v = 13 THEN RAISE NOTICE 'unlucky %', NEW.id; END IF;"
                     ' INSERT INTO log SELECT NEW.id, count(*) FROM t WHERE k = NEW.k; RETURN NULL;', constraint=True)

    def checks_index(plan):
        # by an expression that PL/pgSQL evaluates itself, without a query
        plan.trigger('AFTER INSERT OR UPDATE', 'ROW', "IF NEW.id % 8 = 3 THEN PERFORM set_config('twin.x', 'x', true); x := public.bt_index_check('t_pkey', true)::text; END IF;"
                     ' RETURN NULL;')

    def conditional(plan):
        plan.trigger('AFTER INSERT OR UPDATE', 'ROW', "RAISE NOTICE 'odd %', NEW.id; RETURN NULL;",
                     condition='WHEN (NEW.v % 97 = 1)')

    def condition_notes(plan):
        plan.trigger('AFTER INSERT OR UPDATE', 'ROW', 'RETURN NULL;', condition='WHEN (traced(NEW.id) % 3 = 1)')

    def condition_fails(plan):
        plan.trigger('AFTER INSERT OR UPDATE', 'ROW', 'RETURN NULL;', condition='WHEN (100 / (NEW.id % 50 - 13) > 0)')

    def writes_same(plan):
        plan.trigger('AFTER INSERT', 'ROW', 'IF NEW.id < 100000 THEN UPDATE t SET v = v + 1 WHERE id = NEW.id - 1; END IF;'
                     ' RETURN NULL;')

    def catches(plan):
        plan.trigger('AFTER INSERT', 'ROW', 'BEGIN INSERT INTO log SELECT NEW.id, 1 / (NEW.v % 7); EXCEPTION WHEN'
                     " division_by_zero THEN INSERT INTO log VALUES (NEW.id, -1); END; RETURN NULL;")


@dimension
class Function:
    """f(int), which statements may call."""
    none = nothing
    def sql(plan): plan.function = ("sql", 'IMMUTABLE', 'SELECT n + 1')
    def stable(plan): plan.function = ('plpgsql', 'STABLE', 'BEGIN RETURN (SELECT count(*) FROM t WHERE id <= n AND id > n - 30); END')
    def volatile(plan): plan.function = ('plpgsql', 'VOLATILE', 'BEGIN RETURN (SELECT count(*) FROM t WHERE id <= n AND id > n - 30); END')
    def writes(plan): plan.function = ('plpgsql', 'VOLATILE', 'BEGIN INSERT INTO log VALUES (n, -2); RETURN n; END')
    def definer(plan): plan.function = ('plpgsql', 'VOLATILE SECURITY DEFINER',
                                        'BEGIN RETURN (SELECT count(*) FROM t WHERE id = n) + length(current_user); END')
    def notice(plan): plan.function = ('plpgsql', 'IMMUTABLE',
                                       "BEGIN IF n % 100 = 1 THEN RAISE NOTICE 'f(%)', n; END IF; RETURN n; END")
    def raises(plan): plan.function = ('plpgsql', 'IMMUTABLE', "BEGIN RETURN 100 / (n - 77); END")
    def setting(plan): plan.function = ('sql', 'STABLE', "SELECT n + length(current_setting('TimeZone'))")
    def checks_index(plan): plan.function = (
        'plpgsql', 'VOLATILE', "DECLARE x text; BEGIN IF n % 8 = 3 THEN x := public.bt_index_check('t_pkey', true); END IF; RETURN n; END")
    def revokes(plan): plan.function = ('plpgsql', 'VOLATILE SECURITY DEFINER',
                                        'BEGIN IF n % 10 = 3 THEN REVOKE EXECUTE ON FUNCTION f(int) FROM PUBLIC; END IF; RETURN n; END')
    def counts(plan): plan.function = ('sql', 'VOLATILE', "SELECT nextval('numbers')::int + 0 * n")
    def updates(plan): plan.function = ('plpgsql', 'VOLATILE', 'BEGIN IF n % 50 = 17 THEN UPDATE t SET v = v + 1 WHERE id = n - 1; END IF; RETURN n; END')


@dimension
class Check:
    """Constraints of the table."""
    none = nothing
    def check(plan): plan.constraints.append('CHECK (v > -5)')
    def function(plan): plan.constraints.append('CHECK (f(v) IS NOT NULL)'); plan.needs_function = True
    def not_null(plan): plan.not_null.append('v')
    def fails(plan): plan.constraints.append('CHECK (v <> 63)')
    def not_valid(plan): plan.late.append('ALTER TABLE t ADD CHECK (v <> 12) NOT VALID')
    def not_enforced(plan): plan.constraints.append('CHECK (v < 0) NOT ENFORCED')


@dimension
class Foreign:
    """Foreign keys from and to the table; parents are p, children c."""
    none = nothing
    def parent(plan): plan.foreign = 'FOREIGN KEY (k) REFERENCES p (k)'
    def parent_cascades(plan): plan.foreign = 'FOREIGN KEY (k) REFERENCES p (k) ON DELETE CASCADE ON UPDATE CASCADE'
    def parent_deferred(plan): plan.foreign = 'FOREIGN KEY (k) REFERENCES p (k) DEFERRABLE INITIALLY DEFERRED'
    def parent_null(plan): plan.foreign = 'FOREIGN KEY (k) REFERENCES p (k) ON DELETE SET NULL'
    def parent_missing(plan): plan.foreign = 'FOREIGN KEY (k) REFERENCES p (k)'; plan.missing = True
    def parent_deferred_missing(plan):
        plan.foreign = 'FOREIGN KEY (k) REFERENCES p (k) DEFERRABLE INITIALLY DEFERRED'; plan.missing = True
    def self_(plan): plan.foreign = 'FOREIGN KEY (v) REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED'; plan.own_parent = True
    def children(plan): plan.children = 'REFERENCES t (id)'
    def children_cascade(plan): plan.children = 'REFERENCES t (id) ON DELETE CASCADE ON UPDATE CASCADE'
    def children_null(plan): plan.children = 'REFERENCES t (id) ON DELETE SET NULL'
    def children_default(plan): plan.children = 'REFERENCES t (id) ON DELETE SET DEFAULT'
    def children_deferred(plan): plan.children = 'REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED'


@dimension
class Parents:
    """The index by which parents are found, and what is beside it."""
    primary = nothing
    def unique(plan): plan.parents = 'unique'
    def hash_first(plan): plan.parents = 'hash'
    def partitioned(plan): plan.parents = 'partitioned'
    def cross_type(plan): plan.parents = 'cross'
    def updated(plan): plan.parents = 'updated'
    def row_security(plan): plan.parents = 'rls'
    # keys refer to several tables, of which one lacks a row
    def several(plan): plan.parents = 'several'


@dimension
class Nested:
    """What a trigger of the children does to their parents, while these are changed."""
    none = nothing
    def deletes(plan): plan.nested = 'DELETE FROM t WHERE id = OLD.id + 9;'
    def deletes_childless(plan): plan.nested = 'DELETE FROM t WHERE id = OLD.id + 5;'
    def updates(plan): plan.nested = 'UPDATE t SET id = id + 50000 WHERE id = OLD.id + 5;'
    def caught(plan): plan.nested = ("BEGIN DELETE FROM t WHERE id = OLD.id + 9; RAISE division_by_zero;"
                                     " EXCEPTION WHEN division_by_zero THEN NULL; END;")
    def inserts(plan): plan.nested = 'INSERT INTO c SELECT id, 7 FROM t WHERE id = OLD.id + 9;'


@dimension
class Role:
    """Who runs the statements."""
    superuser = nothing
    def owner(plan): plan.role = 'twin_owner'
    def granted(plan): plan.role = 'twin_user'
    def columns(plan): plan.role = 'twin_user'; plan.by_column = True
    def policy(plan): plan.role = 'twin_user'; plan.policy = 'v % 4 <> 1'
    def policy_query(plan): plan.role = 'twin_user'; plan.policy = 'id IN (SELECT id FROM s)'
    def policy_user(plan): plan.role = 'twin_user'; plan.policy = "length(current_user) = 9 OR v < 50"
    def nobody(plan): plan.role = 'twin_nobody'


# What is done

@dimension
class Kind:
    """The statement in the middle."""
    insert_select = nothing
    def insert_values(plan): plan.kind = 'insert_values'
    def insert_unnest(plan): plan.kind = 'insert_unnest'
    def insert_join(plan): plan.kind = 'insert_join'
    def copy(plan): plan.kind = 'copy'
    def copy_where(plan): plan.kind = 'copy_where'
    def copy_ignore(plan): plan.kind = 'copy_ignore'
    def update_key(plan): plan.kind = 'update_key'
    def update_other(plan): plan.kind = 'update_other'
    def update_from(plan): plan.kind = 'update_from'
    def update_id(plan): plan.kind = 'update_id'
    def delete(plan): plan.kind = 'delete'
    def delete_using(plan): plan.kind = 'delete_using'
    def merge(plan): plan.kind = 'merge'
    def merge_source(plan): plan.kind = 'merge_source'
    def do_nothing(plan): plan.kind = 'do_nothing'
    def do_update(plan): plan.kind = 'do_update'
    def do_update_where(plan): plan.kind = 'do_update_where'
    def with_(plan): plan.kind = 'with'
    def with_delete(plan): plan.kind = 'with_delete'
    def loop(plan): plan.kind = 'loop'
    def loop_upsert(plan): plan.kind = 'loop_upsert'
    def view(plan): plan.kind = 'view'
    def rule(plan): plan.kind = 'rule'
    def parents_delete(plan): plan.kind = 'parents_delete'
    def parents_update(plan): plan.kind = 'parents_update'
    def select_join(plan): plan.kind = 'select_join'
    def select_lateral(plan): plan.kind = 'select_lateral'
    def select_anti(plan): plan.kind = 'select_anti'
    def select_array(plan): plan.kind = 'select_array'
    def select_order(plan): plan.kind = 'select_order'
    def select_update(plan): plan.kind = 'select_update'
    def select_tids(plan): plan.kind = 'select_tids'
    def select_function(plan): plan.kind = 'select_function'
    def select_bitmap(plan): plan.kind = 'select_bitmap'
    def select_scalar(plan): plan.kind = 'select_scalar'
    def select_clock(plan): plan.kind = 'select_clock'
    def select_sequence(plan): plan.kind = 'select_sequence'
    def select_locked(plan): plan.kind = 'select_locked'
    def insert_table(plan): plan.kind = 'insert_table'
    def nothing_of_table(plan): plan.kind = 'nothing_of_table'
    def create_as(plan): plan.kind = 'create_as'
    def truncate(plan): plan.kind = 'truncate'
    def add_foreign(plan): plan.kind = 'add_foreign'
    def add_column(plan): plan.kind = 'add_column'
    def foreign_select(plan): plan.kind = 'foreign_select'
    def foreign_append(plan): plan.kind = 'foreign_append'
    def foreign_union(plan): plan.kind = 'foreign_union'
    def foreign_source(plan): plan.kind = 'foreign_source'
    def foreign_insert(plan): plan.kind = 'foreign_insert'
    def foreign_update(plan): plan.kind = 'foreign_update'
    def foreign_delete(plan): plan.kind = 'foreign_delete'
    def foreign_copy(plan): plan.kind = 'foreign_copy'


@dimension
class Remote:
    """How foreign tables are asked."""
    default = nothing
    def small(plan): plan.remote = "fetch_size '3'"
    def batches(plan): plan.remote = "batch_size '10', fetch_size '50'"
    def asynchronous(plan): plan.remote = "async_capable 'true'"
    def asynchronous_small(plan): plan.remote = "async_capable 'true', fetch_size '2', batch_size '100'"


@dimension
class Rows:
    """How many."""
    few = nothing
    def none(plan): plan.rows = 0
    def one(plan): plan.rows = 1
    def below(plan): plan.rows = 999
    def threshold(plan): plan.rows = 1000
    def above(plan): plan.rows = 1001
    def many(plan): plan.rows = 1500


@dimension
class Returning:
    """What the client is told, of {t}."""
    tag = nothing
    def rows(plan): plan.returning = 'RETURNING {t}.id, {t}.k, {t}.v'
    def old(plan): plan.returning = 'RETURNING old.v, new.v, {t}.id'
    def function(plan): plan.returning = 'RETURNING {t}.id, f({t}.id)'; plan.needs_function = True
    def ctid(plan): plan.returning = 'RETURNING {t}.tableoid::regclass, {t}.ctid, {t}.id'
    def query(plan): plan.returning = 'RETURNING {t}.id, (SELECT count(*) FROM t x WHERE x.id <= {t}.id AND x.id > {t}.id - 30)'


@dimension
class Client:
    """How the client talks."""
    simple = nothing
    def extended(plan): plan.client = 'extended'
    def pipeline(plan): plan.client = 'pipeline'
    def pipeline_once(plan): plan.client = 'pipeline_once'
    def portal(plan): plan.client = 'portal'
    def cursor(plan): plan.client = 'cursor'
    def scroll(plan): plan.client = 'scroll'
    def hold(plan): plan.client = 'hold'
    def paused(plan): plan.client = 'paused'
    def definer(plan): plan.client = 'definer'
    def one_message(plan): plan.client = 'one_message'
    def prepared(plan): plan.client = 'prepared'
    def explain(plan): plan.client = 'explain'
    def in_function(plan): plan.client = 'in_function'
    def in_procedure(plan): plan.client = 'in_procedure'


@dimension
class Block:
    """The transaction around it."""
    none = nothing
    def commit(plan): plan.block = 'commit'
    def rollback(plan): plan.block = 'rollback'
    def released(plan): plan.block = 'released'
    def rolled_back(plan): plan.block = 'rolled_back'
    def caught(plan): plan.block = 'caught'
    def prepared(plan): plan.block = 'prepared'
    def chain(plan): plan.block = 'chain'


@dimension
class Isolation:
    """And its isolation."""
    committed = nothing
    def repeatable(plan): plan.isolation = 'REPEATABLE READ'
    def serializable(plan): plan.isolation = 'SERIALIZABLE'
    def read_only(plan): plan.isolation = 'REPEATABLE READ, READ ONLY'


@dimension
class Limit:
    """Who does not want all rows of a query."""
    none = nothing
    def limit(plan): plan.limit = 'limit'
    def offset(plan): plan.limit = 'offset'
    def exists(plan): plan.limit = 'exists'
    def distinct(plan): plan.limit = 'distinct'
    def ties(plan): plan.limit = 'ties'
    def scalar(plan): plan.limit = 'scalar'
    def lateral(plan): plan.limit = 'lateral'


@dimension
class Expression:
    """What a statement evaluates for each row, which has the number {n}; {bad} is one of these."""
    none = nothing
    def function(plan): plan.value = 'f(({n})::int)'; plan.needs_function = True
    def filter(plan): plan.filter = 'f(({n})::int) IS NOT NULL'; plan.needs_function = True
    def random(plan): plan.value = '(({n}) + random() * 0)::int'
    def clock(plan): plan.value = '(({n}) + 0 * length(clock_timestamp()::text))::int'
    def user(plan): plan.value = '({n}) + length(current_user)'
    def filter_user(plan): plan.filter = '({n}) % 3 <> length(current_user) % 3'
    def constant(plan): plan.filter = "to_tsquery('english', 'the') IS NOT NULL"
    def internal(plan): plan.filter = 'pg_describe_object((({n}) = {bad})::int::oid, 0, 0) IS NULL'

    def setting(plan):
        # how far the rows before have come
        plan.value = "length(set_config('twin.n', ({n})::text, false))"
        plan.filter = "coalesce(nullif(current_setting('twin.n', true), ''), '0')::int + 0 * ({n}) < 90"

    def traced(plan): plan.value = 'traced(({n})::int)'
    def query(plan): plan.value = '(SELECT count(*)::int FROM t x WHERE x.id < ({n}) AND x.id > ({n}) - 5)'
    def sequence(plan): plan.value = "nextval('numbers')::int"
    def division(plan): plan.value = '1000 / (({n}) - {bad})'


@dimension
class Second:
    """What the same transaction does next."""
    select = nothing
    def nothing_(plan): plan.second = None
    def by_key(plan): plan.second = 'by_key'
    def update(plan): plan.second = 'update'
    def delete(plan): plan.second = 'delete'
    def insert(plan): plan.second = 'insert'
    def duplicate(plan): plan.second = 'duplicate'
    def check(plan): plan.second = 'check'
    def immediate(plan): plan.second = 'immediate'
    def alter(plan): plan.second = 'alter'
    def index(plan): plan.second = 'index'
    def copy_out(plan): plan.second = 'copy_out'
    def lock(plan): plan.second = 'lock'


@dimension
class Then:
    """How many statements more there are, each with values of its own."""
    nothing_ = nothing
    some = nothing
    many = nothing


@dimension
class Beside:
    """What another session does meanwhile, and how it ends."""
    none = nothing
    def same_key(plan): plan.beside = 'same_key'
    def same_key_back(plan): plan.beside = 'same_key_back'
    def other_key(plan): plan.beside = 'other_key'
    def update(plan): plan.beside = 'update'
    def update_key(plan): plan.beside = 'update_key'
    def delete(plan): plan.beside = 'delete'
    def delete_parent(plan): plan.beside = 'delete_parent'
    def lock_rows(plan): plan.beside = 'lock_rows'
    def select(plan): plan.beside = 'select'
    def vacuum(plan): plan.beside = 'vacuum'
    def analyze(plan): plan.beside = 'analyze'
    def index(plan): plan.beside = 'index'
    def index_concurrently(plan): plan.beside = 'index_concurrently'
    def reindex(plan): plan.beside = 'reindex'
    def alter(plan): plan.beside = 'alter'
    def truncate(plan): plan.beside = 'truncate'
    def drop(plan): plan.beside = 'drop'
    def revoke(plan): plan.beside = 'revoke'
    def function(plan): plan.beside = 'function'
    def deadlock(plan): plan.beside = 'deadlock'


@dimension
class When:
    """When the other session begins."""
    after = nothing
    def before(plan): plan.when = 'before'
    def between(plan): plan.when = 'between'
    def holds(plan): plan.when = 'holds'


@dimension
class Fault:
    """What goes wrong."""
    none = nothing
    def division(plan): plan.fault = 'division'
    def division_late(plan): plan.fault = 'division_late'
    def duplicate(plan): plan.fault = 'duplicate'
    def duplicate_within(plan): plan.fault = 'duplicate_within'
    def null(plan): plan.fault = 'null'
    # a row that fails, and one after it that fails in another way
    def duplicate_oversize(plan): plan.fault = 'duplicate_oversize'
    def duplicate_division(plan): plan.fault = 'duplicate_division'
    def duplicate_given_up(plan): plan.fault = 'duplicate_given_up'
    def cancel(plan): plan.fault = 'cancel'
    def terminate(plan): plan.fault = 'terminate'
    def gone(plan): plan.fault = 'gone'
    def timeout(plan): plan.fault = 'timeout'


# Where what is left is looked at

@dimension
class Place:
    """Beside the server as it is."""
    here = nothing
    def crash(plan): plan.crash = 'end'
    def crash_within(plan): plan.crash = 'within'
    def standby(plan): plan.has_standby = True
    def subscriber(plan): plan.has_subscriber = True


@dimension
class Subscriber:
    """What is different on it, or how it applies."""
    alike = nothing
    def full(plan): plan.publish.append('ALTER TABLE t REPLICA IDENTITY FULL'); plan.subscribe += plan.publish
    def by_index(plan): plan.publish.append('ALTER TABLE t REPLICA IDENTITY FULL'); plan.subscribe.append(
        'ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE')
    def nothing_(plan): plan.publish.append('ALTER TABLE t REPLICA IDENTITY NOTHING')
    def missing(plan): plan.subscribe.append('DELETE FROM t WHERE id % 7 = 3')
    def conflicting(plan): plan.conflicts = True
    def always(plan): plan.always = True
    def streaming(plan): plan.subscription['streaming'] = 'on'
    def parallel(plan): plan.subscription['streaming'] = 'parallel'
    def copied(plan): plan.subscribe.append('TRUNCATE t CASCADE'); plan.subscription['copy_data'] = 'true'
    def columns(plan): plan.subscribe += ['ALTER TABLE t ADD COLUMN more int DEFAULT 5', 'CREATE INDEX ON t (more, id)']
    def binary(plan): plan.subscription['binary'] = 'true'
    def owner(plan): plan.subscription['run_as_owner'] = 'true'
    def indexes(plan): plan.subscribe += ['CREATE INDEX ON t (v)', 'CREATE INDEX ON t (w) WHERE v % 2 = 0', 'CREATE INDEX ON t USING gin (a)']


# What is set, on both sides, and on ours only

@dimension
class Memory:
    """Small memory, and what plans look like."""
    default = nothing
    def small(plan): plan.sets += ['work_mem = 64', 'maintenance_work_mem = 64']
    def no_hash(plan): plan.sets += ['enable_hashjoin = off', 'enable_mergejoin = off', 'enable_seqscan = off']
    def merge(plan): plan.sets += ['enable_hashjoin = off', 'enable_nestloop = off']
    def no_memoize(plan): plan.sets += ['enable_memoize = off', 'enable_hashjoin = off', 'enable_mergejoin = off',
                                        'enable_material = off']
    def generic(plan): plan.sets += ["plan_cache_mode = force_generic_plan"]
    def scans(plan): plan.sets += ['seq_page_cost = 1', 'random_page_cost = 4']
    def parallel(plan): plan.sets += ['debug_parallel_query = on']
    def replica(plan): plan.sets += ['session_replication_role = replica']
    def messages(plan): plan.sets += ['client_min_messages = log']


@dimension
class Awaiting:
    """How ours awaits."""
    default = nothing
    def collected(plan): plan.awaits(rows_before_batch=0, batch_unique_keys='on')
    def drained(plan): plan.awaits(rows_before_batch=0, batch_unique_keys='on', index_batch_memory='1kB')
    def suspended(plan): plan.awaits(suspend='on', delay_completions=3, rows_before_batch=0)
    def ahead(plan): plan.awaits(lookups=3)
    def ahead_all(plan): plan.awaits(lookups=64, rows_before_batch=0, batch_unique_keys='on')
    def spilled(plan): plan.awaits(spill='on', rows_before_batch=0, batch_unique_keys='on')
    def cold(plan): plan.awaits(quick_io_time=0); plan.cold = True
    def cold_collected(plan): plan.awaits(quick_io_time=0, rows_before_batch=0, batch_unique_keys='on'); plan.cold = True
    def quick(plan): plan.awaits(quick_io_time='1s'); plan.cold = True
    def quick_collected(plan): plan.awaits(quick_io_time='1s', rows_before_batch=0, batch_unique_keys='on'); plan.cold = True
    # of which only clients that send more than one statement at a time have any
    def pipelined(plan): plan.awaits(pipelined_commits='on')
    def everything(plan): plan.awaits(spill='on', rows_before_batch=0, batch_unique_keys='on', lookups=7, suspend='on',
                                      pipelined_commits='on')


# What acts together: faults come of three or four values, of some of these.  Each has dimensions that vary more than others
# do, and the kinds of statements that have to do with them, as a pattern; None is all.
WRITES = '(insert|copy|update|merge|do_|with|loop|view|rule|nothing)'
THEMES = {
    'keys': (('key', 'foreign', 'parents', 'role', 'fault', 'beside', 'when', 'isolation', 'block', 'kind'), f'{WRITES}|parents|add_foreign|truncate'),
    'children': (('foreign', 'nested', 'unique', 'beside', 'when', 'block', 'kind'), 'delete|update|merge|truncate'),
    'loops': (('kind', 'limit', 'client', 'function', 'expression', 'shape', 'second', 'role'), 'select|create_as|insert_join|update_from|delete_using'),
    'entries': (('method', 'shape', 'unique', 'payload', 'column', 'trigger', 'made', 'fault', 'block', 'second', 'kind'), WRITES),
    'order': (('trigger', 'function', 'check', 'column', 'expression', 'shape', 'fault', 'returning', 'client', 'kind'), WRITES),
    'reads': (('trigger', 'function', 'unique', 'method', 'second', 'block', 'returning', 'client', 'kind'), WRITES),
    'servers': (('kind', 'remote', 'function', 'limit', 'expression', 'client', 'isolation', 'second'), 'foreign'),
    'apply': (('subscriber', 'trigger', 'unique', 'method', 'shape', 'payload', 'foreign', 'block', 'partition', 'kind'), WRITES + '|delete|truncate'),
    'sessions': (('beside', 'when', 'isolation', 'block', 'unique', 'foreign', 'client', 'fault', 'kind'), None),
}
# What is always drawn: with what is plain there, little of ours has anything to do with few rows.
DRAWN = {'then': {'nothing': 1, 'some': 2, 'many': 3},
         'awaiting': None, 'memory': None,
         # restarts and standbys take longer than all else that a scenario does
         # one scenario for what takes many
         'parents': {'primary': 5, 'unique': 1, 'hash_first': 1, 'partitioned': 1, 'cross_type': 1, 'updated': 1, 'row_security': 1,
                     'several': 5},
         'place': {'here': 40, 'crash': 1, 'crash_within': 2, 'standby': 2, 'subscriber': 3}}


def impossible(values):
    """Whether nothing could be seen of two values together; values may have some of the dimensions."""
    get = values.get
    kind = get('kind', '')
    return bool(
        kind in ('parents_delete', 'parents_update') and get('foreign', 'parent') not in (
            'parent', 'parent_cascades', 'parent_deferred', 'parent_null') or
        get('foreign', 'parent') in ('none', 'self', 'children', 'children_cascade', 'children_null', 'children_default',
                                     'children_deferred') and get('parents', 'primary') != 'primary' or
        get('method') == 'none' and get('shape', 'plain') != 'plain' or
        get('method') == 'words' and get('shape', 'plain') not in ('plain', 'partial', 'partial_function') or
        'words' in (get('method'), get('unique')) and get('payload', 'number') != 'number' or
        'checks_index' in (get('trigger'), get('function')) and (
            get('unique') in ('none', 'primary_deferred') or get('partition', 'none') in ('range', 'hash', 'reordered', 'nested')) or
        get('column') == 'tree_of_points' and get('partition') == 'inherits' or
        get('fault') == 'duplicate_oversize' and kind and kind not in ('insert_table', 'nothing_of_table') or
        get('fault') == 'duplicate_given_up' and kind and not kind.startswith('copy') or
        get('function') == 'none' and (get('expression') in ('function', 'filter') or get('returning') == 'function' or
                                       get('check') == 'function' or get('column') == 'default_function' or
                                       get('beside') == 'function' or kind == 'select_function') or
        get('nested', 'none') != 'none' and not get('foreign', 'children').startswith('children') or
        get('beside') == 'none' and get('when', 'after') != 'after' or
        get('block') == 'none' and get('isolation', 'committed') != 'committed' or
        get('limit', 'none') != 'none' and kind and not kind.startswith(('select', 'insert_join', 'create_as', 'foreign_select', 'foreign_append')) or
        kind.startswith(('select', 'copy', 'truncate', 'create_as', 'add_', 'loop', 'foreign_select', 'foreign_append', 'foreign_copy')) and get('returning', 'tag') != 'tag' or
        kind.startswith(('copy', 'foreign_copy')) and get('client', 'simple') not in ('simple', 'paused', 'one_message', 'extended') or
        kind in ('truncate', 'create_as', 'add_foreign', 'add_column', 'loop', 'loop_upsert') and get('client', 'simple') not in (
            'simple', 'extended', 'pipeline', 'one_message') or
        kind == 'add_foreign' and get('foreign', 'none') != 'none' or
        get('client') in ('cursor', 'scroll', 'hold', 'definer') and kind and not kind.startswith(('select', 'foreign_select', 'foreign_append')) or
        get('unique') == 'none' and get('foreign', 'none') in ('self', 'children', 'children_cascade', 'children_null',
                                                              'children_default', 'children_deferred') or
        get('unique') == 'primary_deferred' and (kind in ('do_nothing', 'do_update', 'do_update_where', 'loop_upsert') or
                                                 get('foreign', 'none').startswith(('self', 'children'))) or
        get('partition') == 'hash' and kind == 'update_id' or
        get('partition') in ('range', 'hash', 'nested', 'reordered') and (
            get('unique', 'id') not in ('id', 'none') or get('made') in ('concurrently', 'clustered')) or
        get('method') in ('gin', 'gin_pending', 'gist', 'spgist', 'brin', 'hash') and get('shape') in ('descending',) or
        get('method') in ('gin', 'gin_pending', 'spgist', 'brin', 'hash') and get('shape') in ('include', 'two') or
        get('method') in ('gin', 'gin_pending', 'gist', 'spgist', 'none') and get('shape') in ('expression', 'function') or
        get('isolation') == 'read_only' and kind and not kind.startswith('select') or
        get('remote', 'default') != 'default' and kind and not kind.startswith('foreign') or
        # a nested loop asks for all of them, a few at a time, for each row
        get('remote') in ('small', 'asynchronous_small') and get('rows', 'few') not in ('few', 'none', 'one') or
        get('place', 'subscriber') != 'subscriber' and get('subscriber', 'alike') != 'alike' or
        get('place') == 'subscriber' and get('partition') == 'unlogged' or
        get('trigger') == 'none' and get('subscriber') == 'always' or
        get('place') in ('crash', 'crash_within') and get('fault') in ('terminate', 'gone'))
