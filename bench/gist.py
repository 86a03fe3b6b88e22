"""gist: COPY into a table with one GiST index, of points, boxes, ranges or numbers, or a hash index, both servers in turn.

Places are random, so that nearly each row goes to another leaf than the one before.
"""

import functools
import sys

import index_load

HELP = "COPY into a table with a GiST or a hash index, cold and in memory, both servers in turn"
RUNS = 3
GOAL_COLD, GOAL_MEMORY = 2.5, 1.5

KINDS = {
    "points": ("point", "SELECT point(random() * 1000, random() * 1000) WHERE n > 0", "gist (v)"),
    "boxes": ("box", "SELECT box(p, point(p[0] + random() * 3, p[1] + random() * 3)) "
                     "FROM (SELECT point(random() * 1000, random() * 1000) AS p WHERE n > 0)", "gist (v)"),
    "ranges": ("int4range", "SELECT int4range(i, i + trunc(random() * 20)::int) FROM (SELECT trunc(random() * 1e7)::int AS i WHERE n > 0)",
               "gist (v)"),
    "numbers": ("int", "SELECT trunc(random() * 1e9)::int WHERE n > 0", "gist (v)"),
    "hash": ("uuid", "SELECT md5(random()::text)::uuid WHERE n > 0", "hash (v)"),
}
CASES = {kind: (kind, "SELECT 1") for kind in KINDS}

add_options = functools.partial(index_load.add_options, sys.modules[__name__])
run = functools.partial(index_load.run, sys.modules[__name__])
