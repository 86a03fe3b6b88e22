"""Builds a simulator: the server's files that it is about, the little of a server, and a program, without PostgreSQL's source."""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
BACKEND = ROOT / 'src/backend'
FLAGS = ['-std=gnu11', '-O2', '-g', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-Wno-sign-compare',
         '-Wno-clobbered', '-Wno-missing-field-initializers']

# of each program: its own files, and those of src/backend; wal_included.c includes wal.c, wal_file.c and wal_end.c,
# quick_io.c and trim.c the server's files of these names, write_included.c write_behind.c, write_aio.c write.c, and
# write_buffers.c bufmgr_internals.c and freelist_internals.c
SOURCES = {
    'scheduler': (['server.c', 'scheduler.c', '-Wl,--wrap=mmap,--wrap=AioContextRefusal'], 'aio/task/*.c'),
    'wal_pipeline': (['server.c', 'wal_world.c', 'wal_disk.c', 'wal_server.c', 'wal_included.c', 'wal_pipeline.c',
                      '-Wl,--wrap=mmap'], 'aio/task/context.c'),
    'quick_io': (['server.c', 'quick_io.c', '-Wl,--wrap=mmap'], 'aio/task/context.c'),
    'apply_backlog': ([f'-iquote{HERE}/apply_include', 'server.c', 'apply_backlog.c', '-Wl,--wrap=mmap'], 'aio/task/context.c'),
    'trim': (['server.c', 'wal_world.c', 'trim.c', '-Wl,--wrap=mmap'], 'aio/task/context.c'),
    'write_behind': (['server.c', 'wal_world.c', 'write_disk.c', 'write_aio.c', 'write_buffers.c', 'write_included.c', 'write_behind.c',
                      '-DBLCKSZ=32', '-DRELSEG_SIZE=8', '-Wl,--wrap=mmap'], 'aio/task/context.c'),
}


def build(program, target, compiler='cc', flags=(), backend=BACKEND, simulate=HERE):
    """Compile the program of this name to the file `target`; raises CalledProcessError, whose stderr says why."""
    own, others = SOURCES[program]
    command = [compiler, *FLAGS, *flags, f'-I{simulate}/include', f'-I{ROOT}/src/include', f'-I{simulate}', f'-I{backend}', f'-I{backend}/access/transam',
               f'-I{backend}/aio/task', *sorted(backend.glob(others)),
               *(word if word.startswith('-') else simulate / word for word in own), '-o', target]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target
