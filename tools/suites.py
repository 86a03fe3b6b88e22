"""What programs that run tests share: meson's tests of a build, run in passes, and the tally of all that was run."""
import collections
import itertools
import json
import os
import pathlib
import re
import subprocess
import textwrap
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
AS_ACCOUNT = ROOT / 'tools' / 'as-account'
PASSED = {'OK', 'EXPECTEDFAIL'}
SKIPPED = {'SKIP'}
# What is shown of the log of a test that failed: so many of the lines that say what is wrong, and so many at its end.
SAID_LINES, LAST_LINES = 40, 20
SLOWEST = 10
# `[08:16:03.048](0.509s) not ok 27 - name`, and the comments up to the next result: `[08:16:03.048](0.000s) #   Failed test
# 'name'`, `#          got: '1'`, `# what the test says of it`.  Those before a failure are what sessions have said.
STAMP = r'(\[[\d:.]+\]\([\d.]+s\) )?'
RESULT, COMMENT = re.compile(STAMP + ' *(not )?ok '), re.compile(STAMP + ' *# (?!Running: )')

Test = collections.namedtuple('Test', 'name group kind ours')


def can_io_uring():
    """May the account that runs servers use io_uring?"""
    probe = ('import ctypes, sys; '
             'sys.exit(ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(128)) < 0)')
    return subprocess.run([AS_ACCOUNT, '/usr/bin/python3', '-c', probe]).returncode == 0


def logged(label, log, command, environment=None):
    """Run a command with its output in a log; return its exit status."""
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as running:
        # Logs are below build/, where root does not write.
        subprocess.run([AS_ACCOUNT, ROOT / 'tools' / 'progress', label, log], stdin=running.stdout)
    return running.returncode


def excerpt(lines):
    """Of a failed test's log: what tells why, which may be long before the end, and the end."""
    said, failed = [], False
    for line in lines[:-LAST_LINES]:
        result = RESULT.match(line)
        if result:
            failed = result.group(2) is not None
        if failed and (result or COMMENT.match(line)):
            said.append(line)
    return ''.join(said[:SAID_LINES] + (['...\n'] if said else []) + lines[-LAST_LINES:])


