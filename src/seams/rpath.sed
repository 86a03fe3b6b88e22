# What is installed may be moved.
#
# What: programs, libraries and modules, and the programs for tests of extensions, look for libraries relative to where they
#   are, and not where the build was told to install them.
# Without it: a server that is moved takes libpq from its old place, which may be of another version, or not be there.
# Could disappear: when upstream's build does so, or not at all, as distributions set no path.
#
# target: meson.build dir_lib-2 dir_prefix-3 ORIGIN+4
# target: src/test/isolation/meson.build install_rpath+2 ORIGIN+4
# target: src/test/regress/meson.build install_rpath+1 ORIGIN+2

s/^  bin_install_rpaths \+= dir_prefix \/ dir_lib$/  bin_install_rpaths += '$ORIGIN\/..' \/ dir_lib/
s/^  lib_install_rpaths \+= dir_prefix \/ dir_lib$/  lib_install_rpaths += '$ORIGIN'/
s/^  mod_install_rpaths \+= dir_prefix \/ dir_lib$/  mod_install_rpaths += '$ORIGIN:$ORIGIN\/..'/
s/^    'install_dir': dir_pgxs \/ 'src\/test\/(regress|isolation)',$/&\n    'install_rpath': '$ORIGIN\/..\/..\/..\/..:$ORIGIN\/..\/..\/..\/..\/..',/
