# Upstream's build is a part of ours, and our directories are a part of upstream's.
#
# What: a subdir() for each directory that `links` lays into the tree, before the first of its new siblings, and our
#   headers among those that are installed for extensions.  meson.source_root() and meson.build_root(), and @SOURCE_ROOT@
#   and @BUILD_ROOT@ in commands, mean the top of the whole build.  Upstream means the top of its own tree, so it gets the
#   forms that say so.  The two targets that make a tarball name their output relative to the top of the build, and keep
#   build_root().
# Without it: nothing of ours is compiled, or installed, or tested; and upstream looks for its scripts in our repository, and
#   setup fails.
# Could disappear: never, as long as our code is linked into the server; the second part as soon as upstream asks for
#   meson 0.56, where the project_ forms began.
# Why so many: upstream names the top of its tree in fourteen files, and a subproject cannot be told to take it for the top.
#
# target: contrib/meson.build subdir+1 aio+1
# target: src/backend/meson.build subdir+1 pgawait+1
# target: src/bin/meson.build subdir+1 pg_test_aio+1
# target: src/fe_utils/meson.build pgawait+1 stream_file+1 c+1
# target: src/include/meson.build aio+1
# target: src/test/modules/meson.build subdir+1 aio+1
# target: contrib/dblink/meson.build build_root-1 project_build_root+1
# target: contrib/postgres_fdw/meson.build build_root-1 project_build_root+1
# target: meson.build BUILD_ROOT-1 SOURCE_ROOT-4 build_root-7 project_build_root+8 project_source_root+6 source_root-2
# target: src/backend/jit/llvm/meson.build BUILD_ROOT-2 SOURCE_ROOT-1 project_build_root+2 project_source_root+1
# target: src/bin/psql/meson.build SOURCE_ROOT-1 project_source_root+1
# target: src/common/unicode/meson.build SOURCE_ROOT-1 project_source_root+1
# target: src/include/catalog/meson.build SOURCE_ROOT-1 project_source_root+1
# target: src/include/nodes/meson.build project_source_root+1 source_root-1
# target: src/include/pch/meson.build project_source_root+3 source_root-3
# target: src/include/utils/meson.build SOURCE_ROOT-2 project_source_root+2
# target: src/interfaces/ecpg/test/meson.build SOURCE_ROOT-1 project_source_root+1
# target: src/makefiles/meson.build build_root-1 project_build_root+1 project_source_root+1 source_root-1
# target: src/pl/plperl/meson.build build_root-1 project_build_root+1
# target: src/test/modules/injection_points/meson.build build_root-1 project_build_root+1

s/^subdir\('(amcheck|brin)'\)$/subdir('aio')\n&/
s/^subdir\('access'\)$/subdir('pgawait')\n&/
s/^subdir\('pg_test_fsync'\)$/subdir('pg_test_aio')\n&/
s/^  'astreamer_file.c',$/&\n  'pgawait\/stream_file.c',/
s/^  'access',$/&\n  'aio',/
/@OUTPUT@/!s/meson\.(source|build)_root\(\)/meson.project_\1_root()/g
s/@SOURCE_ROOT@/' + meson.project_source_root() + '/g
s/@BUILD_ROOT@/' + meson.project_build_root() + '/g
s/'' \+ | \+ ''//g