class Tally:
    """What has passed, and what not; several threads may add to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed, self.skipped, self.failed, self.times = 0, 0, [], []

    def add(self, name, result, log, seconds=0):
        with self.lock:
            self.times.append((seconds, name))
            if result in PASSED:
                self.passed += 1
            elif result in SKIPPED:
                self.skipped += 1
            else:
                self.failed.append((f'{name}: {result}, {os.path.relpath(log, ROOT)}', log))

    def report(self):
        for seconds, name in sorted(self.times, reverse=True)[:SLOWEST]:
            print(f'{seconds:6.0f} s  {name}')
        for line, log in self.failed:
            print(f'FAILED {line}')
            # Whoever reads what a machine has printed may not have its files.
            if log.is_dir():
                log = next(itertools.chain(log.rglob('regression.diffs'), log.rglob('regress_log_*')), None)
            if log and log.exists():
                print(textwrap.indent(excerpt(log.read_text(errors='replace').splitlines(keepends=True)), '    '), end='')
        skipped = f', {self.skipped} skipped' if self.skipped else ''
        print(f'{self.passed} passed, {len(self.failed)} failed{skipped}', flush=True)


class Runner:
    """Meson's tests of one flavour of the build, their logs in a directory, and the tally that they are entered in."""

    def __init__(self, flavour, results, tally, options=(), environment=None):
        self.build = ROOT / 'build' / 'meson' / flavour
        self.results, self.tally = results, tally
        self.options, self.environment = options, environment or {}
        self.chosen = None      # what initdb has chosen: the template without settings

    def tests(self):
        """All but those that want a running server."""
        listed = json.loads(subprocess.run([AS_ACCOUNT, 'meson', 'introspect', '--tests', self.build],
                                           check=True, capture_output=True, text=True).stdout)
        ours = [os.path.realpath(ROOT / directory) for directory in ('src/bin', 'src/extension', 'src/test')]
        # Meson runs tests in the order in which they are named, and the setup has to be first.
        for test in sorted(listed, key=lambda test: -test['priority']):
            option = dict(zip(test['cmd'], test['cmd'][1:]))
            group, kind = option.get('--testgroup', 'setup'), option.get('--testname', '')
            where = os.path.realpath(option.get('--srcdir', '/'))
            if not group.endswith('-running'):
                yield Test(f'postgresql:{test["name"]}', group, kind, any(where.startswith(o + '/') for o in ours))

    def configure(self, settings):
        """Give the cluster that upstream makes once, and that tests copy, these settings and no others."""
        template = next(self.build.glob('subprojects/postgresql-*/tmp_install/initdb-template')) / 'postgresql.conf'
        if self.chosen is None:
            self.chosen = subprocess.run([AS_ACCOUNT, 'cat', template], check=True, capture_output=True, text=True).stdout
        lines = [re.sub('=(.*)', r" = '\1'\n", setting) for setting in settings]
        subprocess.run([AS_ACCOUNT, 'tee', template], input=''.join([self.chosen, *lines]), check=True, text=True,
                       stdout=subprocess.DEVNULL)

    def run(self, label, settings, tests, wrapper=None, by_initdb=False):
        """Run these tests once, by this program if there is one.  Their setup, which upstream counts as tests, has gone before.

        With by_initdb, initdb is told the settings for each cluster, as tests need that give it options of their own.
        """
        if not tests:
            return
        print(f'{label}: {len(tests)} tests', flush=True)
        environment = dict(os.environ, **self.environment)
        if settings and by_initdb:
            environment['PG_TEST_INITDB_EXTRA_OPTS'] = ' '.join(f'-c {setting}' for setting in settings)
        elif any(test.group != 'setup' for test in tests):
            self.configure(settings or [])
        command = [AS_ACCOUNT, 'meson', 'test', '-C', self.build, '--logbase', label,
                   '--num-processes', str(os.cpu_count() + 1), '--print-errorlogs', *self.options,
                   *(['--wrapper', wrapper] if wrapper else []), *[test.name for test in tests]]
        log = self.results / f'{label}.log'
        results = self.build / 'meson-logs' / f'{label}{f"-{wrapper.name}" if wrapper else ""}.json'
        subprocess.run([AS_ACCOUNT, 'rm', '-f', results], check=True)
        status = logged(label, log, command, environment)
        found = {}
        if results.exists():
            # `postgresql:SUITE / NAME`, and since meson 1.9 `SUITE - postgresql:NAME`
            found = {re.split(' / |:', entry['name'])[-1]: entry for entry in map(json.loads, results.open())}
        for test in tests:
            name = test.name.split(':', 1)[1]
            entry = found.get(name, {})
            result = entry.get('result', f'did not run, meson ended with status {status}')
            place = log
            if test.group != 'setup' and result not in PASSED | SKIPPED:
                # The next pass will use the directory again.
                place = self.keep(label, test) or log
            self.tally.add(f'{label}: {name}', result, place, entry.get('duration', 0))

    def left_by(self, test):
        """The directory of what a test has left, logs of servers among it, or None."""
        return next(self.build.glob(f'subprojects/postgresql-*/testrun/{test.group}/{test.kind}'), None)

    def keep(self, label, test):
        """Move what a failed test left to a place where it stays."""
        left = self.left_by(test)
        if left is None:
            return None
        place = self.results / 'failed' / label / f'{test.group}-{test.kind}'
        subprocess.run([AS_ACCOUNT, 'mkdir', '-p', place.parent], check=True)
        subprocess.run([AS_ACCOUNT, 'mv', left, place], check=True)
        return place
