# Shell functions of the front door.  Source this file; it sets $root and $account and goes to $root.
# shellcheck shell=bash

# With it, cd would go elsewhere, and say so.
unset CDPATH
# A function fails in $(...), too, where its first command does.
shopt -s inherit_errexit
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export PGAWAIT_ROOT=$root PGAWAIT_RUNAS=$root/tools/as-account

# The system's own compiler and Python come first: what a user keeps in his home is out of the account's reach.
system=/usr/bin:/bin:/usr/sbin:/sbin
[[ $PATH == "$system"* ]] || export PATH=$system:$PATH
umask 022
cd "$root" || exit 1

# PostgreSQL refuses to run as root, so root works through this account.
account=pgawait
# Who has built here goes on building, and not that account: it could not write there, nor he afterwards.
if [ "$(id -u)" -eq 0 ] && [ -d build ]; then
    builder=$(stat -L -c %U build)
    case $builder in root | UNKNOWN) ;; *) account=$builder ;; esac
fi

note() { printf '%s\n' "$*" >&2; }
trap 'note "pgawait: interrupted; the same command goes on from here"; exit 130' INT
die() { printf 'pgawait: %s\n' "$*" >&2; exit 1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# The value of the option that comes first: take_value WHAT "$@".  Sets $value.  An option whose value is missing, or empty,
# ends the program.
take_value() {
    [ -n "${3:-}" ] || die "$2 needs $1"
    value=$3
}

# What the user means by the name of a file.
from_here() { (cd "${PGAWAIT_FROM:-$root}" && realpath -m -- "$1"); }

# Run a command as an account: run_as ACCOUNT COMMAND...  Only root can do so for another one.  It has the groups that it has
# after a login: a key for SSL may be readable for a group only.
run_as() {
    local who=$1 home
    shift
    if ! is_root || [ "$who" = root ]; then
        "$@"
        return
    fi
    home=$(getent passwd "$who" | cut -d: -f6)
    setpriv --reuid="$who" --regid="$(id -g "$who")" --init-groups \
        env -u TMPDIR -u XDG_RUNTIME_DIR HOME="${home:-/}" USER="$who" LOGNAME="$who" "$@"
}

# Run a command as the account that builds and runs servers: this one, unless it is root.
as_account() { run_as "$account" "$@"; }

# Run a command as whom build/ belongs to.  That is whoever is superuser of a server that it runs, or has code built here, and
# what has a name there may be a link by now.  So root writes there, locks, or runs what is there, only by this function, or
# as_account, or below a directory elsewhere that is its own.
in_build() { run_as "$(stat -L -c %U build)" "$@"; }

# Make the account and build/, which belongs to it.
prepare_account() {
    if ! is_root; then
        { mkdir -p build && [ -w build ]; } 2>/dev/null ||
            die "no permission to write $root/build: run as its owner, or as root"
        return
    fi
    if ! id "$account" >/dev/null 2>&1; then
        useradd --system --user-group --create-home --home-dir "/var/lib/$account" --shell /usr/sbin/nologin "$account" ||
            die "cannot create the system account $account, which builds and runs servers for root"
    fi
    # This follows a link to a larger disk, which is in a directory that the account cannot write.
    install -d -o "$account" -g "$(id -g "$account")" build
    let_pass "$root" rx
    as_account test -r "$root/meson.build" ||
        die "the account $account cannot read this checkout: chmod -R go+rX $root"
}

# Let the account read a directory, or just pass through it (let_pass DIRECTORY rx|x): a checkout of root's is often
# below a private one, such as /root.  `clean` takes the permission back.
let_pass() {
    [ "$1" != / ] || return 0
    let_pass "$(dirname "$1")" x
    if as_account test -x "$1" && { [ "$2" = x ] || as_account test -r "$1"; }; then
        return
    fi
    tools/install-packages acl
    setfacl --modify "user:$account:$2" "$1" ||
        die "the account $account cannot pass through $1: move the checkout, or chmod o+x $1"
    { cat build/.let-pass 2>/dev/null || true; echo "$account $1"; } | in_build tee build/.let-pass.new >/dev/null
    in_build mv -f build/.let-pass.new build/.let-pass
    note "let the account $account pass through $1, until ./pgawait clean"
}

# Unpack the pinned tarball of PostgreSQL as it is, and print where: unpack_postgresql TARBALL.  For who holds the lock of
# the source.  What is there is complete: it gets its name when all of it has been written.
unpack_postgresql() {
    local tarball=$1 release pristine sum
    release=$(tar -tf "$tarball" 2>/dev/null | head -n 1 | cut -d/ -f1 || true)
    [ -n "$release" ] || die "$tarball cannot be read: remove it and build again"
    pristine=build/source/$release
    sum=$(sha256sum <"$tarball")
    if ! [ -d "$pristine" ] || [ "$(cat "$pristine.tarball" 2>/dev/null || true)" != "$sum" ]; then
        note "unpacking $release"
        # root may do this: rm follows no links on its way
        rm -rf build/source build/source.new
        in_build mkdir -p build/source.new
        in_build tar -xf "$tarball" -C build/source.new --no-same-owner ||
            die "$tarball cannot be unpacked: is there room in $root/build?"
        in_build tee "build/source.new/$release.tarball" <<<"$sum" >/dev/null
        in_build mv build/source.new build/source
    fi
    echo "$pristine"
}

# Where the wrap file has the woven tree; the version of a meson project; and that of packages (package_version TREE).
woven_tree() { echo "subprojects/$(sed -n 's/^directory *= *//p' subprojects/postgresql.wrap)"; }
version_of() { sed -n "/^ *version: '/ { s/^[^']*'\([^']*\)'.*/\1/p; q }" "$1/meson.build"; }
package_version() {
    local ours
    ours=$(version_of .)
    # a version of ours that is being developed comes before the one that it becomes
    echo "$(version_of "$1")+${ours/devel/\~devel}"
}

# The time that packages say they are of, in seconds: that of the last commit, or what a release tarball has for it, or whoever
# has no git.
source_date() {
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        echo "$SOURCE_DATE_EPOCH"
    elif ! [ -e .git ] || ! git -c safe.directory="$root" log -1 --format=%ct 2>/dev/null; then
        stat -c %Y CHANGELOG.md
    fi
}

# Run a command with its output in a log: run_logged LABEL LOG COMMAND...
run_logged() {
    local label=$1 log=$2 status=0
    shift 2
    "$@" 2>&1 | in_build /usr/bin/python3 tools/progress "$label" "$log" || status=$?
    if [ "$status" -ne 0 ]; then
        note "--- the end of $log:"
        in_build tail -n 25 "$log" >&2
        die "$label failed; all of its output is in $log"
    fi
}

# Only one of us works on this part of build/ (lock_build PART), until we take the lock of another part or end.
lock_build() {
    local file=build/.lock-$1
    # who may replace a file need not be able to write it: it may be root's, of an earlier version
    in_build touch "$file" 2>/dev/null || { in_build rm -f "$file" && in_build touch "$file"; } || die "cannot lock $root/$file"
    # Reading it is enough.  If it is not what it was any more, nothing but its name has been opened.
    exec 9<"$file"
    [ "$(stat -L -c '%u %s' /proc/self/fd/9)" = "$(stat -L -c %u build) 0" ] || die "$root/$file is no lock of ours: remove it"
    if ! flock -n 9; then
        note "waiting for another pgawait that is building $1"
        flock 9
    fi
}

# Does a server run on a data directory?  As PostgreSQL judges, a process of somebody else has but the number of one that is
# gone, as after a reboot.  A file that says no more than a number is not complete, and tells nothing.
server_runs() {
    local pid lines
    mapfile -t -n 3 lines < <(cat "$1/postmaster.pid" 2>/dev/null || true)
    pid=${lines[0]:-}
    pid=${pid#-}
    [[ $pid =~ ^[1-9][0-9]*$ ]] && [ -d "/proc/$pid" ] || return 1
    [ -z "${lines[2]:-}" ] || [ "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null)" = "$(stat -L -c %u "$1")" ]
}
