"""Clean systems of other releases, in build/hosts/RELEASE, for tests that need a user's machine.  For root.

A system is made by debootstrap once, and kept as a tarball in build/hosts/cache, as are packages that are downloaded in
it.  What runs in it has namespaces of its own, with which all that was mounted and begun goes.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.append(str(ROOT / 'tools'))
from suites import logged     # noqa: E402

HOSTS = ROOT / 'build' / 'hosts'
CACHE = HOSTS / 'cache'
DEBIAN, UBUNTU = ('bookworm', 'trixie', 'testing'), ('noble', 'jammy')


class Unavailable(Exception):
    """No mirror serves this release."""


def ubuntu_keyring():
    """Debian 12 has no package of it; a system that was made here may have."""
    kept = CACHE / 'ubuntu-archive-keyring.gpg'
    for system in (pathlib.Path('/'), *(HOSTS / release for release in DEBIAN)):
        keyring = system / 'usr/share/keyrings/ubuntu-archive-keyring.gpg'
        if not kept.exists() and (system / 'usr/bin/apt-get').exists():
            subprocess.run(['chroot', system, 'apt-get', '-q', '-y', 'install', 'ubuntu-keyring'],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if keyring.exists():
                shutil.copy(keyring, kept)
    if not kept.exists():
        raise Unavailable('there is no package ubuntu-keyring, to check what mirrors serve')
    return kept


def debootstrap_directory(release):
    """debootstrap's own, with a script for a release of Ubuntu's that is newer than it: they are all the same."""
    own = pathlib.Path('/usr/share/debootstrap')
    if release not in UBUNTU or (own / 'scripts' / release).exists():
        return own
    copy = CACHE / 'debootstrap'
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(own, copy, symlinks=True)
    (copy / 'scripts' / release).symlink_to('gutsy')
    return copy


def bootstrap(release):
    """A clean system in build/hosts/RELEASE, out of its tarball."""
    host, tarball = HOSTS / release, CACHE / f'{release}.tar'
    if not tarball.exists():
        # Of Ubuntu, with the packages that an installation may use without being told.
        keyring = [f'--keyring={ubuntu_keyring()}', '--components=main,universe'] if release in UBUNTU else []
        shutil.rmtree(host, ignore_errors=True)
        # Without a mirror, debootstrap takes the default of the release.
        status = logged(f'{release}: debootstrap', HOSTS / f'{release}-debootstrap.log',
                        ['debootstrap', '--variant=minbase', '--force-check-gpg', *keyring, release, host],
                        {**os.environ, 'DEBOOTSTRAP_DIR': str(debootstrap_directory(release))})
        if status != 0:
            shutil.rmtree(host, ignore_errors=True)
            raise Unavailable(f'debootstrap failed, see build/hosts/{release}-debootstrap.log')
        part = tarball.with_suffix('.part')
        subprocess.run(['tar', '-C', host, '-cf', part, '.'], check=True)
        part.rename(tarball)
        return host
    shutil.rmtree(host, ignore_errors=True)
    host.mkdir()
    subprocess.run(['tar', '-C', host, '-xf', tarball], check=True)
    return host


def copy_checkout(host):
    """What git has, or would have, of this checkout, in a place where only root may look around."""
    there = host / 'root' / 'pgawait'
    there.mkdir(parents=True)
    files = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT,
                           check=True, capture_output=True).stdout
    files = b'\0'.join(name for name in files.split(b'\0') if (ROOT / os.fsdecode(name)).exists())
    packed = subprocess.run(['tar', '-c', '--null', '-T', '-'], cwd=ROOT, check=True, input=files,
                            capture_output=True).stdout
    subprocess.run(['tar', '-x', '-C', there, '--no-same-owner'], check=True, input=packed)
    for name in ('resolv.conf', 'hosts'):
        shutil.copy(f'/etc/{name}', host / 'etc' / name)


def enter(host, release, log, *command):
    """Run a command of the checkout in a system, whose output goes to the log; returns its exit status."""
    archives = CACHE / f'{release}-packages'
    (archives / 'partial').mkdir(parents=True, exist_ok=True)
    return logged(log.stem, log, ['unshare', '--mount', '--pid', '--ipc', '--fork', '--kill-child', '--propagation=private',
                                  ROOT / 'src/test/hosts/enter', host, archives, *command])
