# Nothing of an earlier life is in flight when recovery begins, or when the postmaster has ended.
#
# What: the postmaster, whose children are gone, asks us whether what they have begun is complete, and sleeps for as long as we
#   say; before there are rings, we wait for what an earlier postmaster's processes have begun.
# Without it: a write that a process has submitted to io_uring before it was killed reaches the disk after recovery, over what
#   has been written and synced since: an old version of a page, or old WAL.
# Could disappear: when upstream writes by io_uring, and waits for that.
#
# target: src/backend/postmaster/postmaster.c AioNothingInFlight+1 AioPostmasterSleep+1
#   in PostmasterStateMachine ServerLoop
# target: src/backend/storage/aio/aio_init.c AioAwaitEarlierLife+1
#   in AioShmemInit

/^PostmasterStateMachine\(/,/^\}/ s|^(\t+)if \(CountChildren\(btmask_all_except\(B_LOGGER\)\) == 0\)$|\1if (CountChildren(btmask_all_except(B_LOGGER)) == 0 \&\& AioNothingInFlight())|
/^ServerLoop\(/,/^\}/ s|^(\s+)DetermineSleepTime\(\),$|\1AioPostmasterSleep(DetermineSleepTime()),|
/^AioShmemInit\(/,/^\}/ s|^\tpgaio_ctl = \(PgAioCtl \*\)$|\tAioAwaitEarlierLife();\n\n&|
