#!/usr/bin/python3
"""The scripts of the front door on systems that are not like this one: what they look for, and what they say."""
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
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


class Checkout(Scratch):
    """A checkout with what the front door needs, in a directory that everybody can pass through."""

    def setUp(self):
        super().setUp()
        self.top.chmod(0o755)
        self.repo = self.top / 'repo'
        (self.repo / 'subprojects').mkdir(parents=True)
        shutil.copytree(TOOLS, self.repo / 'tools')
        shutil.copy(ROOT / 'pgawait', self.repo)
        shutil.copy(ROOT / 'meson.build', self.repo)
        shutil.copy(ROOT / 'subprojects/postgresql.wrap', self.repo / 'subprojects')

    def run_there(self, *command, environment=(), before=()):
        return subprocess.run([*before, *command], cwd=self.repo, capture_output=True, text=True, timeout=120,
                              env={**os.environ, **dict(environment)})

    def tool(self, script, **options):
        """Run a tool that does this."""
        self.write('repo/tools/tool', '#!/bin/bash\nset -euo pipefail\n. "$(dirname "$0")/lib.sh"\n' + script, 0o755)
        return self.run_there('tools/tool', **options)

    def pack(self, size):
        """A tarball that stands for PostgreSQL's."""
        self.write('postgresql-18.9/large', 'x' * size)
        subprocess.run(['tar', '-cjf', self.top / 'a.tar.bz2', '-C', self.top, 'postgresql-18.9'], check=True)
        return self.top / 'a.tar.bz2'


class Tools(Checkout):
    def test_options_need_values(self):
        for command in (['install', '--prefix', f'{self.top}/system', '--destdir'], ['uninstall', '--destdir'], ['install', '--prefix'],
                        ['server', '--data'], ['server', '--port'], ['build', '--jobs'], ['package', 'deb', '--jobs'],
                        ['package', 'image', '--packages'], ['package', 'image', '--release']):
            for value in ([], ['']):
                done = self.run_there('./pgawait', *command, *value)
                self.assertNotEqual(done.returncode, 0, command)
                self.assertIn(f'{command[-1]} needs a', done.stderr)
        self.assertEqual([path.name for path in self.top.iterdir()], ['repo'])

    def test_no_value_is_taken_in_another_way(self):
        for path in [ROOT / 'pgawait', *TOOLS.iterdir()]:
            if path.is_file():
                self.assertNotIn('{2:?', path.read_text(), path)

    def test_functions_fail_in_substitutions(self):
        done = self.tool('f() { false; echo on; }\nx=$(f)\necho "goes on with $x"\n')
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, '')

    def test_half_unpacked(self):
        script = f'mkdir -p build\nunpack_postgresql {self.pack(2000000)}\n'
        limited = self.tool(script, before=['sh', '-c', 'ulimit -f 300; trap "" XFSZ; exec "$@"', 'sh'])
        self.assertNotEqual(limited.returncode, 0)
        self.assertIn('cannot be unpacked', limited.stderr)
        self.assertEqual(self.tool(script).stdout, 'build/source/postgresql-18.9\n')
        self.assertEqual((self.repo / 'build/source/postgresql-18.9/large').stat().st_size, 2000000)
        self.assertNotIn('unpacking', self.tool(script).stderr)

    def test_cdpath(self):
        done = self.tool('tools/install-packages && echo $root\n', environment={'CDPATH': f'.:/usr:{self.top}'})
        self.assertEqual((done.returncode, done.stdout), (0, f'{self.repo}\n'))

    def test_installed_whole(self):
        # meson takes a file for installed whose copy has broken off: it is newer than its source
        self.assertNotIn('--only-changed', (TOOLS / 'build').read_text())

    def server_runs(self, *lines, directory='data'):
        self.write(f'{directory}/postmaster.pid', ''.join(f'{line}\n' for line in lines))
        return self.tool(f'server_runs {self.top}/{directory} && echo yes || echo no\n').stdout == 'yes\n'

    def test_stale_pid_file(self):
        mine, gone = os.getpid(), subprocess.Popen(['true'])
        gone.wait()
        self.assertTrue(self.server_runs(mine, '/data', 1700000000))
        self.assertTrue(self.server_runs(-mine, '/data', 1700000000))
        self.assertFalse(self.server_runs(gone.pid, '/data', 1700000000))
        for nothing in ('', 'x', '0', '-'):
            self.assertFalse(self.server_runs(nothing))
        # it is not complete, so nothing is known
        self.assertTrue(self.server_runs(mine))

    @unittest.skipUnless(os.geteuid() == 0, 'has files of two accounts')
    def test_stale_pid_file_of_another_account(self):
        self.server_runs(os.getpid())
        shutil.chown(self.top / 'data', 'nobody')
        self.assertFalse(self.server_runs(os.getpid(), '/data', 1700000000))

    def test_clean_follows_a_link(self):
        (self.top / 'large').mkdir()
        (self.repo / 'build').symlink_to(self.top / 'large')
        self.write('repo/build/server/data/postmaster.pid', f'{os.getpid()}\n')
        done = self.run_there('./pgawait', 'clean')
        self.assertIn('a server is running in build/server/data', done.stderr)
        self.assertTrue((self.repo / 'build/server').exists())
        (self.repo / 'build/server/data/postmaster.pid').unlink()
        self.assertEqual(self.run_there('./pgawait', 'clean').returncode, 0)
        self.assertEqual(list((self.top / 'large').iterdir()), [])


