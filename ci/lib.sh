# Shared by the scripts of this directory, which source it.
# shellcheck shell=bash

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
usage() { printf 'usage: %s\n' "$*" >&2; exit 2; }

package_lists=${BASH_SOURCE[0]%/*}/packages
. "${BASH_SOURCE[0]%/*}/distribution.sh"

# packages_in FILE...: the names in package lists, without comments, and those that the tables of worlds' parts (*.yaml) ask for.
packages_in() {
	local file
	for file in "$@"; do
		case $file in
		*.yaml) sed -n '/^packages:/,/^[a-z]/s/^  - //p' "$file" ;;
		*) sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$file" ;;
		esac
	done
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# may_install: whether as_root can work: as root, or with a sudo that asks nothing or has a terminal to ask on.
may_install() {
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }; }; }
}

# missing_packages FILE...: those packages of these lists that are not installed.
missing_packages() {
	local name
	for name in $(packages_here "$@"); do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || printf '%s\n' "$name"
	done
}

# install_figures NAME...: prints "PACKAGES BYTES": how many packages apt-get would install for these, and how much it
# would download. Fails where apt has no lists, or old ones.
install_figures() {
	local count bytes options=(install -y --no-install-recommends)
	count=$(apt-get "${options[@]}" --simulate "$@" 2>/dev/null | grep -c '^Inst ') || return 1
	bytes=$(apt-get "${options[@]}" --print-uris "$@" 2>/dev/null | awk "/^'/ { n += \$3 } END { printf \"%d\", n }") || return 1
	printf '%s %s\n' "$count" "$bytes"
}

# quietly COMMAND...: a script that shows a command's output otherwise has a function of its own for this.
quietly() { "$@" >/dev/null 2>&1; }

# install_packages FILE...: installs the missing packages of these lists with apt-get.
install_packages() {
	local missing=() install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends)
	command -v apt-get >/dev/null || { need_packages "$@"; return; }
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	may_install || die "packages are missing, and only root may install them. Run, or have somebody run:
  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
	say "installing ${missing[*]}"
	local start=$SECONDS beat status=0
	# Not in the sleep: whoever reads this script's output would wait for its end.
	while sleep 30 >/dev/null 2>&1; do say "installing: $((SECONDS - start)) s"; done &
	beat=$!
	# Where apt has no lists yet, or old ones, this fails and the second try counts.
	quietly as_root "${install[@]}" "${missing[@]}" ||
		{ as_root apt-get update >/dev/null && as_root "${install[@]}" "${missing[@]}" >/dev/null; } || status=1
	kill "$beat" 2>/dev/null || true # it is gone where there is no sleep
	[ "$status" = 0 ] ||
		die "the packages could not be had: apt says above what failed. Look at the network, and at apt's sources (/etc/apt/sources.list and sources.list.d)"
}

# roots_dir: where these scripts keep the root file systems that they make: bare hosts, and those that ptbuild itself is built in.
roots_dir() {
	case ${XDG_CACHE_HOME-} in /*) printf '%s/ptbuild-roots' "$XDG_CACHE_HOME" && return ;; esac
	case ${HOME-} in /*) printf '%s/.cache/ptbuild-roots' "$HOME" ;; *) return 1 ;; esac
}

# store_dir: where ptbuild's store of this user is, unless an option names another.
store_dir() {
	local roots
	roots=$(roots_dir) && printf '%s/ptbuild' "${roots%/*}"
}

# own_mirror: the Debian archive that PTBUILD_ARCHIVE_DEBIAN names, else the one that apt of this machine has Debian's main component from; nothing where
# there is none.
own_mirror() {
	[ -z "${PTBUILD_ARCHIVE_DEBIAN-}" ] || { printf '%s\n' "${PTBUILD_ARCHIVE_DEBIAN%% *}" && return; }
	command -v apt-get >/dev/null || return 0
	# shellcheck disable=SC2016 # the dollars are for apt-get
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian|Debian|main|//p' | sed -n 1p
}

# pinned_sources: "DIGEST PLACE" of each source that comes with ptbuild.
pinned_sources() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$package_lists/release-sources.txt"; }

# fetch URL FILE
fetch() { python3 -c 'import sys, urllib.request as r; open(sys.argv[2], "wb").write(r.urlopen(sys.argv[1], timeout=120).read())' "$@"; }

# fetch_sources DIR MIRROR [NAME...]: those of these names, or all, from a Debian archive into DIR.
fetch_sources() {
	local dir=$1 mirror=${2%/} digest place file
	shift 2
	mkdir -p "$dir"
	while read -r digest place; do
		file=$dir/${place##*/}
		[ $# = 0 ] || [[ " $* " == *" $(basename "${place%_*}") "* ]] || continue
		if [ ! -f "$file" ]; then
			fetch "$mirror/pool/main/$place" "$file.part" || die "'$place' could not be fetched from this machine's Debian archive"
			mv "$file.part" "$file"
		fi
		echo "$digest  $file" | sha256sum --check --quiet || { rm -f "$file"; die "'$place' is not what ci/packages/release-sources.txt says"; }
	done < <(pinned_sources)
}

