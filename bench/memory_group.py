"""A control group that limits the memory of a server, page cache included: as in a container, and so that files do not
stay in memory on a machine that has a lot of it.

Needs root, or a hierarchy that was delegated: version 2, or version 1's controller "memory".  Without, PgError says so.
"""

import os
import pathlib
import time

from pglib import PgError

ROOT = pathlib.Path("/sys/fs/cgroup")
ENDED_WITHIN_S = 10


class MemoryGroup:
    """Used as `with MemoryGroup(name, bytes) as group:`; all of its processes have ended when the block is left."""

    def __init__(self, name, limit):
        if (ROOT / "cgroup.controllers").exists():
            self.parent, self.limit_file = ROOT, "memory.max"
        else:
            self.parent, self.limit_file = ROOT / "memory", "memory.limit_in_bytes"
        self.path = self.parent / f"pgawait-{name}"
        self.limit = limit

    def __enter__(self):
        try:
            if self.parent == ROOT:
                (ROOT / "cgroup.subtree_control").write_text("+memory")
            self.path.mkdir(exist_ok=True)
            (self.path / self.limit_file).write_text(str(self.limit))
        except OSError as error:
            raise PgError(f"cannot limit memory by {self.path}: {error.strerror}; this takes root, and control groups "
                          f"with the controller \"memory\"") from error
        return self

    def __exit__(self, *_exception):
        """A group cannot be removed before the last of its processes is gone, which the end of a server does not await."""
        deadline = time.monotonic() + ENDED_WITHIN_S
        while True:
            try:
                self.path.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def enter(self):
        """Move the calling process into the group; those it starts are in it as well."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))
