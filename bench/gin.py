"""gin: COPY into a table with one GIN index, of words, of numbers or of documents, both servers in turn.

Each row has many keys, and each key belongs to some page of the index; a few keys are in many rows.
"""

import functools
import sys

import index_load

HELP = "COPY into a table with a GIN index of words, numbers or documents, cold and in memory, both servers in turn"
RUNS = 3
GOAL_COLD, GOAL_MEMORY = 3, 1.5

WORD = "'w' || trunc(pow(random(), 3) * 200000)"
KINDS = {
    "words": ("tsvector", f"SELECT array_to_tsvector(array_agg(DISTINCT {WORD})) FROM generate_series(1, 20) WHERE n > 0", "gin (v)"),
    "numbers": ("int[]", "SELECT array_agg(trunc(random() * 1000000)::int) FROM generate_series(1, 10) WHERE n > 0", "gin (v)"),
    "documents": ("jsonb", f"SELECT jsonb_build_object('n', n % 10, 'tags', jsonb_agg({WORD}), 'id', random()) "
                           "FROM generate_series(1, 8) WHERE n > 0", "gin (v jsonb_path_ops)"),
}
CASES = {kind + suffix: (kind, f"ALTER INDEX {kind}_v SET ({options}); SELECT gin_clean_pending_list('{kind}_v')")
         for kind in KINDS for suffix, options in {", no pending list": "fastupdate = off", ", pending list": "fastupdate = on"}.items()}

add_options = functools.partial(index_load.add_options, sys.modules[__name__])
run = functools.partial(index_load.run, sys.modules[__name__])
