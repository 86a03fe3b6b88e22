"""Containers, run by podman, whose store and state are below one directory and of no concern to the rest of the system.

What calls this has namespaces of its own (enter_namespaces), with which all that was mounted and begun goes.
"""
import json
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
import threading

PATIENCE = 60      # seconds, for what should take a moment
ENTERED = 'PGAWAIT_IMAGE_NAMESPACES'
CGROUPS = pathlib.Path('/sys/fs/cgroup')


def enter_namespaces():
    """Begin again, in namespaces of our own."""
    if ENTERED not in os.environ:
        os.environ[ENTERED] = 'yes'
        os.execvp('unshare', ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc',
                              '--propagation=private', sys.executable, *sys.argv])
    # podman's crun works with one kind of cgroups or the other, but some hosts have both.
    if (CGROUPS / 'unified').exists():
        subprocess.run(['umount', '--recursive', '--lazy', CGROUPS], check=True)
        subprocess.run(['mount', '-t', 'cgroup2', 'cgroup2', CGROUPS], check=True)


class Engine:
    def __init__(self, work):
        # crun gives to a container's account what the container reads and writes, and thus /dev/null.
        null = work / 'null'
        os.mknod(null, stat.S_IFCHR, os.makedev(1, 3))
        null.chmod(0o666)
        subprocess.run(['mount', '--bind', null, os.devnull], check=True)
        # Limits that a host without CAP_SYS_RESOURCE can set.
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 4096)
        self.command = ['podman', '--root', work / 'store', '--runroot', work / 'run', '--tmpdir', work / 'tmp',
                        '--cgroup-manager', 'cgroupfs', '--events-backend', 'none', '--runtime', 'crun']
        # podman would give each account a name, as no other engine does.
        self.options = ['--passwd=false', '--network=none', '--cgroups=disabled', f'--ulimit=nofile={files}:{files}',
                        '--ulimit=nproc=1024:1024']
        self.made = 0

    def podman(self, *arguments):
        done = subprocess.run([*self.command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace', timeout=PATIENCE)
        return done.returncode, done.stdout.strip()

    def must(self, *arguments):
        status, said = self.podman(*arguments)
        if status != 0:
            raise RuntimeError(f'podman {" ".join(map(str, arguments))}: {said}')
        return said

    def run(self, image, *command, options=(), **environment):
        """Begin a container; returns it."""
        self.made += 1
        return Container(self, f'c{self.made}', image, command,
                         [*options, *(f'--env={name}={value}' for name, value in environment.items())])

    def volume(self):
        self.made += 1
        return self.must('volume', 'create', f'v{self.made}')


class Container:
    """One that runs in the foreground of a process of ours, which keeps what it says."""

    def __init__(self, engine, name, image, command, options):
        self.engine, self.name, self.said, self.ended = engine, name, '', False
        self.more = threading.Condition()
        self.process = subprocess.Popen([*engine.command, 'run', '--name', name, *engine.options, *options, image, *command],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors='replace')
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.more:
                self.said += line
                self.more.notify_all()
        with self.more:
            self.ended = True
            self.more.notify_all()

    def says(self, pattern, times=1):
        """Wait until it has said that so many times; False if it has ended before."""
        def said():
            return len(re.findall(pattern, self.said)) >= times
        with self.more:
            self.more.wait_for(lambda: said() or self.ended, PATIENCE)
            return said()

    def ready(self, again=False):
        """Wait for the server: a new cluster's is started twice, and is ready for others the second time."""
        return self.says('database system is ready to accept connections', 1 if again else 2)

    def status(self):
        """Wait for its end; its exit status, or None if it does not end by itself."""
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill('SIGKILL')
            self.process.wait(PATIENCE)
            status = None
        self.reader.join(PATIENCE)
        return status

    def stop(self):
        """By the signal that the image names; its exit status, which is that of SIGKILL if it takes too long."""
        self.engine.podman('stop', '--time', '60', self.name)
        return self.status()

    def kill(self, signal):
        self.engine.podman('kill', '--signal', signal, self.name)

    def execute(self, *command, user=None):
        """(exit status, output)"""
        return self.engine.podman('exec', *([f'--user={user}'] if user else []), self.name, *command)

    def sql(self, statement, database='postgres', user='postgres', *options):
        return self.execute('psql', '-XAt', '-v', 'ON_ERROR_STOP=1', '-U', user, '-d', database, *options, '-c', statement)[1]

    def process_id(self):
        return int(json.loads(self.engine.must('inspect', self.name))[0]['State']['Pid'])
