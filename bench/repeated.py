"""A session that does the same again and again, beside what is measured."""

import itertools
import threading
import time


class Repeated:
    """A session that runs one statement after the other, until the `with` block that it is made for ends."""

    def __init__(self, session, statements):
        self.session, self.statements = session, statements
        self.seconds = []       # that each took
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.work)

    def work(self):
        for statement in itertools.cycle(self.statements):
            if self.stopped.is_set():
                break
            began = time.monotonic()
            self.session.query(statement)
            self.seconds.append(time.monotonic() - began)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
