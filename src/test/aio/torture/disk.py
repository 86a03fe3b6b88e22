"""The disk that loses power, fails, stalls, or is full: tools/fault-disk, which ../faultfs/README.md explains.

This is all that torture knows of it.  Owner: whoever calls mount() calls unmount(); the files stay.
"""
import os
import socket

from cluster import ROOT, pglib

PROGRAM = ROOT / 'tools' / 'fault-disk'


def unusable():
    """Why there is no such disk here, or None."""
    if not PROGRAM.exists():
        return 'there is no tools/fault-disk'
    if not os.path.exists('/dev/fuse'):
        return 'there is no /dev/fuse'
    return None


class FaultDisk:
    def __init__(self, directory, seed):
        self.directory, self.seed = directory, seed
        self.files = directory.with_name(directory.name + '.files')
        self.answers = None

    def mount(self):
        pglib.run([PROGRAM, 'mount', self.directory, '-o', f'uncached,seed={self.seed}'])
        # a socket's path may not be long
        place = os.open(self.files / '.faultfs', os.O_PATH)
        try:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(f'/proc/self/fd/{place}/control')
        finally:
            os.close(place)
        self.answers = self.socket.makefile()

    def command(self, text):
        """Carry out a command; what it has answered, without OK."""
        self.socket.sendall(text.encode() + b'\n')
        answer = self.answers.readline().strip()
        if not answer.startswith('OK'):
            raise pglib.PgError(f'{PROGRAM.name}: {text}: {answer}')
        return answer[2:].strip()

    def status(self):
        return dict(word.split('=', 1) for word in self.command('status').split())

    def heal(self):
        self.command('remove all')
        self.command('quota none')

    def lose_power(self, torn, keep):
        """What was not synced is lost, or part of it; {what: how much}."""
        return dict(word.split('=', 1) for word in self.command(f'power-loss torn={torn} keep={keep}').split())

    def unmount(self):
        if self.answers:
            self.answers.close()
            self.socket.close()
            self.answers = None
            pglib.run([PROGRAM, 'umount', self.directory])
