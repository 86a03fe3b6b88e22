"""What a server's log must not say, given what was done to it.

Lines of client sessions about statements that fail are left out: clients judge their SQLSTATEs.
"""
import re

LINE = re.compile(r'\d{4}-\S+ \S+ \S+ \[(\d+)\] ([^|]*)\|(\w{5})\|(\w+):  (.*)')
# what goes on in the kernel and in the disk
DISK = re.compile(r'Input/output error|No space left on device|read (?:only )?\d+ of \d+|wrote only \d+ of \d+ bytes|'
                  # recovery cannot read it, or gets less than it has asked for
                  r'could not locate a valid checkpoint record')
HARMLESS = re.compile(
    r'could not (receive data from|send data to|accept) |terminating connection|connection to client lost|'
    r'there is no transaction in progress|cannot reindex |skipping |canceling |'
    r'the database system is |using stale statistics|database system was interrupted|could not obtain lock|'
    r'postmaster exited during|unexpected EOF on client|'
    r'could not (create|initialize) .* with huge pages|worker took too long to start|'
    # the postmaster was killed while it removed them
    r'could not remove shared memory segment .* No such file|'
    # the startup process asks for a restartpoint before there is a checkpointer
    r'could not notify checkpoint: checkpointer is not running|'
    # it sends a base backup, and the postmaster has been killed
    r'aborting backup due to backend exiting|'
    # see Cluster.start()
    r'could not create file .* File exists|'
    # an index whose summary was asked for has been dropped
    r'could not open relation with OID|'
    # a checkpoint that did not end has written it; it is made again from the WAL
    r'removing future two-phase state file|'
    # what is not in the WAL may be torn, and can be done without
    r'invalid page in block \d+ of relation "[^"]*_(fsm|vm)"; zeroing')
# upstream's: files that cannot be dropped make an abort fail, which is begun again, and trips over itself
TWICE = re.compile('Abort(Sub)?Transaction while in ABORT state$')
# upstream's: who cannot drop files after the commit is in the WAL, since the disk fails, gives up
COMMITTED = re.compile(r'cannot abort transaction \d+, it was already committed$')
# upstream's: without a postmaster, a leader of parallel workers that aborts raises a new error in the abort, and ends in
# a transaction
LEADER = r'\[%s\] [^|]*\|57P01\|FATAL:  postmaster exited during a parallel transaction'
LEADER_TRAPS = 'TRAP: failed Assert("!IsTransactionOrTransactionBlock()")'
# upstream's: see Cluster.make_way()
FUTURE = re.compile(r'startup\|01000\|WARNING:  removing future two-phase state file for transaction (\d+)\n'
                    r'(TRAP: failed Assert\("TransactionIdPrecedesOrEquals\(xid, .*)')
# VACUUM notes in the visibility map that a page which it need not change is frozen
UNCHANGED = re.compile(r'(TRAP: failed Assert\("BufferIsExclusiveLocked\(buffer\) && BufferIsDirty\(buffer\)"\).*)\n'
                       r'.*ExceptionalCondition.*\n.*XLogRegisterBuffer.*\n.*log_heap_visible')
# upstream's: a name that stat() cannot look up, whatever the error, is taken for one that is free
FREE_NAME = re.compile(r'TRAP: failed Assert\("access\(path, F_OK\) != 0 && errno == ENOENT"\), File: "[^"]*(xlog|timeline)\.c"')
# what no fault of a disk explains
NEVER = re.compile(r'leak|stuck|still (referenced|active|pinned)|refcount|was not closed|was terminated by signal|'
                   r'problem in alloc set|detected write past|bogus|conflict detected on relation')
STREAMING = re.compile(r'WAL stream|streaming|the primary|replication|timeline|WAL receiver|walreceiver|'
                       # pg_basebackup fails, then
                       r'checksum verification fail|'
                       # of a file that ends in the middle of a page, as power was lost
                       r'could not verify checksum in file .* read buffer size|'
                       # of a free space map that was copied after what is being replayed
                       r'xlog min recovery request|'
                       # of what ended after a shutdown that is replayed again: the commit log is newer than that
                       r'removing stale two-phase state from memory')

