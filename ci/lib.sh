# What the scripts of this directory share; to be sourced.
# shellcheck shell=bash

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# packages_in FILE: the names in a package list, without comments.
packages_in() { sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$1"; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# install_packages FILE...: installs what is missing of the lists through apt-get. Nothing is done when all is there.
install_packages() {
	local name missing=()
	command -v apt-get >/dev/null || die "there is no apt-get: install by hand what $* list"
	for name in $(for file in "$@"; do packages_in "$file"; done); do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing ${missing[*]}"
	# Without words: where apt has no lists yet, or old ones, it is the second try that counts.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return 0
	as_root apt-get update >/dev/null
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null
}
