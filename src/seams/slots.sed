# What we register in a process, or in a server, takes no place of what extensions may register.
#
# What: more callbacks for invalidations and exits, and more timeouts, whose ids are ours and not looked for; more custom
#   wait events.
# Without it: an extension that registers ten callbacks, as it can in PostgreSQL, ends the process, or we do.
# Could disappear: if upstream's lists grew.
# Why so many: each list has a constant, and that of timeouts is named where it is gone through.
#
# target: src/backend/utils/cache/inval.c AIO_SYSCACHE_CALLBACKS+1 AIO_RELCACHE_CALLBACKS+1
# target: src/backend/storage/ipc/ipc.c AIO_EXITS+1
# target: src/backend/utils/misc/timeout.c AIO_TIMEOUTS+4 AIO_TIMEOUT_IS_OURS+1 id+1
#   in InitializeTimeouts RegisterTimeout disable_all_timeouts
# target: src/backend/utils/activity/wait_event.c AIO_WAIT_EVENTS+1
# include: aio/slots.h

s|^(#define MAX_SYSCACHE_CALLBACKS )([0-9]+)$|\1(\2 + AIO_SYSCACHE_CALLBACKS)|
s|^(#define MAX_RELCACHE_CALLBACKS )([0-9]+)$|\1(\2 + AIO_RELCACHE_CALLBACKS)|
s|^(#define MAX_ON_EXITS )([0-9]+)$|\1(\2 + AIO_EXITS)|
s|^(static timeout_params .*\[MAX_TIMEOUTS)(\];)$|\1 + AIO_TIMEOUTS\2|
s|^(\tfor \(i = 0; i < MAX_TIMEOUTS)(; i\+\+\))$|\1 + AIO_TIMEOUTS\2|
/^RegisterTimeout\(/,/^}/ s|^(\tif \(id >= USER_TIMEOUT)(\))$|\1 \&\& !AIO_TIMEOUT_IS_OURS(id)\2|
s|^(#define WAIT_EVENT_CUSTOM_HASH_MAX_SIZE\t)([0-9]+)$|\1(\2 + AIO_WAIT_EVENTS)|
