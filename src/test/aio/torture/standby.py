"""Rounds of copies: a standby that is promoted in the middle of a load, and a backup that is taken during one.

The standby may be killed while it follows, and the old primary when it has been left behind: pg_rewind recovers it then.

A copy has a prefix of what the primary has done.  So each client's transactions are there up to some point, all that
ended before the end of that prefix among them, whole or not at all; and then the copy is checked like any server,
against a memory of just these.

After pg_rewind the old primary follows the promoted standby; it is promoted in turn, and the caller checks it, too.
"""
import random

from checker import Checker
from clients import Load
from cluster import Cluster, pglib, wait_until
from logs import complaints, damaged
from pages import Pages


class Copy(Cluster):
    """A server beside the primary, in the directory of the epoch."""

    def __init__(self, rounds, name):
        data = rounds.directory / 'epoch' / name
        super().__init__(rounds.cluster.install, data, data.with_name(f'{name}.log'))


def run(rounds, plan, load, result):
    """A round of this kind; returns whether unlogged tables of the server that is in rounds now are empty."""
    rounds.memory.history = True
    try:
        return {'standby': promote, 'backup': back_up}[plan.fault](rounds, plan, load, result)
    finally:
        load.stop()
        rounds.memory.settle_history()


def promote(rounds, plan, load, result):
    primary, standby = rounds.cluster, Copy(rounds, 'standby')
    rng = random.Random(f'{rounds.options.seed} standby {plan.round}')
    kill_standby, kill_primary = rng.random() < 0.5, rng.random() < 0.5
    rounds.report.crashes += kill_standby or kill_primary
    try:
        load.start()
        load.wait_for(plan.statements // 4)
        base_backup(primary, standby)
        follow(standby, primary, plan)
        if kill_standby:
            load.wait_for(plan.statements // 2)
            standby.kill()
            follow(standby, primary, plan)
        load.wait_for(plan.statements)
        program(standby, 'pg_ctl', '-s', '-W', 'promote')
        load.wait_for(load.count + 30)
        # a standby that is slow does not notice that before it has nothing to replay
        load.stop()
        end_recovery(standby)
        place = switch_point(standby)
        memory = rounds.memory.fork()
        rounds.memory.settle_history()
        rounds.check(plan, result, crashed=False, deep=False)
        if kill_primary:
            primary.kill()
            primary.wait_for_orphans()
        else:
            primary.stop()
        check_copy(rounds, plan, standby, memory, result, 'the promoted standby',
                   lambda transaction: transaction.lsn is not None and transaction.lsn <= place, kill_standby)
        memory.history = False
        rounds.memory = memory
        rewind(rounds, plan, primary, standby, result)
        return True
    finally:
        standby.close()
        pglib.remove(standby.data)


def rewind(rounds, plan, primary, standby, result):
    """The old primary gets what the new one has done since, and takes its place."""
    load = Load(standby, rounds.schema, rounds.memory, f'{rounds.options.seed} rewind {plan.round}', plan.epoch.clients,
                rounds.options.statements, streaming=True)
    load.start()
    load.wait_for(60)
    load.stop()
    result.complaints += load.complaints
    program(primary, 'pg_rewind', '--source-server', f'host={standby.socket_dir} user=postgres dbname=postgres')
    follow(primary, standby, plan)
    place = standby.query('SELECT pg_current_wal_flush_lsn()')[0][0]
    wait_until(lambda: primary.query(f"SELECT pg_last_wal_replay_lsn() >= '{place}'")[0][0],
               'the old primary catches up with the new one')
    pages = Pages(standby)
    standby.stop()
    result.complaints += pages.check()
    program(primary, 'pg_ctl', '-s', '-W', 'promote')
    end_recovery(primary)


def back_up(rounds, plan, load, result):
    copy = Copy(rounds, 'backup')
    try:
        load.start()
        load.wait_for(plan.statements // 3)
        before = durable(rounds.memory)
        base_backup(rounds.cluster, copy)
        load.wait_for(plan.statements)
        load.stop()
        memory = rounds.memory.fork()
        pglib.run_as_account([copy.install.program('pg_verifybackup'), '--quiet', copy.data])
        copy.start(plan.settings)
        check_copy(rounds, plan, copy, memory, result, 'the backup',
                   lambda transaction: (transaction.client, transaction.seq) in before)
        pages = Pages(copy)
        copy.stop()
        result.complaints += pages.check()
        return False
    finally:
        copy.close()
        pglib.remove(copy.data)


def durable(memory):
    """The transactions that have been acknowledged since clients began: {(client, seq)}."""
    return {(transaction.client, transaction.seq) for tail in list(memory.tails.values())
            for transaction in list(tail) if transaction.fate == 'durable'}


def base_backup(primary, copy):
    command = [copy.install.program('pg_basebackup'), '-D', copy.data, '--checkpoint=fast', '--no-sync',
               '--wal-method=stream']
    try:
        pglib.run_as_account(command, env=primary.connection())
    except pglib.PgError as error:
        bad = damaged(str(error))
        if not bad or bad - Pages(primary).nobodys(bad):
            raise
        # of files that belong to nobody, which power losses may have torn
        pglib.remove(copy.data)
        pglib.run_as_account([*command, '--no-verify-checksums'], env=primary.connection())


def follow(standby, primary, plan):
    """Start a server as a standby, and wait until it streams and can be asked."""
    signal = standby.data / 'standby.signal'
    signal.touch()
    pglib.give_to_account(signal)
    conninfo = f'host={primary.socket_dir} port={primary.port} user=postgres'
    standby.start({**plan.settings, 'primary_conninfo': conninfo})
    wait_until(lambda: primary.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"),
               'the standby streams')
    # pg_ctl does not wait until its state is consistent
    wait_until(standby.accepts, 'the standby accepts connections')


def program(cluster, name, *arguments):
    pglib.run_as_account([cluster.install.program(name), '-D', cluster.data, *arguments])


def end_recovery(standby):
    wait_until(lambda: not standby.query('SELECT pg_is_in_recovery()')[0][0], 'promotion')


def switch_point(standby):
    """Where in the WAL the promoted standby has left the old timeline."""
    history = (standby.data / 'pg_wal' / '00000002.history').read_text()
    high, low = history.split()[1].split('/')
    return (int(high, 16) << 32) + int(low, 16)


def check_copy(rounds, plan, copy, memory, result, name, must, killed=False):
    rng = random.Random(f'{rounds.options.seed} copy {plan.round}')
    found = Checker(copy, rounds.schema, memory, rng, must=must).check(crashed=True)
    found.complaints += complaints(copy.read_log(), killed, streaming=True)
    found.complaints = [f'{name}: {complaint}' for complaint in found.complaints]
    # the rows are those of the primary, which are counted there
    found.fresh = 0
    result.add(found)
