"""Reads what AddressSanitizer, UndefinedBehaviorSanitizer and valgrind have written, and tells what is ours in it.

A report is ours if any of its stack frames is in a file of ours, or in a line that a seam has put into a file of
upstream's.  That is more than our bugs: tasks have a frame of ours at the bottom, whoever fails in them.  It has to be
looked at, then.
"""
import collections
import difflib
import functools
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent

Frame = collections.namedtuple('Frame', 'function path line')

SANITIZER_BEGIN = re.compile(r'==\d+==ERROR: (AddressSanitizer: .*)|(\S+):(\d+):\d+: (runtime error: .*)')
SANITIZER_FRAME = re.compile(r'\s+#\d+ 0x[0-9a-f]+ in (\S+) (?:(/?[^\s:]+):(\d+)|\(.*\))')
VALGRIND_PREFIX = re.compile(r'(?:==|\*\*)(\d+)(?:==|\*\*) ?')
VALGRIND_BEGIN, VALGRIND_END = 'VALGRIND-ERROR', 'VALGRIND-END'
VALGRIND_FRAME = re.compile(r'\s+(?:at|by) 0x[0-9A-F]+: (\S+) \((?:in \S+|([^:)]+):(\d+))\)')
# What hands out memory has not lost it: whoever has called it has.
ALLOCATES = re.compile(r'alloc|MemoryContext|new_list|lappend|lcons|strdup|mmap')
# What differs between two reports of one thing.
VARIES = re.compile(r'0x[0-9a-f]+|\b[0-9,]+\b', re.IGNORECASE)


class Report:
    def __init__(self, headline, log):
        self.headline, self.log, self.text, self.frames, self.count = headline, log, [], [], 1

    def lost_memory(self):
        return 'definitely lost' in self.headline

    def identity(self):
        """Equal for all reports of one thing."""
        known = [frame for frame in self.frames if frame.path]
        return VARIES.sub('', self.headline), tuple(known[:3])


def sanitizer_reports(log, text):
    report = None
    for line in text.splitlines():
        begins = SANITIZER_BEGIN.search(line)
        if begins:
            report = Report(begins[1] or begins[4], log)
            if begins[2]:
                report.frames.append(Frame('', begins[2], int(begins[3])))
            yield report
        if report:
            report.text.append(line)
            match = SANITIZER_FRAME.match(line)
            if match:
                frame = Frame(match[1], match[2], int(match[3] or 0))
                # UBSan names the place before the stack, which begins with it.
                if report.frames and not report.frames[-1].function:
                    report.frames.pop()
                report.frames.append(frame)


def valgrind_reports(log, text):
    """Processes that were forked share a log, line by line."""
    running = {}
    for line in text.splitlines():
        prefix = VALGRIND_PREFIX.match(line)
        if not prefix:
            continue
        process, line = prefix[1], line[prefix.end():]
        report = running.get(process)
        if line.startswith(VALGRIND_BEGIN):
            running[process] = Report('', log)
        elif report and line.startswith(VALGRIND_END):
            yield running.pop(process)
        elif report:
            report.headline = report.headline or line.strip()
            report.text.append(line)
            match = VALGRIND_FRAME.match(line)
            if match:
                report.frames.append(Frame(match[1], match[2], int(match[3] or 0)))


class Reader:
    """Knows the build that the reports are about."""

    def __init__(self, build):
        self.build = build
        self.woven = next((ROOT / 'subprojects').glob('postgresql-*/')).resolve()
        self.pristine = ROOT / 'build/source' / self.woven.name

    @functools.lru_cache(maxsize=None)
    def is_ours(self, path, line):
        if not path:
            return False
        real = pathlib.Path(os.path.realpath(self.build / path))
        if real.is_relative_to(ROOT / 'src'):
            return True
        return real.is_relative_to(self.woven) and line in self.seamed(real.relative_to(self.woven))

    @functools.lru_cache(maxsize=None)
    def seamed(self, file):
        """The lines of an upstream file that a seam has changed."""
        before, after = self.pristine / file, self.woven / file
        if not before.exists() or not after.exists():
            return set()
        before, after = before.read_text().splitlines(), after.read_text().splitlines()
        if before == after:
            return set()
        changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        return {line + 1 for kind, _, _, first, last in changes if kind != 'equal' for line in range(first, last)}

    def our_frame(self, report):
        """The innermost frame that is ours, or None."""
        if report.lost_memory():
            frames = [frame for frame in report.frames if not ALLOCATES.search(frame.function)][:1]
        else:
            frames = report.frames
        return next((frame for frame in frames if self.is_ours(frame.path, frame.line)), None)

    def shown(self, frame):
        path = pathlib.Path(os.path.realpath(self.build / frame.path))
        for base in (ROOT / 'src', self.woven):
            if path.is_relative_to(base):
                path = path.relative_to(base.parent if base.name == 'src' else base)
        return f'{frame.function} {path}:{frame.line}'.strip()

    def read(self, directory):
        """([report of ours], [report of upstream's]), each thing once, the most frequent first."""
        found = {}
        for log in sorted(directory.iterdir()):
            text = log.read_text(errors='replace')
            reports = valgrind_reports if log.name.startswith('valgrind') else sanitizer_reports
            for report in reports(log, text):
                known = found.setdefault(report.identity(), report)
                if known is not report:
                    known.count += 1
        ours, upstreams = [], []
        for report in sorted(found.values(), key=lambda report: -report.count):
            if self.our_frame(report):
                ours.append(report)
            elif not report.lost_memory():
                # PostgreSQL's programs give their memory back by ending.
                upstreams.append(report)
        return ours, upstreams

    def describe(self, report):
        place = self.our_frame(report) or next((frame for frame in report.frames if frame.path), None)
        where = f'in {self.shown(place)}' if place else 'without a known frame'
        headline = re.sub(r' (at pc|on address) 0x.*', '', report.headline)
        return f'{headline}, {where}, {report.count} times, first in {os.path.relpath(report.log, ROOT)}'
