"""The pages of a server that has been shut down: are their checksums right?

What a transaction has left that had no time to abort belongs to nobody: power losses may have torn it, and nobody reads
it.  It is known by being a file of the database in which clients work, and of none of its relations.  All else counts.
"""
import os
import re
import subprocess

from cluster import pglib
from logs import damaged

PAGE = 8192
FILE = re.compile(r'(\d+)(_(fsm|vm|init))?(\.\d+)?')


class Pages:
    """Made while the server runs, as it knows whose files there are."""
    checked = 0     # clusters whose checksums were looked at

    def __init__(self, cluster):
        self.cluster = cluster
        self.known = cluster.files()
        self.checksums, oid = cluster.query("SELECT current_setting('data_checksums'), oid FROM pg_database "
                                            "WHERE datname = current_database()")[0]
        self.own = f'base/{oid}/'

    def nobodys(self, files):
        return {file for file in files if file.startswith(self.own) and file not in self.known}

    def check(self):
        """When it is shut down: yields complaints."""
        if self.checksums != 'on':
            return
        Pages.checked += 1
        cut = self.cut_off()
        try:
            done = subprocess.run([pglib.AS_ACCOUNT, self.cluster.install.program('pg_checksums'), '--check',
                                   '-D', self.cluster.data], cwd='/', text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        finally:
            for path, size, end in cut:
                with open(path, 'r+b') as file:
                    file.seek(size)
                    file.write(end)
        for line in done.stderr.splitlines():
            # a wrong page is no reason for it to stop, but whatever else it says is
            bad = damaged(line)
            if not bad or bad - self.nobodys(bad):
                yield line
        if done.returncode != 0 and not done.stderr:
            yield f'pg_checksums ends with status {done.returncode}'

    def cut_off(self):
        """Leave whole pages only, as the server takes a part of one for none; what was cut off: [(path, size, end)]."""
        cut = []
        for path in [*self.cluster.data.glob('base/*/*'), *self.cluster.data.glob('global/*')]:
            size = path.stat().st_size
            if FILE.fullmatch(path.name) and size % PAGE:
                with open(path, 'r+b') as file:
                    file.seek(size // PAGE * PAGE)
                    cut.append((path, size // PAGE * PAGE, file.read()))
                os.truncate(path, size // PAGE * PAGE)
        return cut
