#!/usr/bin/python3
"""The driver itself, on a tiny upstream: what it writes, what it leaves alone, and how it fails."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SEAMS = pathlib.Path(__file__).resolve().parent.parent


class Weave(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = pathlib.Path(scratch.name)
        for name, text in {
                'upstream/meson.build': "project('postgresql', version: '18.99')\n",
                'upstream/a.c': 'int f(void)\n{\n    return old(1);\n}\n',
                'upstream/dir/b.c': 'int g;\n',
                'repo/subprojects/postgresql.wrap': '[wrap-file]\ndirectory = postgresql-18.98\n',
                'repo/src/seams/links': 'link: ours -> dir/aio\n',
                'repo/src/seams/call.sed': '# target: a.c Aio+1 old-1\ns/old/Aio/\n',
                'repo/ours/x.c': '\n'}.items():
            self.write(name, text)
        shutil.copy(SEAMS / 'weave', self.top / 'repo/src/seams/weave')

    def write(self, name, text):
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name):
        return (self.top / name).read_text()

    def weave(self, *arguments):
        return subprocess.run([self.top / 'repo/src/seams/weave', *arguments], cwd=self.top,
                              capture_output=True, text=True)

    def woven(self):
        done = self.weave('upstream', 'woven')
        self.assertEqual(done.returncode, 0, done.stderr)

    def fails(self, message):
        done = self.weave('upstream', 'woven')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(message, done.stderr)

    def test_applies_rules_and_links(self):
        self.woven()
        self.assertIn('Aio(1)', self.read('woven/a.c'))
        self.assertEqual(self.read('woven/dir/b.c'), 'int g;\n')
        self.assertTrue((self.top / 'woven/dir/aio/x.c').exists())

    def test_semantic_patch(self):
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n@@ @@\n+ AioMore();\n  return Aio(...);\n')
        self.woven()
        self.assertIn('AioMore();', self.read('woven/a.c'))

    def test_unchanged_files_keep_their_time(self):
        self.woven()
        for name in ('a.c', 'dir/b.c'):
            os.utime(self.top / 'woven' / name, (1, 1))
        self.write('repo/src/seams/call.sed', '# target: a.c AioNew+1 old-1\ns/old/AioNew/\n')
        self.woven()
        self.assertEqual((self.top / 'woven/dir/b.c').stat().st_mtime, 1)
        self.assertNotEqual((self.top / 'woven/a.c').stat().st_mtime, 1)

    def test_what_is_gone_goes(self):
        self.woven()
        (self.top / 'upstream/dir/b.c').unlink()
        self.write('repo/src/seams/links', '')
        self.woven()
        self.assertFalse((self.top / 'woven/dir/b.c').exists())
        self.assertFalse((self.top / 'woven/dir/aio').is_symlink())
        self.assertTrue((self.top / 'repo/ours/x.c').exists())

    def test_rule_that_no_longer_matches(self):
        self.woven()
        self.write('upstream/a.c', 'int f(void)\n{\n    return renamed(1);\n}\n')
        self.fails('seam call.sed: a.c: expected Aio+1, found +0; '
                   'likely cause: PostgreSQL 18.99 differs from 18.98, for which it was written')
        self.assertIn('Aio(1)', self.read('woven/a.c'))

    def test_rule_that_matches_too_often(self):
        self.write('upstream/a.c', 'old\nold\n')
        self.fails('expected Aio+1, found +2')
        self.assertFalse((self.top / 'woven').exists())

    def test_rule_that_loses_a_word(self):
        self.write('repo/src/seams/call.sed', '# target: a.c Aio+1 old-1\ns/return old/Aio/\n')
        self.fails('expected return+0, found -1')

    def test_every_misfit_is_named(self):
        self.write('upstream/a.c', '\n')
        self.write('repo/src/seams/other.sed', '# target: dir/c.c Aio+1\n# target: a.c AioX+1\ns/x/Aio/\n')
        self.fails('seam call.sed: a.c: expected Aio+1')
        self.fails('seam other.sed: a.c: expected AioX+1')
        self.fails('seam other.sed: dir/c.c: no such file')

    def test_what_spatch_cannot_parse_is_the_cause(self):
        self.write('upstream/a.c', 'int f(void)\n{\n    return old(1);\n}\n\nint\ng(void)\n{\n    int x = (; h();\n}\n')
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n@@ @@\n g(...)\n {\n'
                   '+ AioMore();\n  h();\n ...\n }\n')
        self.fails('seam more.cocci: a.c: expected AioMore+1, found +0; likely cause: spatch')
        self.fails('cannot parse g()')

    def test_rule_that_spatch_cannot_read(self):
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n@@ (( @@\n')
        self.fails('seam more.cocci: a.c: spatch failed')

    def test_spatch_does_not_see_attributes(self):
        attributes = 'pg_attribute_unused() = 0, j PG_USED_FOR_ASSERTS_ONLY'
        self.write('upstream/a.c', 'pg_noreturn static pg_noinline void\nf(void)\n{\n'
                   f'    int i {attributes};\n\n    i++;\n    old(1); /* pg_noinline */\n}}\n')
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n@@ @@\n f(...)\n {\n <+...\n'
                   '+ AioMore();\n  Aio(...);\n ...+>\n }\n')
        self.woven()
        text = self.read('woven/a.c')
        self.assertIn('AioMore();', text)
        self.assertIn('pg_noreturn static pg_noinline void\n', text)
        self.assertIn(f'    int i {attributes};\n', text)
        self.assertIn('/* pg_noinline */', text)

    def test_directory_that_upstream_has_too(self):
        self.write('upstream/dir/aio/y.c', '\n')
        self.fails('has a dir/aio of its own')

    def test_check_writes_nothing(self):
        self.assertEqual(self.weave('--check', 'upstream').returncode, 0)
        self.assertFalse((self.top / 'woven').exists())


if __name__ == '__main__':
    unittest.main()