# debs_dir SUITE: where the package files are kept that roots of the suite were made with.
debs_dir() {
	local roots
	roots=$(roots_dir) && printf '%s/debs/%s' "$roots" "$1"
}

# use_debs DIR ROOT: gives the kept package files to apt of a root. keep_debs DIR ROOT: keeps those that it has now; what
# no root needed for a month goes.
use_debs() {
	local to=$2/var/cache/apt/archives
	mkdir -p "$to" "$1"
	find "$1" -name '*.deb' -exec cp -lft "$to" {} + 2>/dev/null || find "$1" -name '*.deb' -exec cp -pt "$to" {} +
}
keep_debs() {
	local file part
	mkdir -p "$1"
	for file in "$2"/var/cache/apt/archives/*.deb; do
		if [ ! -f "$file" ] || [ -e "$1/${file##*/}" ]; then continue; fi
		part=$1/.${file##*/}.$$
		ln "$file" "$part" 2>/dev/null || cp -p "$file" "$part" || continue
		mv -f "$part" "$1/${file##*/}"
	done
	find "$1" -type f -ctime +30 -delete
}

# make_root SUITE DIR PACKAGES [OPTION...]: a Debian of these packages (separated by commas) from the archive of this machine.
make_root() {
	local suite=$1 dir=$2 packages=$3 debs lib=${BASH_SOURCE[0]}
	shift 3
	debs=$(debs_dir "$suite") || return 1
	rm -rf --one-file-system "$dir"
	mkdir -p "${dir%/*}"
	# mmdebstrap gives the root to its hooks as $1.
	mmdebstrap --quiet --variant=minbase --include="$packages" --aptopt='Acquire::Retries "5"' --dpkgopt=force-unsafe-io --skip=essential/unlink \
		--setup-hook="bash -euc '. \"\$1\"; use_debs \"\$2\" \"\$3\"' - '$lib' '$debs' \"\$1\"" \
		--customize-hook="bash -euc '. \"\$1\"; keep_debs \"\$2\" \"\$3\"' - '$lib' '$debs' \"\$1\"" \
		"$@" "$suite" "$dir" "$(own_mirror)"
}

# make_bare SUITE DIR [PACKAGES]: a Debian as its archive has it, with git, ca-certificates and these packages, unless it
# is there. This machine's own certificates come along: apt and pip may need them to get out.
make_bare() {
	[ -e "$2/etc/ptbuild-bare" ] && return 0
	say "making a bare $1"
	make_root "$1" "$2" "git,ca-certificates${3:+,$3}" || return 1
	mkdir -p "$2/usr/local/share/ca-certificates"
	awk -v dir="$2/usr/local/share/ca-certificates" '
		/BEGIN CERTIFICATE/ { n++ }
		n { print > (dir "/host-" n ".crt") }' /etc/ssl/certs/ca-certificates.crt
	chroot "$2" update-ca-certificates >/dev/null 2>&1
	: >"$2/etc/ptbuild-bare"
}

# enter_root DIR SCRIPT [SHOWN...]: runs a script of bash in a root file system as root, with mounts and processes of its own, so that the sandbox works inside.
# Each SHOWN is a directory of this machine that is /srv/ptbuild there, or FROM:TO, which is TO there.
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
		for shown in "${@:3}"; do
			case $shown in *:*) to=${shown#*:} ;; *) to=/srv/ptbuild ;; esac
			mkdir -p "$dir$to"
			mount --bind "${shown%%:*}" "$dir$to"
		done
		cd "$dir"
		pivot_root . mnt
		umount -l /mnt
		cd /
		# Not exec: this shell is the first process there and waits for what others leave behind.
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
			SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt bash -c "$2" || exit
	' - "$@"
}