@unittest.skipUnless(os.geteuid() == 0, 'is about what root does')
class Root(Checkout):
    """Root does not write below build/, but as whom that belongs to."""

    def setUp(self):
        super().setUp()
        (self.repo / 'build').mkdir()
        shutil.chown(self.repo / 'build', 'nobody')

    def as_nobody(self, *command):
        return subprocess.run(['setpriv', '--reuid=nobody', '--clear-groups', '--regid=nogroup', *command], check=True,
                              cwd=self.repo, capture_output=True, text=True).stdout

    def test_links(self):
        precious = self.top / 'precious'
        precious.write_text('precious')
        precious.chmod(0o600)
        self.as_nobody('mkdir', 'build/log')
        for name in ('.lock-x', '.let-pass', '.let-pass.new', 'log/x.log', 'source', 'source.new'):
            self.as_nobody('ln', '-s', precious, f'build/{name}')
        self.tool('lock_build x\n')
        self.tool('run_logged x build/log/x.log echo y\n')
        self.tool(f'unpack_postgresql {self.pack(10)}\n')
        self.assertEqual(precious.read_text(), 'precious')

    def test_without_the_power_to(self):
        # root's own files alone would be within its reach
        weak = ['setpriv', '--bounding-set=-dac_override', '--inh-caps=-dac_override']
        self.as_nobody('mkdir', 'build/log')
        done = self.tool(f'prepare_account\nlock_build x\nrun_logged x build/log/x.log echo y\nunpack_postgresql {self.pack(10)}\n'
                         'lock_build y\n', before=weak)
        self.assertEqual((done.returncode, done.stdout), (0, 'build/source/postgresql-18.9\n'), done.stderr)
        owners = {path.owner() for path in [self.repo / 'build', *(self.repo / 'build').rglob('*')]}
        self.assertEqual(owners, {'nobody'})

    def test_what_root_has_left(self):
        # earlier versions did
        for name in ('.lock-x', '.let-pass', 'log/x.log', 'source/postgresql-18.1/x'):
            self.write(f'repo/build/{name}', '')
        shutil.chown(self.repo / 'build/log', 'nobody')
        done = self.tool(f'lock_build x\nrun_logged x build/log/x.log echo y\nunpack_postgresql {self.pack(10)}\n')
        self.assertEqual((done.returncode, done.stdout), (0, 'build/source/postgresql-18.9\n'), done.stderr)

    def test_goes_on_as_who_has_built(self):
        done = self.tool('prepare_account\nas_account id -un\nstat -c %U build\n')
        self.assertEqual(done.stdout, 'nobody\nnobody\n', done.stderr)

    def test_two_at_once(self):
        one = subprocess.Popen(['bash', '-c', '. tools/lib.sh; lock_build x; echo locked; read -r'], cwd=self.repo,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(one.stdout.readline(), 'locked\n')
        self.assertEqual(self.as_nobody('sh', '-c', 'flock -n build/.lock-x true || echo no'), 'no\n')
        one.communicate('\n')
        self.assertEqual(self.as_nobody('sh', '-c', 'flock -n build/.lock-x true && echo yes'), 'yes\n')


class Proxy(Scratch):
    """What is not HTTP, or no whole answer, is a reason like any other."""

    def test_answers(self):
        (self.top / 'cache').mkdir()
        self.addCleanup(setattr, fetch, 'CACHE', fetch.CACHE)
        fetch.CACHE = self.top / 'cache'
        with socket.create_server(('127.0.0.1', 0)) as server:
            # nobody comes where there is no loopback
            server.settimeout(30)
            asked = []

            def serve(answer):
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    return
                asked.append(answer)
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

            for answer in (b'<html>log in first</html>\r\n\r\n', b'',
                           b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\nonly some of it',
                           b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nonly some of it',
                           b'HTTP/1.1 302 Found\r\nLocation: gopher://[x\r\n\r\n',
                           b'HTTP/1.1 407 Who are you\r\n\r\n'):
                thread = threading.Thread(target=serve, args=(answer,))
                thread.start()
                with self.assertRaises(OSError, msg=answer):
                    fetch.from_official(f'http://127.0.0.1:{server.getsockname()[1]}/x', '0' * 64)
                thread.join()
                self.assertIn(answer, asked, 'the server has not been asked')
        for address in ('http://127.0.0.1:99999/', 'http://[', 'no address', 'http://a b/'):
            with self.assertRaises(OSError, msg=address):
                fetch.from_official(address, '0' * 64)
        self.assertEqual(list(fetch.CACHE.iterdir()), [])

    def test_interrupted(self):
        self.addCleanup(setattr, fetch, 'CACHE', fetch.CACHE)
        self.addCleanup(setattr, fetch.urllib.request, 'urlopen', fetch.urllib.request.urlopen)
        fetch.CACHE = self.top

        def interrupt(*_, **__):
            raise KeyboardInterrupt
        fetch.urllib.request.urlopen = interrupt
        with self.assertRaises(KeyboardInterrupt):
            fetch.from_official('http://a/', '0' * 64)
        self.assertEqual(list(self.top.iterdir()), [])


if __name__ == '__main__':
    unittest.main()
