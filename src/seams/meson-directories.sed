# Our directories in upstream's build.
#
# What: a subdir() for each directory that `links` lays into the tree, before the first of its new siblings, and our
#   headers among those that are installed for extensions.
# Without it: nothing of ours is compiled, or installed, or tested.
# Could disappear: never, as long as our code is linked into the server.
#
# target: contrib/meson.build subdir+1 aio+1
# target: src/backend/executor/meson.build subdir+1 aio+1
# target: src/backend/meson.build subdir+1 aio+1
# target: src/bin/meson.build subdir+1 pg_test_aio+1
# target: src/include/meson.build aio+1
# target: src/test/modules/meson.build subdir+1 aio+1

s/^subdir\('(access|amcheck|brin)'\)$/subdir('aio')\n&/
s/^subdir\('pg_test_fsync'\)$/subdir('pg_test_aio')\n&/
s/^backend_sources \+= files\($/subdir('aio')\n\n&/
s/^  'access',$/&\n  'aio',/
