"""gdb-tasks.py: show a backend's tasks, also those that are suspended, of a live process or of a core file.

    gdb -batch -p PID -x tools/gdb-tasks.py
    gdb -batch build/install/bin/postgres CORE -x tools/gdb-tasks.py

For each scope, innermost first: what each task of it awaits, and the stack on which it will go on.  Nothing in the
process is changed.  Loaded into an interactive gdb it adds the command `aio-tasks`.
"""
import gdb
import gdb.unwinder

# Where aio_context_jump() (src/backend/aio/task/context.c) leaves registers, in words from the saved stack pointer.
LAYOUTS = {
    'i386:x86-64': dict(sp='rsp', pc='rip', words=7,
                        saved={'r15': 0, 'r14': 1, 'r13': 2, 'r12': 3, 'rbx': 4, 'rbp': 5, 'rip': 6}),
    'aarch64': dict(sp='sp', pc='pc', words=20,
                    saved={**{f'x{n}': n - 19 for n in range(19, 31)}, 'pc': 11}),
}


class TaskUnwinder(gdb.unwinder.Unwinder):
    """While it has a stack pointer, whoever called the running function is the frame that was suspended there."""

    class Id:
        def __init__(self, sp, pc):
            self.sp, self.pc = sp, pc

    def __init__(self):
        super().__init__('suspended task')
        self.stack_pointer = None

    def __call__(self, pending):
        if self.stack_pointer is None or pending.level() != 0:
            return None
        layout = LAYOUTS[pending.architecture().name()]
        word = gdb.lookup_type('unsigned long')
        stack = gdb.Value(self.stack_pointer).cast(word.pointer())
        info = pending.create_unwind_info(self.Id(gdb.Value(self.stack_pointer).cast(word),
                                                  pending.read_register(layout['pc'])))
        for register, offset in layout['saved'].items():
            info.add_saved_register(register, stack[offset])
        info.add_saved_register(layout['sp'], gdb.Value(self.stack_pointer + 8 * layout['words']).cast(word))
        return info


UNWINDER = TaskUnwinder()
gdb.unwinder.register_unwinder(None, UNWINDER, replace=True)


def evaluate(expression):
    return gdb.parse_and_eval(expression)


def members(head, type_name, member):
    """The structs in a dlist_head."""
    struct = gdb.lookup_type(type_name)
    offset = next(field.bitpos // 8 for field in struct.fields() if field.name == member)
    node, end = head['head']['next'], head['head'].address
    while node != 0 and node != end:
        yield (node.cast(gdb.lookup_type('char').pointer()) - offset).cast(struct.pointer()).dereference()
        node = node['next']


def awaited(future):
    kind = future['ops']['name'].string()
    if kind != 'read':
        return kind
    wref = future.cast(gdb.lookup_type('AioIOFuture').pointer())['wref']
    handle = evaluate('pgaio_ctl')['io_handles'][int(wref['aio_index'])]
    if handle['generation'] != int(wref['generation_upper']) << 32 | int(wref['generation_lower']):
        return 'read, which is complete'
    smgr, state = handle['target_data']['smgr'], handle['state'].cast(gdb.lookup_type('PgAioHandleState'))
    return (f'read of relation file {int(smgr["rlocator"]["relNumber"])} block {int(smgr["blockNum"])}, '
            f'{state}, of process number {int(handle["owner_procno"])}')


def backtrace(context):
    """Frame 0 is where the process is now; what follows belongs to the task."""
    if gdb.selected_frame().architecture().name() not in LAYOUTS:
        print('    (where its stack is, is not known on this processor)')
        return
    UNWINDER.stack_pointer = int(context['stack_pointer'])
    gdb.invalidate_cached_frames()
    try:
        text = gdb.execute('backtrace -frame-arguments scalars', to_string=True)
    finally:
        UNWINDER.stack_pointer = None
        gdb.invalidate_cached_frames()
    for line in text.splitlines()[1:]:
        print('    ' + line)


def show():
    print(f'process {gdb.selected_inferior().pid}: held LWLocks {evaluate("num_held_lwlocks")}, '
          f'critical sections {evaluate("CritSectionCount")}, sibling locks {evaluate("aio_sibling_locks")}, '
          f'staged AIO {evaluate("pgaio_my_backend->num_staged_ios")}')
    current, scope = evaluate('aio_current_task'), evaluate('aio_current_scope')
    print('\nrunning: ' + ('no task' if current == 0 else f'task {current["id"]}'))
    gdb.execute('backtrace -frame-arguments scalars')
    while scope != 0:
        print(f'\nscope {scope}: {scope["last_id"]} tasks spawned, {scope["nsuspended"]} suspended')
        for task in members(scope['suspended'], 'AioTask', 'node'):
            if task['state'] != evaluate('AIO_TASK_SUSPENDED'):
                continue
            order = ', ordered' if task['options']['ordered'] else ''
            print(f'\n  task {task["id"]}{order}: {task["body"].format_string(symbols=True)} '
                  f'awaits {awaited(task["awaits"])}')
            backtrace(task['suspended_at'])
        scope = scope['parent']


class AioTasks(gdb.Command):
    """Show the tasks of this backend."""

    def __init__(self):
        super().__init__('aio-tasks', gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        show()


AioTasks()
if gdb.selected_inferior().pid:
    gdb.execute('set pagination off')
    show()
