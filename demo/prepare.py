"""The data directory of the demo: one template database per input, loaded and indexed, never changed afterwards.

It is kept in build/demo/data between runs. Each run makes two copies of a template, one to load with awaiting off
and one with awaiting on, so that both begin as the same bytes and grow by the same rows.
"""

import concurrent.futures
import contextlib
import hashlib
import shutil

import inputs
import pglib
from pglib import Cluster, PgError

DATA = inputs.WORK / "data"
STAMP = inputs.WORK / "data.recipe"     # of what the data directory was made; absent while it is incomplete
SIDES = ("off", "on")
NEEDED_BYTES = 10_000_000_000

# Building needs no durability step by step (the end of it is a checkpoint), and no log of what can be built again.
BUILD_SETTINGS = {
    "shared_buffers": "512MB", "wal_level": "minimal", "max_wal_senders": 0, "max_wal_size": "8GB",
    "checkpoint_timeout": "1d", "autovacuum": "off", "maintenance_work_mem": "512MB", "fsync": "off",
    "max_parallel_maintenance_workers": 0, "timezone": "UTC",
}


def prepare(install, progress):
    """Fetch the inputs and build the template databases, unless an earlier run left them."""
    for new in inputs.INPUTS:
        inputs.fetch(new, progress)
    Cluster(install, DATA).stop("immediate")    # of a run that was killed outright
    if STAMP.exists() and STAMP.read_text() == recipe(install):
        progress.note("the tables of an earlier run are used again")
        return

    STAMP.unlink(missing_ok=True)
    pglib.remove(DATA)
    free = shutil.disk_usage(inputs.WORK).free
    if free < NEEDED_BYTES:
        raise PgError(f"the demo needs {NEEDED_BYTES / 1e9:.0f} GB in {inputs.WORK}, "
                      f"where only {free / 1e9:.1f} GB are free")
    with progress.step("creating a private data directory"):
        cluster = Cluster(install, DATA, BUILD_SETTINGS).initdb("--no-sync")
    with cluster:
        for new in inputs.INPUTS:
            if not new.real:
                inputs.invent(new, cluster.session(), progress)
            build_template(cluster, new, progress)
    with progress.step("writing everything to disk"):
        pglib.run_as_account([install.program("initdb"), "--sync-only", "-D", DATA])
    STAMP.write_text(recipe(install))


def recipe(install):
    parts = [install.version()]
    for new in inputs.INPUTS:
        parts += [new.create_sql, *(index.create_sql(new.name) for index in new.indexes)]
        parts += [parent.create_sql for parent in new.parents]
        parts += [f"{file.relative_to(inputs.WORK)} {file.stat().st_size}" for file in new.files("*")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() + "\n"


def build_template(cluster, new, progress):
    cluster.session().query(f"CREATE DATABASE {new.name}")
    session = cluster.session(new.name)
    with progress.step(f"loading the older rows of {new.name}"):
        files = new.files("base")
        # Rows frozen in the transaction that creates the table need neither WAL nor a later visit.
        session.query(f"BEGIN; {new.create_sql}")
        for number, file in enumerate(files):
            session.query(f"COPY {new.name} FROM {new.source_sql(file, ', FREEZE')}")
            progress.update(f"{(number + 1) / len(files):.0%}")
        session.query("COMMIT")
    with progress.step(f"creating its {len(new.indexes)} indexes"):
        left = list(new.indexes)

        def create_indexes():
            worker = cluster.session(new.name)
            with contextlib.suppress(IndexError):
                while True:
                    worker.query(left.pop().create_sql(new.name))

        in_parallel(cluster, [create_indexes] * 2)
        session.query("VACUUM ANALYZE")
    for parent in new.parents:
        with progress.step(f"loading {parent.name}"):
            file, = new.files(parent.name)
            session.query(f"BEGIN; {parent.create_sql}; COPY {parent.name} FROM {new.source_sql(file, ', FREEZE')}; COMMIT; "
                          f"VACUUM ANALYZE {parent.name}")
    session.close()


def copy_template(cluster, new):
    """Make the databases of both sides, equal to the last byte of every table and index file."""
    drop_copies(cluster, new)
    session = cluster.session()
    for side in SIDES:
        database = f"{new.name}_{side}"
        session.query(f"CREATE DATABASE {database} TEMPLATE {new.name} STRATEGY file_copy")
        # Here and not in the template, which outlives the build that made it.
        cluster.session(database).query("CREATE EXTENSION amcheck; CREATE EXTENSION pg_buffercache; "
                                        "CREATE EXTENSION aio")
    session.close()


def drop_copies(cluster, new):
    session = cluster.session()
    for side in SIDES:
        session.query(f"DROP DATABASE IF EXISTS {new.name}_{side}")
    session.close()


def in_parallel(cluster, jobs):
    """Call functions in threads and return their results; a failure or Ctrl-C stops the server to end the others."""
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            cluster.stop("immediate")
            raise
        return [future.result() for future in futures]
