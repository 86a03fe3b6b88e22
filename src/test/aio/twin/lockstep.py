"""Play a scenario step by step on two servers, and say what differs.

After each step a server is given time until it has settled: every session has answered, or waits for a lock of another
session, or for its client.  Then what was said, who waits for whom, and which locks of users' relations are held must be
the same.  At the end the same is asked about what is left: rows by the heap and by each index, amcheck, statistics.

Nothing here sleeps in order to let something happen: what is waited for is asked for.
"""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import re
import struct
import termios
import time

import elsewhere
import known
import talk
import wire

LIMIT = 120         # seconds after which something hangs
PAUSE = 0.004       # seconds of silence before the server is asked why it is silent
SCHEMA = 'twin'

WAITING = """
SELECT a.pid, coalesce(a.wait_event, ''),
       pg_isolation_test_session_is_blocked(a.pid, '{%s}') OR pg_blocking_pids(a.pid) <> '{}', pg_blocking_pids(a.pid)::text,
       ARRAY(SELECT f.pid FROM pg_stat_activity f WHERE f.pid = ANY (pg_blocking_pids(a.pid)) AND
             f.application_name = 'postgres_fdw' AND f.state = 'idle in transaction')::text
FROM pg_stat_activity a WHERE a.pid IN (%s)"""

# how large a part of a relation serializable transactions lock is a matter of how many pages it has
LOCKS = f"""
SELECT DISTINCT l.pid, c.relname, c.relkind::text, l.mode, l.granted
FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE l.pid IN (%s) AND l.locktype IN ('relation', 'page', 'tuple') AND n.nspname = '{SCHEMA}'
ORDER BY 1, 2, 3, 4, 5"""

# pg_relation_size() would wait for locks
SIZES = f"""
SELECT c.relname, (pg_stat_file(pg_relation_filepath(c.oid), true)).size FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{SCHEMA}' AND c.relkind IN ('r', 'i', 't', 'm') ORDER BY 1"""

PAGES = f"""
SELECT coalesce(sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
                    + coalesce(toast_blks_read + toast_blks_hit + tidx_blks_read + tidx_blks_hit, 0)), 0)
FROM pg_statio_user_tables WHERE schemaname = '{SCHEMA}'"""
# how many pages more ours may look for, of those that PostgreSQL does, and in any case; a page is looked for twice
# if its read could be awaited, as by an insert into a hash index, which is no work in vain
MORE, AT_LEAST = 0.5, 100

PLACE = re.compile(r'\(\d+,\d+\)')

ACTIVITY = """
SELECT a.backend_type, a.state, a.wait_event, pg_blocking_pids(a.pid), left(a.query, 100),
       CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() END, CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END
FROM pg_stat_activity a ORDER BY a.pid"""

CONFLICTS = """
SELECT apply_error_count, sync_error_count, confl_insert_exists, confl_update_origin_differs, confl_update_exists,
       confl_update_missing, confl_delete_origin_differs, confl_delete_missing, confl_multiple_unique_conflicts
FROM pg_stat_subscription_stats"""


@dataclasses.dataclass
class Step:
    session: int
    action: str                 # a method of talk.Session, or one of those of Side; idle: the rest only if nobody waits
    arguments: tuple = ()
    ordered: bool = True        # may a client rely on the order of rows?

    def text(self):
        words = ', '.join(repr(argument) if len(repr(argument)) < 2000 else repr(argument)[:2000] + '...'
                          for argument in self.arguments)
        return f's{self.session}.{self.action}({words})'


@dataclasses.dataclass
class Scenario:
    setup: list                                     # statements of a superuser
    steps: list
    sessions: int = 1
    checks: list = dataclasses.field(default_factory=list)      # queries about what is left, also with an index alone
    settings: dict = dataclasses.field(default_factory=dict)    # of ours only
    values: dict = dataclasses.field(default_factory=dict)
    further: list = dataclasses.field(default_factory=list)     # values of the statements after the one in the middle
    impatient: set = dataclasses.field(default_factory=set)     # sessions that do not wait for locks for long
    publish: list = dataclasses.field(default_factory=list)     # statements that publish t to a subscriber, if there is to be one
    subscribe: list = dataclasses.field(default_factory=list)   # what is different there before it subscribes
    options: str = ''                                           # of the subscription
    standby: list = dataclasses.field(default_factory=list)     # queries about what is left on a standby


@dataclasses.dataclass
class Difference:
    where: str
    what: str
    stock: object
    ours: object

    def text(self):
        stock, ours = first_difference(self.stock, self.ours)
        return f'{self.where}: {self.what}\n  stock: {stock}\n  ours:  {ours}'


