"""Builds a simulator: the core's files, the little of a server, and a program, without PostgreSQL's source."""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
CORE = ROOT / 'src/backend/aio/task'
FLAGS = ['-std=gnu11', '-O2', '-g', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-Wno-sign-compare',
         '-Wno-clobbered', '-Wl,--wrap=mmap,--wrap=AioContextRefusal']


def build(program, target, compiler='cc', flags=(), core=CORE):
    """Compile the program of this name to the file `target`; raises CalledProcessError, whose stderr says why."""
    command = [compiler, *FLAGS, *flags, f'-I{HERE}/include', f'-I{ROOT}/src/include', f'-I{HERE}', f'-I{core}',
               *sorted(core.glob('*.c')), HERE / 'server.c', HERE / f'{program}.c', '-o', target]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target