# what a subscription's workers say if they lose the publisher, or one another
SUBSCRIBING = re.compile(r'could not connect to the publisher|could not (receive|send) data (from|to) WAL stream|'
                         r'could not start WAL streaming|could not send end-of-streaming message|could not receive .* from the publisher|'
                         r'replication slot "sub" is active for PID|lost connection to the logical replication|'
                         r'could not receive database system identifier|'
                         # the next worker starts before the last one, which is ending, has let go of it
                         r'replication origin with ID \d+ is already active|'
                         r'logical replication parallel apply worker exited due to error')


def complaints(text, killed=False, disk_fails=False, streaming=False, subscriber=False, backups=False):
    """Lines of a log that nothing explains.

    `killed`: processes were; `disk_fails`: it has failed, or was full; `streaming`: WAL is sent or received;
    `subscriber`: it is the log of one; `backups`: who takes base backups is a client that judges what fails.
    """
    explains = SUBSCRIBING.search if subscriber else STREAMING.search if streaming else lambda message: False
    clients = {'client backend', 'parallel worker', *(['walsender'] if backups else [])}
    panicked = False
    for line in text.splitlines():
        match = LINE.match(line)
        if not match:
            trap = re.match(r'TRAP: .*PID: (\d+)', line)
            if trap and disk_fails and re.search(rf'\[{trap[1]}\] client backend\|01000\|WARNING:  {TWICE.pattern}', text, re.M):
                panicked = True
            elif trap and disk_fails and FREE_NAME.match(line):
                panicked = True
            elif trap and killed and line.startswith(LEADER_TRAPS) and re.search(LEADER % trap[1], text):
                continue
            elif trap and line in [*(trap for _, trap in FUTURE.findall(text)), *UNCHANGED.findall(text)]:
                panicked = True
            elif trap or re.search('Sanitizer|stack smashing|runtime error: ', line):
                yield line
            continue
        pid, process, code, level, message = match.groups()
        explained = disk_fails and (DISK.search(message) or code in ('58030', '53100') or COMMITTED.match(message) and
                                    re.search(rf'\[{pid}\] [^|]*\|(58030|53100)\|ERROR:', text))
        if level == 'PANIC':
            panicked = panicked or explained
        if TWICE.match(message) and killed and re.search(LEADER % pid, text):
            continue
        if HARMLESS.search(message) or explained or explains(message):
            continue
        if level == 'LOG':
            signal = re.search(r'was terminated by signal (\d+)', message)
            bad = signal and not (signal[1] == '9' and (killed or panicked) or signal[1] == '6' and panicked) or \
                not signal and (NEVER.search(message) or re.search(r'could not (?!find)', message))
        elif level == 'ERROR':
            bad = process not in clients and not code.startswith('57')
        elif level in ('WARNING', 'FATAL'):
            bad = not code.startswith('57')
        else:
            bad = level == 'PANIC'
        # whoever cannot read or write gives up in many ways
        if bad and not (disk_fails and level in ('LOG', 'FATAL', 'WARNING') and not NEVER.search(message)):
            yield line


def damaged(text):
    """The files of which a program says that their checksums are wrong, without numbers of segments and forks."""
    return set(re.findall(r'checksum verification failed in file ".*?((?:base|global)/[0-9/]+)', text))


def startup_failed(text):
    """Has recovery from a crash of a child begun, and ended with an error that is not ours, as far as the log goes?"""
    begin = text.rfind('reinitializing')
    if begin < 0 or 'ready to accept' in text[begin:]:
        return False
    return bool(FUTURE.search(text[begin:])) or any(
        DISK.search(line) for line in re.findall(r'\] startup\|\w+\|(?:PANIC|FATAL):.*', text[begin:]))


def stopped(text):
    """Does the log tell of a shutdown, which ends connections?"""
    return 'received fast shutdown request' in text or 'received smart shutdown request' in text


def crashed(text):
    """Does the log tell of a recovery, which empties unlogged tables?"""
    return 'automatic recovery in progress' in text or 'reinitializing' in text
