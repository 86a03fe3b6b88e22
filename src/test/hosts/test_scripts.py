#!/usr/bin/python3
"""The scripts of the front door on systems that are not like this one: what they look for, and what they say."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
TOOLS = ROOT / 'tools'
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader('fetch', str(TOOLS / 'fetch-postgresql'))
fetch = importlib.util.module_from_spec(importlib.util.spec_from_loader('fetch', LOADER))
LOADER.exec_module(fetch)
sys.path.append(str(TOOLS))
from suites import LAST_LINES, excerpt     # noqa: E402

DEBIAN_13 = 'ID=debian\nVERSION_CODENAME=trixie\n'
TESTING = 'ID=debian\nVERSION_CODENAME=forky\n'


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = pathlib.Path(scratch.name)

    def write(self, name, text, mode=0o644):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)


class Suites(Scratch):
    """Where the source package is looked for."""

    def suites(self, os_release, sources):
        self.write('os-release', os_release)
        self.write('apt/sources.list', sources)
        return [f'{stanza["uris"]} {stanza["suites"]}' for stanza in fetch.apt_candidates(self.top)]

    def test_codename(self):
        self.assertEqual(self.suites(DEBIAN_13, 'deb http://a/debian trixie main\n'),
                         ['http://a/debian testing', 'http://a/debian unstable', 'http://a/debian trixie-backports',
                          'http://a/debian trixie'])

    def test_role(self):
        for suite in ('testing', 'unstable', 'sid', 'stable'):
            found = self.suites(TESTING, f'deb http://a/debian {suite} main\n')
            self.assertEqual(found[0], 'http://a/debian testing')
            self.assertIn(f'http://a/debian {suite}', found)

    def test_deb822(self):
        self.write('apt/sources.list.d/debian.sources', 'Types: deb\nURIs: http://a/debian\nSuites: sid\n'
                   'Components: main contrib\nSigned-By: /k.gpg\n')
        self.assertEqual(self.suites(TESTING, '')[0], 'http://a/debian testing')

    def test_ubuntu(self):
        self.assertEqual(self.suites('ID=ubuntu\nVERSION_CODENAME=noble\n', 'deb http://a/ubuntu noble main universe\n'),
                         ['http://a/ubuntu devel', 'http://a/ubuntu noble'])

    def test_others_are_not_asked(self):
        self.assertEqual(self.suites(DEBIAN_13, 'deb http://b/some nodistro main\ndeb http://b/some trixie contrib\n'), [])


class Fetch(Scratch):
    """What is said if the source cannot be had."""

    def fetch(self, apt_get):
        """From apt only, with this script as apt-get."""
        self.write('bin/apt-get', '#!/bin/sh\n' + apt_get, 0o755)
        self.write('etc/os-release', DEBIAN_13)
        self.write('etc/apt/sources.list', 'deb http://a/debian trixie main\n')
        path, candidates = os.environ['PATH'], list(fetch.apt_candidates(self.top / 'etc'))
        self.addCleanup(setattr, fetch, 'apt_candidates', fetch.apt_candidates)
        self.addCleanup(os.environ.__setitem__, 'PATH', path)
        fetch.apt_candidates = lambda: candidates
        os.environ['PATH'] = f'{self.top}/bin:{path}'
        with self.assertRaises(OSError) as caught:
            fetch.from_apt(self.top / 'pinned', '0' * 64)
        return str(caught.exception)

    def test_says_what_was_tried(self):
        said = self.fetch('case "$*" in *update*) echo "E: The repository does not have a Release file." >&2; exit 100;; esac')
        self.assertIn('tried', said)
        self.assertIn('http://a/debian testing: The repository does not have a Release file.', said)
        self.assertIn('http://a/debian trixie: ', said)

    def test_says_that_the_package_is_missing(self):
        self.assertIn('http://a/debian trixie-backports: has no source package postgresql-18', self.fetch('exit 0'))


class Packages(Scratch):
    def test_expired_release_file(self):
        self.write('bin/apt-get', '#!/bin/sh\necho "E: Release file for http://a/InRelease is expired (invalid since 3d)."\n'
                   'exit 100\n', 0o755)
        self.write('bin/dpkg-query', '#!/bin/sh\nexit 1\n', 0o755)
        self.write('bin/id', '#!/bin/sh\necho 0\n', 0o755)
        # lib.sh puts the system's directories first, so the script runs with a copy that does not
        self.write('install-packages', (TOOLS / 'install-packages').read_text(), 0o755)
        self.write('lib.sh', (TOOLS / 'lib.sh').read_text().replace('system=', f'system={self.top}/bin:'))
        done = subprocess.run([self.top / 'install-packages', 'x'], capture_output=True, text=True,
                              env={**os.environ, 'TMPDIR': str(self.top)})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('clock', done.stderr)
        self.assertIn('Acquire::Check-Valid-Until "false";', done.stderr)

    def test_elsewhere(self):
        manual = ' '.join(re.sub(r'<[^>]*>', '', (ROOT / 'doc/aio.sgml').read_text()).split())
        for distribution, command in ('fedora', 'dnf install'), ('arch', 'pacman -S'), ('alpine', 'apk add'):
            said = subprocess.run([TOOLS / 'packages-elsewhere', distribution], capture_output=True, text=True).stdout
            self.assertTrue(said.startswith(command))
            self.assertTrue(' '.join(said.splitlines()[0].split()) in manual, f'the manual has another line for {distribution}')

    def test_unknown_distribution(self):
        self.assertEqual(subprocess.run([TOOLS / 'packages-elsewhere', 'x'], capture_output=True).stdout, b'')


@unittest.skipUnless(os.geteuid() == 0, 'changes accounts')
class Account(unittest.TestCase):
    def test_has_its_groups(self):
        group = 'pgawait-test'
        subprocess.run(['groupadd', '--system', group], check=True)
        try:
            subprocess.run(['usermod', '--append', '--groups', group, 'pgawait'], check=True)
            said = subprocess.run([TOOLS / 'as-account', 'id', '-nG'], check=True, capture_output=True, text=True).stdout
            self.assertEqual(set(said.split()), {'pgawait', group})
        finally:
            subprocess.run(['groupdel', group], check=True)


class Excerpt(unittest.TestCase):
    def test_what_failed_long_before_the_end(self):
        said = ["[08:16:03.048](0.509s) not ok 27 - it works\n",
                "[08:16:03.048](0.000s) #   Failed test 'it works'\n", '#   at t/018_wal.pl line 3.\n', "#          got: '1'\n",
                '# at 12: xx instead of yy\n']
        log = ['ok 26 - it begins\n', *said[:3], '# Running: pg_ctl\n', *said[3:], *['the server stops\n'] * LAST_LINES]
        self.assertEqual(excerpt(log), ''.join([*said, '...\n', *log[-LAST_LINES:]]))

    def test_what_sessions_have_said(self):
        said = ["[08:16:03.048](0.509s)     not ok 2 - it works\n", "    #   Failed test 'it works'\n"]
        log = ["#   'stderr' => 'ready'\n", '    ok 1 - it begins\n', "#   'stdout' => ''\n", *said, '    ok 3 - it ends\n',
               "#   'stdout' => ''\n", *['the server stops\n'] * LAST_LINES]
        self.assertEqual(excerpt(log), ''.join([*said, '...\n', *log[-LAST_LINES:]]))

    def test_short_log(self):
        self.assertEqual(excerpt(['not ok 1\n']), 'not ok 1\n')


class Jobs(Scratch):
    """What stands for pg_basebackup in upstream's tests."""

    def given(self, *arguments):
        """The last argument that the real one gets."""
        self.write('bin/pg_basebackup', '#!/bin/sh\necho "$@"\n', 0o755)
        command = [ROOT / 'src/test/aio/backup/jobs/run', 'pg_basebackup', *arguments]
        said = subprocess.run(command, check=True, capture_output=True, text=True,
                              env={**os.environ, 'PATH': f'{self.top}/bin:{os.environ["PATH"]}'}).stdout
        self.assertTrue(said.startswith(' '.join(arguments)))
        return said.split()[-1:]

    def test_several(self):
        for arguments in ((), ('--help',), ('-cfast', '-D', 'tar', '--max-rate', '1024'), ('--format', 'plain'),
                          ('-Fp', '-r', '32M'), ('--compress', 'server-gzip', '-F', 'plain'), ('-T', '/a=/t')):
            self.assertEqual(self.given(*arguments), ['--jobs=3'], arguments)

    def test_one(self):
        for arguments in (('-Ft',), ('--format', 't'), ('--format=tar', '-X', 'none'), ('-F', 't', '-D', 'x'),
                          ('--target', 'blackhole'), ('--target=blackhole', '-cfast'), ('-t', 'blackhole'),
                          ('--max-rate', '32', '-D', 'x'), ('-r64',)):
            self.assertEqual(self.given(*arguments), [arguments[-1]], arguments)


if __name__ == '__main__':
    unittest.main()
