# A process that is in a critical section when the postmaster dies does not exit in order.
#
# What: a call of ours instead of each proc_exit() that follows the death of the postmaster.
# Without it: a transaction that waits for its commit to be written is aborted after its commit record.
# Could disappear: when upstream waits for I/O in critical sections.
#
# target: src/backend/storage/ipc/waiteventset.c AioExitWithoutPostmaster+5 proc_exit-5

s|^(\t+)proc_exit\(1\);$|\1AioExitWithoutPostmaster();|
