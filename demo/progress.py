"""Tell what the demo is doing: a line per step with the time since the start, and how far a long step is."""

import contextlib
import sys
import threading
import time


class Progress:
    def __init__(self):
        self.began = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.lock = threading.Lock()
        self.pending = ""       # the step whose line is not ended yet

    def _write(self, text):
        print(text, end="", file=sys.stderr, flush=True)

    def _stamp(self):
        return f"[{time.monotonic() - self.began:4.0f} s] "

    @contextlib.contextmanager
    def step(self, text):
        began = time.monotonic()
        with self.lock:
            self.pending = self._stamp() + text
            self._write(self.pending + " ...")
        try:
            yield
        except BaseException:
            with self.lock:
                self._write("\n")
                self.pending = ""
            raise
        with self.lock:
            self._rewrite(f" ({time.monotonic() - began:.0f} s)")
            self._write("\n")
            self.pending = ""

    def _rewrite(self, tail):
        self._write(f"\r\033[K{self.pending}{tail}" if self.terminal else tail)

    def update(self, text):
        """How far the step is; only a terminal has room for it."""
        if self.terminal:
            with self.lock:
                self._rewrite(f" ... {text}")

    def note(self, text):
        with self.lock:
            self._write(f"{self._stamp()}{text}\n")
