# Shell functions of the front door.  Source this file; it sets $root and $account and goes to $root.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
export PGAWAIT_ROOT=$root PGAWAIT_RUNAS=$root/tools/as-account

# The system's own compiler and Python come first: what a user keeps in his home is out of the account's reach.
system=/usr/bin:/bin:/usr/sbin:/sbin
[[ $PATH == "$system"* ]] || export PATH=$system:$PATH
umask 022
cd "$root" || exit 1

# PostgreSQL refuses to run as root, so root works through this account.
account=pgawait
account_home=/var/lib/pgawait

note() { printf '%s\n' "$*" >&2; }
trap 'note "pgawait: interrupted; the same command goes on from here"; exit 130' INT
die() { printf 'pgawait: %s\n' "$*" >&2; exit 1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# Run a command as the account that builds and runs servers: this one, unless it is root.  It has the groups that it has
# after a login: a key for SSL may be readable for a group only.
as_account() {
    if ! is_root; then
        "$@"
        return
    fi
    setpriv --reuid="$account" --regid="$(id -g "$account")" --init-groups \
        env -u TMPDIR -u XDG_RUNTIME_DIR HOME="$account_home" USER="$account" LOGNAME="$account" "$@"
}

# Make the account and build/, which belongs to it.
prepare_account() {
    if ! is_root; then
        { mkdir -p build && [ -w build ]; } 2>/dev/null ||
            die "no permission to write $root/build: run as its owner, or as root"
        return
    fi
    if ! id "$account" >/dev/null 2>&1; then
        useradd --system --user-group --create-home --home-dir "$account_home" --shell /usr/sbin/nologin "$account" ||
            die "cannot create the system account $account, which builds and runs servers for root"
    fi
    install -d -o "$account" -g "$account" build
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
    echo "$account $1" >>build/.let-pass
    note "let the account $account pass through $1, until ./pgawait clean"
}

# Unpack the pinned tarball of PostgreSQL as it is, and print where: unpack_postgresql TARBALL.  For who holds the lock of
# the source.
unpack_postgresql() {
    local tarball=$1 release pristine
    release=$(tar -tf "$tarball" 2>/dev/null | head -n 1 | cut -d/ -f1 || true)
    [ -n "$release" ] || die "$tarball cannot be read: remove it and build again"
    pristine=build/source/$release
    if [ "$(cat "$pristine.tarball" 2>/dev/null)" != "$(sha256sum <"$tarball")" ]; then
        note "unpacking $release"
        rm -rf build/source
        mkdir -p build/source
        tar -xf "$tarball" -C build/source --no-same-owner
        sha256sum <"$tarball" >"$pristine.tarball"
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
    "$@" 2>&1 | /usr/bin/python3 tools/progress "$label" "$log" || status=$?
    if [ "$status" -ne 0 ]; then
        note "--- the end of $log:"
        tail -n 25 "$log" >&2
        die "$label failed; all of its output is in $log"
    fi
}

# Only one of us works on this part of build/ (lock_build PART), until we take the lock of another part or end.
lock_build() {
    exec 9>"build/.lock-$1"
    if ! flock -n 9; then
        note "waiting for another pgawait that is building $1"
        flock 9
    fi
}
