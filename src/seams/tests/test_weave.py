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
                'upstream/a.c': '#include "postgres.h"\n\nint\nf(void)\n{\n    return old(1);\n}\n',
                'upstream/dir/b.c': 'int g;\n',
                'repo/subprojects/postgresql.wrap': '[wrap-file]\ndirectory = postgresql-18.98\n',
                'repo/src/seams/links': 'link: ours -> dir/aio\n',
                'repo/src/seams/internals': '# nothing\n',
                'repo/src/seams/mirrors': '',
                'repo/src/seams/call.sed': '# target: a.c Aio+1 old-1\n#   in f\ns/old/Aio/\n',
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
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n//   in f\n@@ @@\n+ AioMore();\n  return Aio(...);\n')
        self.woven()
        self.assertIn('AioMore();', self.read('woven/a.c'))

    def test_what_spatch_has_made_is_remembered(self):
        rule = '// target: a.c %s+1\n//   in f\n@@ @@\n+ %s();\n  return Aio(...);\n'
        self.write('repo/src/seams/more.cocci', rule % ('AioMore', 'AioMore'))
        self.woven()
        made, = (self.top / 'repo/subprojects/packagecache/woven').iterdir()
        made.write_text(made.read_text().replace('AioMore();', 'AioMore() /* remembered */;'))
        shutil.rmtree(self.top / 'woven')
        self.woven()
        self.assertIn('remembered', self.read('woven/a.c'))
        self.write('repo/src/seams/more.cocci', rule % ('AioLess', 'AioLess'))
        self.woven()
        self.assertNotIn('remembered', self.read('woven/a.c'))
        self.assertIn('AioLess();', self.read('woven/a.c'))

    def test_unchanged_files_keep_their_time(self):
        self.woven()
        for name in ('a.c', 'dir/b.c'):
            os.utime(self.top / 'woven' / name, (1, 1))
        self.write('repo/src/seams/call.sed', '# target: a.c AioNew+1 old-1\n#   in f\ns/old/AioNew/\n')
        self.woven()
        self.assertEqual((self.top / 'woven/dir/b.c').stat().st_mtime, 1)
        self.assertNotEqual((self.top / 'woven/a.c').stat().st_mtime, 1)

    def test_what_is_woven_is_current_without_spatch(self):
        def is_current():
            return subprocess.run([self.top / 'repo/src/seams/weave', '--current', 'upstream', 'woven'], cwd=self.top,
                                  env={'PATH': '/nowhere'}).returncode == 0
        self.assertFalse(is_current())
        self.woven()
        self.assertTrue(is_current())
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n@@ @@\n+ AioMore();\n  return Aio(...);\n')
        self.assertFalse(is_current())

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
        self.write('upstream/a.c', 'int\nf(void)\n{\n    return renamed(1);\n}\n')
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
        self.write('upstream/a.c', 'int\nf(void)\n{\n    return old(1);\n}\n\nint\ng(void)\n{\n    int x = (; h();\n}\n')
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n//   in g\n@@ @@\n g(...)\n {\n'
                   '+ AioMore();\n  h();\n ...\n }\n')
        self.fails('seam more.cocci: a.c: expected AioMore+1, found +0; likely cause: spatch')
        self.fails('cannot parse g()')

    def test_rule_that_spatch_cannot_read(self):
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n@@ (( @@\n')
        self.fails('seam more.cocci: a.c: spatch failed')

    def test_spatch_does_not_see_attributes(self):
        attributes = 'pg_attribute_unused() = 0, j PG_USED_FOR_ASSERTS_ONLY'
        self.write('upstream/a.c', '#include "postgres.h"\npg_noreturn static pg_noinline void\nf(void)\n{\n'
                   f'    int i {attributes};\n\n    i++;\n    old(1); /* pg_noinline */\n}}\n')
        self.write('repo/src/seams/more.cocci', '// target: a.c AioMore+1\n//   in f\n@@ @@\n f(...)\n {\n <+...\n'
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

    def test_header_comes_with_names_of_ours(self):
        self.write('repo/src/seams/more.sed', '# target: a.c AioMore+1\n#   in f\ns/Aio/AioMore(&)/\n')
        self.write('repo/src/seams/other.sed', '# include: ours/other.h\n# target: a.c aio_other+1\n#   in f\n'
                   's/1/aio_other/\n')
        self.woven()
        self.assertTrue(self.read('woven/a.c').startswith(
            '#include "postgres.h"\n\n#include "ours/other.h"\n\n#include "aio/seams.h"\n'), self.read('woven/a.c'))

    def test_header_comes_in_files_of_programs(self):
        both = '#ifndef FRONTEND\n#include "postgres.h"\n#else\n#include "postgres_fe.h"\n#endif\n'
        self.write('upstream/a.c', both + self.read('upstream/a.c').partition('\n')[2])
        self.write('repo/src/seams/more.sed', '# target: a.c AioMore+1\n#   in f\ns/Aio/AioMore(&)/\n')
        self.woven()
        self.assertTrue(self.read('woven/a.c').startswith(
            '#ifndef FRONTEND\n#include "postgres.h"\n\n#include "aio/seams.h"\n#else\n'
            '#include "postgres_fe.h"\n\n#include "aio/seams.h"\n#endif\n'), self.read('woven/a.c'))

    def test_header_has_no_place(self):
        self.write('upstream/a.c', 'int\nf(void)\n{\n    return old(1);\n}\n')
        self.write('repo/src/seams/call.sed', '# target: a.c AioNew+1 old-1\n#   in f\ns/old/AioNew/\n')
        self.fails('include aio/seams.h: a.c: does not include postgres.h once')

    def test_rule_that_matches_elsewhere(self):
        self.write('upstream/a.c', self.read('upstream/a.c').replace('f(void)', 'g(void)'))
        self.fails('seam call.sed: a.c: expected in f(), found in g()')

    def test_place_is_a_function_and_not_a_prototype(self):
        self.write('upstream/a.c', 'int\nh(void);\nint\nf(int a /* ( */, int b)\n{\n    if (a) {\n    }\n'
                   '    return old(1);\n}\n')
        self.woven()

    def internal(self):
        self.write('repo/src/seams/internals', '# why\ninternal: dir/b.c <- ours/x.c\n')

    def test_internal(self):
        self.internal()
        self.woven()
        self.assertEqual(self.read('woven/dir/b.c'), 'int g;\n\n#include "aio/x.c"\n')

    def test_internal_of_a_file_that_is_gone(self):
        self.internal()
        (self.top / 'upstream/dir/b.c').unlink()
        self.fails('internal ours/x.c: dir/b.c: no such file')

    def test_internal_that_is_gone(self):
        self.internal()
        (self.top / 'repo/ours/x.c').unlink()
        self.fails('internals: ours/x.c is no file of a directory in `links`')

    def test_list_that_cannot_be_read(self):
        self.write('repo/src/seams/internals', 'internal: dir/b.c\n')
        self.fails('internals: cannot read "internal: dir/b.c"')

    def mirror(self):
        self.write('upstream/dir/b.c', 'static int\nupstreams(int a)\n{\n    return a + 1;\n}\n')
        self.write('repo/ours/x.c', 'int\nours(int a)\n{\n    return a;\n}\n')
        self.write('repo/src/seams/mirrors', 'mirror: dir/b.c upstreams 0 <- ours/x.c ours\n')
        done = self.weave('--pin', 'upstream')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('pinned upstreams() of dir/b.c', done.stdout)
        self.woven()

    def test_mirror_of_what_looks_different(self):
        self.mirror()
        self.write('upstream/dir/b.c', 'int other;\nstatic int\nupstreams(int a)\n{\n    /* one more */\n'
                   '    return\n      a+1;\n}\n')
        self.woven()

    def test_mirror_of_what_has_changed(self):
        self.mirror()
        self.write('upstream/dir/b.c', self.read('upstream/dir/b.c').replace('1', '2'))
        self.fails('mirror ours of upstreams: dir/b.c: upstreams() has changed: read it beside ours() in ours/x.c')
        self.assertEqual(self.weave('--pin', 'upstream').returncode, 0)
        self.woven()

    def test_mirror_of_what_is_gone(self):
        self.mirror()
        self.write('upstream/dir/b.c', self.read('upstream/dir/b.c').replace('upstreams', 'renamed'))
        self.fails('mirror ours of upstreams: dir/b.c: there is no upstreams()')
        done = self.weave('--pin', 'upstream')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('there is no upstreams()', done.stderr)

    def test_mirror_that_is_gone(self):
        self.mirror()
        self.write('repo/ours/x.c', '\n')
        self.fails('mirrors: there is no ours() in ours/x.c')

    def test_check_tells_what_became_of_each(self):
        self.mirror()
        self.internal()
        for name, word in ('fits', 'one'), ('moves', 'two'), ('changes', 'three'), ('goes', 'four'):
            self.write(f'repo/src/seams/{name}.sed', f'# target: a.c {word}-1 x{word}+1\n#   in g\ns/{word}/x&/\n')
        g = 'int\ng(void)\n{\n    one();\n    two();\n    three();\n    four();\n}\n'
        self.write('upstream/a.c', self.read('upstream/a.c') + g)
        done = self.weave('--check', 'upstream')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('7 fits, 0 moved, 0 changed, 0 gone; 5 rules, 1 internals, 1 mirrors; '
                      '2 files of PostgreSQL 18.99, 6 hunks, 11 lines;', done.stdout)

        g = g.replace('    two();\n', '').replace('    four();\n', '').replace('three();', 'three();\n    three();')
        f = self.read('upstream/a.c').rpartition('int\ng(')[0].replace('    return', '    two();\n    return')
        self.write('upstream/a.c', f + g)
        self.write('upstream/dir/b.c', self.read('upstream/dir/b.c').replace('a + 1', 'a'))
        done = self.weave('--check', 'upstream')
        self.assertNotEqual(done.returncode, 0)
        states = {line.rpartition('  ')[0].split('  ')[0]: line.split()[-1] for line in done.stdout.splitlines()}
        for name, state in {'call.sed': 'fits', 'fits.sed': 'fits', 'moves.sed': 'moved', 'changes.sed': 'changed',
                            'goes.sed': 'gone', 'internal ours/x.c': 'fits', 'mirror ours of upstreams': 'changed'}.items():
            self.assertEqual(states[name], state, name)
        self.assertIn('3 fits, 1 moved, 2 changed, 1 gone;', done.stdout)

    def test_rule_that_changes_much_says_why(self):
        self.write('upstream/a.c', self.read('upstream/a.c') + 'x\n' * 8)
        rule = '# target: a.c x-8 y+8\ns/^x/y/\n'
        self.write('repo/src/seams/much.sed', rule)
        done = self.weave('--check', 'upstream')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('seam much.sed: changes 16 lines', done.stderr)
        self.write('repo/src/seams/much.sed', '# Why so many: a test.\n' + rule)
        self.assertEqual(self.weave('--check', 'upstream').returncode, 0)


if __name__ == '__main__':
    unittest.main()
