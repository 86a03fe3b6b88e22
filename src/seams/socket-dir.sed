# A package says where the server's socket is.
#
# What: an option of the build, socket_dir, for the directory in which servers make their socket and clients look for it, where
#   nobody says anything else.
# Without it: it is /tmp, and programs of our packages would not find servers that Debian's tools have configured.
# Could disappear: when upstream has such an option.
#
# target: meson_options.txt socket_dir+1 option+1
# target: meson.build DEFAULT_PGSOCKET_DIR+1 cdata+1 get_option+1 set_quoted+1 socket_dir+1
# target: src/include/pg_config_manual.h DEFAULT_PGSOCKET_DIR+1 endif+1 ifndef+1

/^option\('pgport', type/i\
option('socket_dir', type: 'string', value: '/tmp',\
  description: 'Default directory of the socket of server and clients')\

s/^cdata\.set_quoted\('DEF_PGPORT_STR', .*$/&\ncdata.set_quoted('DEFAULT_PGSOCKET_DIR', get_option('socket_dir'))/
s/^#define DEFAULT_PGSOCKET_DIR  "\/tmp"$/#ifndef DEFAULT_PGSOCKET_DIR\n&\n#endif/
