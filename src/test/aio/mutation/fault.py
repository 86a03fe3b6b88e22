"""A fault: a passage of a source file, which is there once, and what stands there instead."""
import collections

Mutation = collections.namedtuple('Mutation', 'name file old new')


def of(file, *mutations, folder):
    return [Mutation(name, f'{folder}/{file}', old, new) for name, old, new in mutations]