class Hangs(Exception):
    """A side does not settle."""


class Side:
    """One of the two servers, with the sessions of a scenario."""

    def __init__(self, cluster, ours):
        self.cluster, self.ours = cluster, ours
        self.connect()
        self.subscriber, self.standby = elsewhere.Subscriber(cluster, ours, SCHEMA), None
        self.sessions, self.edges = [], []
        self.expecting, self.leaving = set(), set()     # numbers of sessions: paused; gone, but for their processes

    def crash(self):
        """Kill the server, and have it recover."""
        self.cluster.kill()
        self.subscriber.control = None
        for session in self.sessions:
            if not session.closed:
                # what it says at last is a matter of who dies first
                session.close()
                session.heard, session.outstanding = [('closed',)], 0
        self.cluster.start()
        self.connect()

    def connect(self):
        """Connections that ask; what is asked in the middle of a statement must not keep dead rows from being removed."""
        self.control = self.cluster.connect('-c search_path=' + SCHEMA)
        self.watch = wire.Connection(self.path(), LIMIT, database='template1')

    def path(self):
        return f'{self.cluster.socket_dir}/.s.PGSQL.{self.cluster.port}'

    def begin(self, scenario):
        self.impatient, self.rows = scenario.impatient, {}
        # what is sent by COPY, while nobody has locked anything yet
        for query in {step.arguments[0] for step in scenario.steps if step.action in ('copy_rows', 'copy_all')}:
            try:
                self.rows[query] = self.control.execute(f'COPY ({query}) TO STDOUT').data
            except wire.Refused:
                self.rows[query] = []
        for number in range(scenario.sessions):
            # who waits last notices a deadlock: all others have looked for one by then
            options = {'search_path': SCHEMA, 'deadlock_timeout': '1ms'}
            if self.ours:
                options.update(scenario.settings)
            self.sessions.append(talk.Session(self.path(), ' '.join(
                f'-c {name}={value}' for name, value in options.items())))

    def do(self, step):
        session = self.sessions[step.session]
        if step.action == 'crash':
            self.crash()
            return
        if session.closed:
            return
        if step.action == 'portal':
            text, rows = step.arguments
            session.prepare(text)
            session.execute(rows)
            session.flush()
            self.expecting.add(step.session)
        elif step.action == 'more':
            session.execute(*step.arguments)
            session.flush()
            self.expecting.add(step.session)
        elif step.action == 'copy_data':
            if session.copying:
                session.copy_data(*step.arguments)
                self.expecting.add(step.session)
        elif step.action == 'copy_rows':
            if session.copying:
                self.copy_rows(session, *step.arguments)
                self.expecting.add(step.session)
        elif step.action == 'copy_all':
            if session.copying:
                query, bad = step.arguments
                self.copy_rows(session, query, 0, 1, bad)
                session.copy_done()
        elif step.action == 'cancel':
            if session.busy():
                session.cancel()
        elif step.action == 'leave':
            session.leave()
            self.leaving.add(step.session)
        elif step.action in ('copy_done', 'copy_failed'):
            if session.copying:
                getattr(session, step.action)()
        elif step.action == 'evict':
            self.control.execute('SELECT FROM public.pg_buffercache_evict_all()')
        elif step.action == 'terminate':
            self.control.execute(f'SELECT pg_terminate_backend({session.pid})')
            self.wait_for_end(session)
        else:
            getattr(session, step.action)(*step.arguments)

    def copy_rows(self, session, query, part, parts, bad):
        """Send a part of the rows of a query, or of these and a line that is none."""
        rows = self.rows[query]
        low, high = len(rows) * part // parts, len(rows) * (part + 1) // parts
        chosen = rows[low:high]
        if bad and part == parts - 1:
            chosen = [*chosen[:len(chosen) // 2], b'this is\tno row\n', *chosen[len(chosen) // 2:]]
        session.copy_data(b''.join(chosen).decode())

    def wait_for_end(self, session):
        """Until the process of a session is gone."""
        deadline = time.monotonic() + LIMIT
        while not session.closed or self.control.rows(f'SELECT FROM pg_stat_activity WHERE pid = {session.pid}'):
            session.listen()
            if time.monotonic() > deadline:
                raise Hangs('a session does not end that was told to')

    def listen(self):
        for session in self.sessions:
            session.listen()

    def pending(self):
        """Sessions that have not answered."""
        return [number for number, session in enumerate(self.sessions)
                if session.busy() or number in self.expecting and not session.closed or number in self.leaving]

    def has_settled(self):
        """Whether all that have not answered wait for a lock, or for us; only for who has just listened."""
        pending = self.pending()
        self.edges = []
        if not pending:
            self.expecting.clear()
            return True
        number_of = {session.pid: number for number, session in enumerate(self.sessions) if session.pid}
        names = {**number_of, 0: 'a prepared transaction'}
        pids = ','.join(str(pid) for pid in number_of)
        if len(number_of) < len(self.sessions):
            return False
        # before the question: what has been taken since may not have changed the answer yet
        taken = {number for number in pending if not self.sessions[number].unsent and not unread(self.sessions[number])}
        asked = ','.join(str(self.sessions[number].pid) for number in pending)
        waiting = {pid: rest for pid, *rest in self.watch.rows(WAITING % (pids, asked))}
        settled, edges = True, []
        for number in pending:
            if self.sessions[number].pid not in waiting:
                self.leaving.discard(number)
                settled = False
                continue
            event, blocked, by, foreign = waiting[self.sessions[number].pid]
            if blocked and number in self.impatient:
                settled = False
            elif blocked:
                # what a session has begun at a foreign server ends with the session's own transaction
                known_as = {**names, **dict.fromkeys(pids_in(foreign), 'a foreign transaction')}
                edges.append((number, tuple(sorted((known_as.get(pid, 'other') for pid in pids_in(by)), key=str))))
            elif event != 'ClientRead' or number not in taken or number in self.leaving:
                # who has no client any more is about to notice
                settled = False
        # others are workers that replicate, and end their transactions
        if has_circle(edges) or any('other' in by for _, by in edges):
            settled = False
        if settled:
            # what was said before it began to wait
            before = [len(session.heard) for session in self.sessions]
            self.listen()
            if self.pending() != pending or before != [len(session.heard) for session in self.sessions]:
                return False
            self.edges = edges
            self.expecting -= {number for number in pending if number not in [n for n, _ in edges]}
        return settled

    def ask_for_locks(self, also_idle):
        """Whose locks there may be, {process id: number}; the answer comes to locks()."""
        number_of = {session.pid: number for number, session in enumerate(self.sessions)
                     if session.pid and not session.closed and
                     (also_idle or session.busy() or session.status != 'I' or number in self.expecting)}
        if number_of:
            self.control.send(LOCKS % ','.join(str(pid) for pid in number_of))
        return number_of

    def locks(self, number_of):
        rows = self.control.answer().rows if number_of else []
        locks = [(number_of[pid], *rest) for pid, *rest in rows]
        # who has the stronger of these keeps out all that the weaker does
        return [lock for lock in locks if lock[3] != 'RowShareLock' or not lock[4] or
                (*lock[:3], 'RowExclusiveLock', True) not in locks]

    def end(self):
        for session in self.sessions:
            session.close()
        pids = ','.join(str(session.pid) for session in self.sessions if session.pid)
        # what they have asked foreign servers for ends with them
        theirs = f"pid IN ({pids}) OR application_name = 'postgres_fdw'"
        self.sessions, self.expecting, self.leaving = [], set(), set()
        deadline = time.monotonic() + LIMIT
        while pids and self.control.rows(f'SELECT count(*) FROM pg_stat_activity WHERE {theirs}') != [(0,)]:
            self.control.rows(f'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN ({pids})')
            if time.monotonic() > deadline:
                raise Hangs('a session does not end')
        for gid, in self.control.rows('SELECT gid FROM pg_prepared_xacts'):
            self.control.execute(f"ROLLBACK PREPARED '{gid}'")
        # what has been counted for these is ours to report
        self.control.execute('SELECT pg_stat_force_next_flush()')


def pids_in(array):
    return [int(word) for word in array.strip('{}').split(',') if word]


def unread(session):
    """Bytes that the server has not taken yet."""
    return struct.unpack('i', fcntl.ioctl(session.socket, termios.TIOCOUTQ, b'\0' * 4))[0] if not session.closed else 0


def has_circle(edges):
    waits = {number: by for number, by in edges}

    def reaches(number, goal, seen):
        return any(other == goal or other not in seen and reaches(other, goal, seen | {other})
                   for other in waits.get(number, ()))
    return any(reaches(number, number, {number}) for number in waits)


class Lockstep:
    """Two sides.  play() returns the differences."""

    def __init__(self, stock, ours):
        self.sides = [Side(stock, False), Side(ours, True)]
        self.trace = []         # whatever stock has said, for who wants to know
        self.failed = False     # has a statement of the scenario?

    def play(self, scenario):
        differences = []
        self.control(differences, 'setup', [f'DROP SCHEMA IF EXISTS {SCHEMA} CASCADE', f'CREATE SCHEMA {SCHEMA}',
                                            f'GRANT ALL ON SCHEMA {SCHEMA} TO PUBLIC', *scenario.setup])
        if scenario.publish:
            self.subscribe(differences, scenario)
        before, self.failed = self.pages(), False
        for side in self.sides:
            side.begin(scenario)
        try:
            self.settle('connect')
            self.compare(differences, 'connect', True)
            for number, step in enumerate(scenario.steps):
                where = f'step {number}: {step.text()}'
                if step.action == 'idle':
                    if any(side.pending() for side in self.sides):
                        break
                    continue
                self.do(step)
                self.settle(where)
                self.compare(differences, where, step.ordered)
                differences = [difference for difference in differences if not known.is_known(difference)]
                if differences:
                    break
            else:
                for side in self.sides:
                    for session in side.sessions:
                        if not session.closed and not session.busy() and session.status == 'I':
                            session.query('SELECT pg_stat_force_next_flush()')
                self.settle('flush')
                self.compare_locks(differences, 'flush', also_idle=True)
        finally:
            for side in self.sides:
                side.end()
        # no statistics survive a crash, rows may have been inserted in vain before an error, and what is forced is no measure
        if not (any(step.action == 'crash' for step in scenario.steps) or self.failed or 'aio.debug_lookups' in scenario.settings):
            self.compare_pages(differences, before)
        if not differences:
            self.control(differences, 'what is left', scenario.checks)
        if not differences and scenario.standby:
            self.look_at_standby(differences, scenario)
        if scenario.publish:
            self.look_at_subscriber(differences, scenario)
        return [difference for difference in differences if not known.is_known(difference)]

    def do(self, step):
        if step.action != 'crash':
            for side in self.sides:
                side.do(step)
            return
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(lambda side: side.do(step), self.sides))

    def pages(self):
        """How often each server has looked for pages of users' tables."""
        return [int(side.control.rows(PAGES)[0][0]) for side in self.sides]

    def compare_pages(self, differences, before):
        stock, ours = (now - then for now, then in zip(self.pages(), before))
        self.trace.append(('pages', (stock, ours)))
        # those of a table that has been dropped are not counted any more
        if ours > max(stock, 0) * (1 + MORE) + AT_LEAST:
            differences.append(Difference('what is left', 'pages', [stock], [ours]))

    def subscribe(self, differences, scenario):
        self.control(differences, 'publish', ['DROP PUBLICATION IF EXISTS twin', 'CREATE TABLE marker (n int)',
                                              *scenario.publish, 'CREATE PUBLICATION twin FOR TABLE t, marker'])
        subscribers = [side.subscriber for side in self.sides]
        for subscriber in subscribers:
            subscriber.connect()
        self.control(differences, 'subscriber', [f'DROP SCHEMA IF EXISTS {SCHEMA} CASCADE', f'CREATE SCHEMA {SCHEMA}',
                                                 f'GRANT ALL ON SCHEMA {SCHEMA} TO PUBLIC', *scenario.setup,
                                                 'CREATE TABLE marker (n int)', *scenario.subscribe], subscribers)
        for subscriber in subscribers:
            subscriber.subscribe(scenario.options, scenario.settings)

    def look_at_subscriber(self, differences, scenario):
        subscribers = [side.subscriber for side in self.sides]
        try:
            if differences:
                return
            self.control(differences, 'publisher', ['INSERT INTO marker VALUES (1)'])
            for subscriber in subscribers:
                subscriber.catch_up(1)
            self.control(differences, 'on the subscriber', [*scenario.checks, CONFLICTS, 'SELECT subenabled FROM pg_subscription'],
                         subscribers)
            stock, ours = (subscriber.log() for subscriber in subscribers)
            self.trace.append(('what workers say', stock))
            if stock != ours:
                differences.append(Difference('on the subscriber', 'log', stock, ours))
        finally:
            for subscriber in subscribers:
                subscriber.unsubscribe()

    def look_at_standby(self, differences, scenario):
        for side in self.sides:
            side.standby = side.standby or elsewhere.Standby(side.cluster, side.cluster.settings)
            side.standby.catch_up(SCHEMA)
        self.control(differences, 'on the standby', scenario.standby, [side.standby for side in self.sides])

    def close(self):
        for side in self.sides:
            if side.standby:
                side.standby.close()

    def state(self):
        """What the servers and their standbys do, and have said last, as text; for who finds out why one hangs."""
        lines = []
        for cluster in (cluster for side in self.sides
                        for cluster in (side.cluster, *([side.standby.cluster] if side.standby else []))):
            lines.append(f'-- {cluster.data.name}')
            with contextlib.suppress(Exception):
                lines += map(str, cluster.query(ACTIVITY))
            lines.append(cluster.read_log()[-2000:])
        return '\n'.join(lines)

    def settle(self, where):
        deadline = time.monotonic() + LIMIT
        left = list(self.sides)
        for side in left:
            side.edges = []
        while left:
            for side in left:
                side.listen()
            # whoever has said all has settled, too
            left = [side for side in left if side.pending() or not side.has_settled()]
            if not left:
                break
            quiet = time.monotonic()
            talk.wait_for_any([session for side in left for session in side.sessions], PAUSE)
            if time.monotonic() - quiet < PAUSE * 0.9:
                continue
            for side in left:
                side.listen()
            left = [side for side in left if not side.has_settled()]
            if time.monotonic() > deadline:
                print(self.state(), flush=True)     # sessions are ended before anybody hears of it
                raise Hangs(f'{where}: ' + ' and '.join('ours' if side.ours else 'stock' for side in left))

    def compare(self, differences, where, ordered):
        heard = [[session.take() for session in side.sessions] for side in self.sides]
        self.trace.append((where, heard[0]))
        self.failed = self.failed or any(item[0] == 'error' for said in heard[0] for item in said)
        for number, (stock, ours) in enumerate(zip(*heard)):
            if self.failed:
                stock, ours = ([without_places(item) for item in said if item[0] != 'row' or 'EXPLAIN' not in where] for said in (stock, ours))
            if not ordered or self.failed:
                stock, ours = sorted_rows(stock), sorted_rows(ours)
            if stock != ours:
                differences.append(Difference(where, f'session {number} hears', stock, ours))
        stock, ours = (side.edges for side in self.sides)
        if stock != ours:
            differences.append(Difference(where, 'who waits for whom', stock, ours))
        self.compare_locks(differences, where)

    def compare_locks(self, differences, where, also_idle=False):
        """Without a transaction nobody is to have any, which is looked at once for all."""
        asked = [side.ask_for_locks(also_idle) for side in self.sides]
        stock, ours = (side.locks(numbers) for side, numbers in zip(self.sides, asked))
        if stock == ours:
            return
        # plans depend on sizes, and what serializable transactions have locked on plans
        alike = len({str(side.control.rows(SIZES)) for side in self.sides}) == 1
        differences.append(Difference(where, 'locks' if alike else 'locks, with files of other sizes',
                                      [lock for lock in stock if lock not in ours], [lock for lock in ours if lock not in stock]))

    def control(self, differences, where, statements, places=()):
        """Statements of a superuser, on both servers or at other places of each."""
        # both work at the same time, and do not wait for us between two statements
        places = [side.control for side in places or self.sides]
        for control in places:
            control.send(*statements)
        for statement in statements:
            answers = []
            for control in places:
                try:
                    result = control.answer()
                    answers.append((result.tag, result.rows))
                except wire.Refused as error:
                    answers.append(('refused', talk.plain(str(error))))
            self.trace.append((f'{where}: {statement}', answers[0]))
            if answers[0] != answers[1]:
                differences.append(Difference(f'{where}: {statement}', 'result',
                                              *(rows if isinstance(rows, list) else [rows] for _, rows in answers)))


# Rows after the one that fails may have been inserted by then, so that later ones are at other places, and plans of tables
# and indexes of another size may be other ones.

def without_places(item):
    return tuple('(place)' if isinstance(value, str) and PLACE.fullmatch(value) else value for value in item)


def sorted_rows(heard):
    """Rows that come one after the other, in some order."""
    result, rows = [], []
    for item in heard:
        if item[0] == 'row':
            rows.append(item)
            continue
        result += [*sorted(rows, key=repr), item]
        rows = []
    return result + sorted(rows, key=repr)


def first_difference(stock, ours):
    """What is left of two lists without their common beginning, shortened."""
    common = 0
    while common < min(len(stock), len(ours)) and stock[common] == ours[common]:
        common += 1
    return [f'(after {common} equal) ' + repr(part[common:common + 4])[:1500] + (' ...' if len(part) > common + 4 else '')
            for part in (list(stock), list(ours))]
