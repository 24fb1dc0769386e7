# Shared by the scripts of this directory, which source it.
# shellcheck shell=bash

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
usage() { printf 'usage: %s\n' "$*" >&2; exit 2; }

package_lists=${BASH_SOURCE[0]%/*}/packages

# add_package_list [--with NAME]: adds the list of what NAME needs in a root to the array `lists`; false without --with.
add_package_list() {
	[ "${1-}" = --with ] || return 1
	[ -n "${2-}" ] || die "--with needs a name"
	lists+=("$package_lists/root-debian13-$2.txt")
	[ -f "${lists[-1]}" ] || die "no package list '${lists[-1]}'"
}

# packages_in FILE...: the names in package lists, without comments.
packages_in() { sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$@"; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# may_install: whether as_root can work: as root, or with a sudo that asks nothing or has a terminal to ask on.
may_install() {
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; }; }
}

# install_packages FILE...: installs the missing packages of these lists with apt-get.
install_packages() {
	local name missing=()
	command -v apt-get >/dev/null || die "no apt-get here: install by hand what $* list"
	for name in $(packages_in "$@"); do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	may_install || die "packages are missing, and only root may install them. Run, or have somebody run:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
	say "installing ${missing[*]}"
	# Quietly: where apt has no lists yet, or old ones, this fails and the second try counts.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return 0
	as_root apt-get update >/dev/null && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null ||
		die "the packages could not be had: apt says above what failed. Look at the network, and at apt's sources (/etc/apt/sources.list and sources.list.d)"
}

# roots_dir: where this user's root file systems are, as ptbuild knows it.
roots_dir() {
	case ${XDG_CACHE_HOME-} in /*) printf '%s/ptbuild-roots' "$XDG_CACHE_HOME" && return ;; esac
	case ${HOME-} in /*) printf '%s/.cache/ptbuild-roots' "$HOME" ;; *) return 1 ;; esac
}

# store_dir: where ptbuild's store of this user is, unless an option names another.
store_dir() {
	local roots
	roots=$(roots_dir) && printf '%s/ptbuild' "${roots%/*}"
}

# may_make_roots DIR: ends with what to do where this user may not make a root file system there. Only root has user numbers for all owners of a system's
# files; others borrow some.
may_make_roots() {
	local name
	[ "$(id -u)" != 0 ] || return 0
	# newuidmap serves nobody without a name.
	name=$(id -un 2>/dev/null) || die "user $(id -u) has no name in /etc/passwd, and may make no root file system. Have root run: ci/root-debian13 $1"
	unshare --map-root-user --map-auto true 2>/dev/null || die "user '$name' may not make a root file system: that takes newuidmap (package uidmap) and a
line for the user in /etc/subuid and in /etc/subgid. Have somebody run:
  sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $name
or let root make it, with: sudo ci/root-debian13 $1"
}

# own_mirror: the archive that apt of this machine has Debian's main component from.
own_mirror() {
	# shellcheck disable=SC2016 # the dollars are for apt-get
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian|Debian|main|//p' | head -n 1
}

# enter_root DIR SCRIPT [SHOWN]: runs a script of bash in a root file system as root, with mounts and processes of its own, so that the sandbox works inside.
# The directory SHOWN of this machine is /srv/ptbuild there.
enter_root() {
	unshare --mount --pid --fork --kill-child --mount-proc bash -c '
		set -e
		dir=$1
		mount --make-rprivate /
		mount --rbind "$dir" "$dir"
		mount -t proc proc "$dir/proc"
		mount --rbind /dev "$dir/dev"
		mount --rbind /sys "$dir/sys"
		mount -t tmpfs -o mode=755 tmpfs "$dir/run"
		mount -t tmpfs -o mode=1777 tmpfs "$dir/tmp"
		cp -L /etc/resolv.conf /etc/hosts "$dir/etc/"
		if [ -n "${3-}" ]; then mkdir -p "$dir/srv/ptbuild"; mount --bind "$3" "$dir/srv/ptbuild"; fi
		cd "$dir"
		pivot_root . mnt
		umount -l /mnt
		cd /
		# Not exec: this shell is the first process there and waits for what others leave behind.
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
			SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash -c "$2" || exit
	' - "$@"
}
