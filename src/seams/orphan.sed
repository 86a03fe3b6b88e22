# A process that cannot exit in order when the postmaster dies does not.
#
# What: a call of ours instead of each proc_exit() that follows the death of the postmaster.
# Without it: a transaction that waits for its commit to be written is aborted after its commit record, and an abort
# that waits for I/O is left in the middle.
# Could disappear: when upstream waits for I/O in critical sections.
#
# target: src/backend/storage/ipc/waiteventset.c AioExitWithoutPostmaster+5 proc_exit-5
#   in WaitEventSetWaitBlock

s|^(\t+)proc_exit\(1\);$|\1AioExitWithoutPostmaster();|
