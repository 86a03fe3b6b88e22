"""Faults, each of which some test has to notice.

Each is a passage of a source file, which is there once, and what stands there instead.  TESTS are tried in this order,
for each file, until one of them fails.
"""
from fault import Mutation, of  # noqa: F401

import apply_mutations
import backup_mutations
import client_mutations
import core_mutations
import index_mutations
import insert_mutations
import key_mutations
import lookup_mutations
import storage_mutations
import wal_mutations

PARTS = (index_mutations, insert_mutations, lookup_mutations, key_mutations, apply_mutations, client_mutations, storage_mutations,
         wal_mutations, backup_mutations, core_mutations)
TESTS = {file: tests for part in PARTS for file, tests in part.TESTS.items()}
MUTATIONS = [mutation for part in PARTS for mutation in part.MUTATIONS]
