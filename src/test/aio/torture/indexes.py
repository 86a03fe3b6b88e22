"""Indexes of a server, and what can be asked of each: rows that have a key, all rows, rows in its order."""
import dataclasses
import re

from cluster import pglib

INDEXES = """
SELECT indexrelid::regclass::text, indrelid::regclass::text, amname, indisunique AND indimmediate,
       pg_get_indexdef(indexrelid, 1, true), pg_get_expr(indpred, indrelid), indoption[0], opcname,
       CASE WHEN attcollation > 100 THEN attcollation::regcollation::text END
  FROM pg_index
  JOIN pg_class c ON c.oid = indexrelid
  JOIN pg_am a ON a.oid = c.relam
  JOIN pg_opclass o ON o.oid = indclass[0]
  JOIN pg_attribute t ON attrelid = indexrelid AND attnum = 1
 WHERE relnamespace = 'public'::regnamespace AND relkind = 'i' AND indisvalid
 ORDER BY 1"""

EVERYTHING = {
    'point': "<@ box '((-1,-1),(2000,2000))'", 'box': "&& box '((-1,-1),(2000,2000))'", 'int8range': "&& '(,)'",
    'int4range': "&& '(,)'", 'inet': "<<= '0.0.0.0/0'", 'text': ">= ''",
}


@dataclasses.dataclass
class Index:
    name: str
    table: str
    method: str
    unique: bool
    key: str
    predicate: str
    options: int
    opclass: str
    collation: str

    def condition(self):
        return f'({self.predicate})' if self.predicate else 'true'

    def collated(self):
        return f'{self.key} COLLATE {self.collation}' if self.collation else self.key

    def is_hashable(self):
        return self.method != 'gin' and not re.search('point|box', self.opclass)

    def has(self, key, kind=None):
        """The condition that finds the rows with this key, an expression of this type."""
        if self.method == 'gin':
            return self.collated() + {'tsvector': f" @@ array_to_string(tsvector_to_array({key}), ' & ')::tsquery",
                                      'jsonb': f' @> {key}'}.get(kind, f' @> ({key})[1:1]')
        return f'{self.collated()} {"=" if self.is_hashable() else "~="} {key}'

    def keys(self, where):
        """A query for the type of its first key, and keys of some rows, each once and as a text."""
        return (f'SELECT DISTINCT pg_typeof({self.key})::text, ({self.key})::text FROM {self.table} '
                f'WHERE {where} AND {self.condition()}')

    def order(self, backward=False):
        """The order in which a scan of a btree index returns rows."""
        descending, nulls_first = bool(self.options & 1) != backward, bool(self.options & 2) != backward
        pattern = self.opclass == 'text_pattern_ops'
        direction = ('USING ~>~' if descending else 'USING ~<~') if pattern else 'DESC' if descending else 'ASC'
        return f'{self.collated()} {direction} NULLS {"FIRST" if nulls_first else "LAST"}'


def probes(kind, keys):
    """What goes into FROM to get keys of this type, which are given as texts."""
    texts = ', '.join('NULL' if key is None else pglib.quote(key) for key in keys)
    return (f'(SELECT probe, text::{kind} AS probe_key FROM unnest(ARRAY[{texts}]) WITH ORDINALITY AS texts (text, probe) '
            f'OFFSET 0) AS probes')


def sweep(index, kind, key):
    """A query for all that is in an index, if it has an operator for that."""
    where, order = index.condition(), ''
    if index.method == 'btree':
        order = f' ORDER BY {index.order()}'
    elif index.method in ('gist', 'spgist') and kind in EVERYTHING:
        where = f'{where} AND {index.key} {EVERYTHING[kind]}'
    elif index.method == 'brin' and 'bloom' not in index.opclass:
        where = f'{where} AND {index.key} >= {pglib.quote(key)}'
    else:
        return []
    return [f'SELECT count(*), sum(hashtid(ctid)) FROM (SELECT ctid FROM {index.table} WHERE {where}{order}) x']
