# allow-io-uring.jq: a seccomp profile of a container engine, with io_uring allowed.
#
#     jq -f package/image/allow-io-uring.jq /usr/share/containers/seccomp.json >seccomp-io-uring.json
["io_uring_setup", "io_uring_enter", "io_uring_register"] as $calls
| .syscalls |= map(.names -= $calls | select(.names != []))
| .syscalls += [{names: $calls, action: "SCMP_ACT_ALLOW"}]
