#!/bin/sh
# Installs what building and testing queuekeeper needs and this machine lacks: the server programs of Postgres,
# and a C compiler for Go's race detector. It starts no service and makes no database. Where it may not or cannot
# install, it prints the command to type and exits 1. With all in place it does nothing.
#
# The process managers that the tests of deploy/ run, and nginx for `make rates`, are wanted, not needed: without one
# what runs it is left out by name, and this script says which it could not install and exits 0.
#
# DRY_RUN=1 shows what it would install. PG_BIN_DIRS are the folders looked in for Postgres, as internal/localpg does.
set -eu
PATH=$PATH:/usr/sbin # where nginx is, and not every user looks

: "${DRY_RUN:=}"
: "${PG_BIN_DIRS:=$(dirname "$(command -v postgres || echo /none)") $(pg_config --bindir 2>/dev/null || true)
	/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin}"

# has_postgres looks for a whole server of version 14 or newer, with pgbench and psql beside it.
has_postgres() {
	for dir in $PG_BIN_DIRS; do
		for program in initdb pg_ctl postgres pgbench psql; do
			[ -x "$dir/$program" ] || continue 2
		done
		major=$("$dir/postgres" --version | sed -E 's/.*\(PostgreSQL\) ([0-9]+).*/\1/')
		[ "$major" -ge 14 ] && return 0
	done
	return 1
}

has_compiler() {
	command -v gcc >/dev/null || command -v clang >/dev/null
}

# missing_wanted prints the packages of what is wanted and not here.
missing_wanted() {
	for of in runsv:runit s6-supervise:s6 supervisord:supervisor foreman:ruby-foreman tini:tini dumb-init:dumb-init \
		nginx:nginx; do
		command -v "${of%:*}" >/dev/null || echo "${of#*:}"
	done
}

# as_root never asks for a password.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt_get() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@"
}

no_cluster=/etc/postgresql-common/createcluster.d/queuekeeper.conf
no_start=/usr/sbin/policy-rc.d

# prepare_debian sees to it that nothing starts: left alone, Postgres' package makes a cluster and starts it, and
# those of supervisor and nginx start their daemons. Both files are gone afterwards.
prepare_debian() {
	[ -z "$DRY_RUN" ] || return 0
	made=$no_cluster
	trap 'as_root rm -f $made' EXIT
	as_root mkdir -p "${no_cluster%/*}"
	echo 'create_main_cluster = false' | as_root tee $no_cluster >/dev/null
	if ! [ -e $no_start ]; then # one that is there is this machine's own rule
		made="$made $no_start"
		printf '#!/bin/sh\nexit 101\n' | as_root tee $no_start >/dev/null
		as_root chmod 755 $no_start
	fi
	apt_get update || true # installing says what it misses
}

install_debian() {
	apt_get install ${DRY_RUN:+--simulate} -y --no-install-recommends "$@"
}

# install_wanted installs one by one: not every release of every Debian has all of them.
install_wanted() {
	for package in $wanted; do
		install_debian "$package" || continue
		case $package in
		supervisor | nginx) [ -n "$DRY_RUN" ] || as_root update-rc.d "$package" disable || true ;; # nor at the next boot
		esac
	done
}

command_to_type() {
	if command -v apt-get >/dev/null; then
		echo "sudo apt-get install --no-install-recommends $*"
	elif command -v dnf >/dev/null; then
		echo "sudo dnf install postgresql-server postgresql-contrib gcc"
	elif command -v apk >/dev/null; then
		echo "apk add postgresql postgresql-contrib gcc musl-dev"
	elif command -v brew >/dev/null; then
		echo "brew install postgresql@17"
	else
		echo "(this system's way to install) Postgres 14 or newer with its server, and gcc"
	fi
}

if ! command -v go >/dev/null; then
	echo "missing: Go 1.26 or newer, from https://go.dev/doc/install" >&2
	exit 1
fi

can_install() {
	command -v apt-get >/dev/null && as_root true 2>/dev/null
}

wanted=$(missing_wanted)
set -- # the packages that are needed, as Debian names them
has_postgres || set -- "$@" postgresql # pgbench and psql come with it
has_compiler || set -- "$@" gcc libc6-dev
[ $# -gt 0 ] || [ -n "$wanted" ] || exit 0

echo "missing:" "$@" $wanted >&2
if can_install; then
	prepare_debian
	[ $# -eq 0 ] || install_debian "$@"
	install_wanted
	[ -z "$DRY_RUN" ] || exit 0
	wanted=$(missing_wanted)
fi
[ -z "$wanted" ] || echo "not installed, so what runs them is left out (tests of deploy/, for nginx a part of make rates):" $wanted >&2
has_postgres && has_compiler && exit 0
if can_install; then
	echo "installed, but Postgres 14 or newer is still missing: see https://www.postgresql.org/download/" >&2
else
	echo "type: $(command_to_type "$@")" >&2
fi
exit 1
