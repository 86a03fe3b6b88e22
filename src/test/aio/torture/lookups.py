"""Queries that look up indexes, run twice in one snapshot: without lookups ahead of need, and with them.

Both times a query must give the same rows, and in the same order if it asks for one.  The order that it asks for leaves
nothing open, so the rows do not depend on the plan, which may change in between.
"""
import itertools

# Leave the planner nested loops, and scans in the order of an index.
SETTINGS = {'enable_seqscan': 'off', 'enable_hashjoin': 'off', 'enable_mergejoin': 'off', 'enable_material': 'off',
            'enable_sort': 'off', 'enable_indexscan': 'on', 'enable_bitmapscan': 'on'}
EVICT = 'SELECT FROM pg_buffercache_evict_all()'
COLD = 0.2
METHODS = ('btree', 'hash', 'gist', 'spgist')

JOINS = [
    'SELECT probe, id, version FROM {probes} JOIN {table} ON {match}',
    'SELECT probe, id, version FROM {probes} LEFT JOIN {table} ON {match} AND version % 2 = 0',
    'SELECT probe FROM {probes} WHERE EXISTS (SELECT FROM {table} WHERE {match} AND version % 2 = 0)',
    'SELECT probe FROM {probes} WHERE NOT EXISTS (SELECT FROM {table} WHERE {match} AND version % 2 = 0)',
    'SELECT probe, id, other FROM {probes} JOIN {table} ON {match} JOIN {others} ON other = id + {step}',
    'SELECT probe, (SELECT max(version) FROM {table} WHERE {match}) FROM {probes}',
    'SELECT probe, found FROM {probes}, LATERAL (SELECT count(*) AS found FROM {table} WHERE {match}) x',
    'SELECT probe, id FROM {probes}, LATERAL (SELECT id FROM {table} WHERE {match} ORDER BY id LIMIT 2) x',
]
ORDERED_JOIN = ('SELECT id, version, other FROM {whole} JOIN {others} ON other = id + {step} WHERE {visible} '
                'ORDER BY id {direction} LIMIT {limit}')
ORDERED_SCAN = ('SELECT {columns} FROM {table} WHERE {condition} AND {visible} '
                'ORDER BY {order}, id {direction} LIMIT {limit}')


def settings(rng, tables):
    """Statements that let what follows in the transaction look up its rows, and that on disk mostly."""
    chosen = {**SETTINGS, rng.choice(['enable_bitmapscan', 'enable_bitmapscan', 'enable_indexscan']): 'off',
              'enable_memoize': rng.choice(['on', 'off'])}
    cold = [EVICT] if rng.random() < COLD else [f"SELECT pg_buffercache_evict_relation('{table}')" for table in tables]
    return '; '.join([*(f'SET LOCAL {name} = {value}' for name, value in chosen.items()), *cold])


def query(rng, table, others, index, probes, step, visible):
    """(A query, is it ordered): for these keys, or in the order of an index; `visible` is a condition."""
    backward = rng.random() < 0.5
    words = {
        'whole': table.name, 'table': index.table, 'step': step, 'visible': visible, 'condition': index.condition(),
        'match': f'{index.has("probe_key")} AND {index.condition()} AND {visible}', 'probes': probes,
        'others': f'(SELECT id AS other FROM {others.name} WHERE {visible}) others',
        'direction': 'DESC' if backward else '', 'limit': rng.choice([30, 300, 2000, 'ALL']),
        'columns': rng.choice(['id', 'id, version']),
    }
    kinds = [*JOINS, ORDERED_JOIN]
    if index.method == 'btree':
        words['order'] = index.order(backward)
        kinds += [ORDERED_SCAN] * 5
    kind = rng.choice(kinds)
    return kind.format(**words), kind not in JOINS


def steps(rng, ordered):
    """Ways to fetch all rows with a cursor; none for a query without one."""
    number = rng.choice([0, 0, 1, 6])
    ways = ['FETCH', 'FETCH', 'FETCH BACKWARD', 'MOVE'] if ordered else ['FETCH']
    return [*(f'{rng.choice(ways)} {rng.choice([1, 20, 200])}' for _ in range(number)), *['FETCH ALL'] * bool(number)]


def fetch(run, sql, ways):
    if not ways:
        return run(sql)
    run(f'DECLARE c {"SCROLL" if any("BACKWARD" in way for way in ways) else ""} CURSOR FOR {sql}')
    rows = [row for way in ways for row in run(f'{way} FROM c')]
    run('CLOSE c')
    return rows


def compare(run, rng, sql, ordered, tables):
    """Run a query of these tables twice; yields what is wrong.  run() gives the rows of a statement in a transaction."""
    found, ways = {}, steps(rng, ordered)
    for ahead in rng.sample([0, rng.randint(1, 64)], 2):
        run(f'{settings(rng, tables)}; SET LOCAL aio.lookup_ahead = {ahead}')
        rows = fetch(run, sql, ways)
        found[ahead] = rows if ordered else sorted(rows, key=repr)
    (_, right), (ahead, rows) = sorted(found.items())
    for one, other in itertools.zip_longest(right, rows):
        if one != other:
            yield (f'{sql}; {ways}\naio.lookup_ahead = 0: {right}\naio.lookup_ahead = {ahead}: {rows}\n'
                   f'{len(rows)} rows with lookups ahead, {len(right)} without; the first that differs is {other}, not {one}')
            return
