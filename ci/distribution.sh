# What ci/lib.sh knows of distributions: which one this machine has, what it calls the packages, and which of them it lacks.
# shellcheck shell=bash disable=SC2154 # package_lists is ci/lib.sh's

# distribution: "debian 13", "ubuntu 24.04", "fedora 41"; "unknown" without os-release.
distribution() {
	# shellcheck source=/dev/null
	(. /etc/os-release 2>/dev/null && printf '%s %s\n' "$ID" "${VERSION_ID:-rolling}") || echo unknown
}

# distribution_column: the column of names.tsv for this machine; nothing where no column is for it.
distribution_column() {
	local id like version
	# shellcheck source=/dev/null
	read -r id version like < <(. /etc/os-release 2>/dev/null && printf '%s %s %s\n' "$ID" "${VERSION_ID:--}" "${ID_LIKE-}")
	case " ${id-} ${like-} " in
	*" ubuntu "*)
		# A kin of Ubuntu's counts its versions in its own way.
		if [ "$id" = ubuntu ] && [ "${version%%.*}" -lt 24 ]; then echo ubuntu22.04; else echo ubuntu24.04; fi
		;;
	*" debian "*) echo debian ;;
	*" rhel "* | *" centos "*) echo rhel ;;
	*" fedora "*) echo fedora ;;
	*" arch "*) echo arch ;;
	*suse*) echo opensuse ;;
	esac
}

# packages_here FILE...: what this distribution calls the packages of these lists; those that it does not have are left out.
packages_here() {
	local column
	column=$(distribution_column)
	case $column in debian | '') packages_in "$@" && return ;; esac
	awk -v column="$column" '
		/^#/ || NF == 0 { next }
		FILENAME == ARGV[1] && !at { for (i = 1; i <= NF; i++) if ($i == column) at = i; next }
		FILENAME == ARGV[1] { names[$1] = $at; next }
		{
			name = $1 in names ? names[$1] : column ~ /^ubuntu/ ? "=" : "-"
			if (name == "=") name = $1
			n = split(name, words, ",")
			for (i = 1; i <= n; i++) if (words[i] != "-" && !seen[words[i]]++) print words[i]
		}' "$package_lists/names.tsv" <(packages_in "$@")
}

# missing_here NAME...: those that are not installed, by the distribution's own tool.
missing_here() {
	local name
	case $(distribution_column) in
	fedora | rhel | opensuse) for name; do rpm -q --quiet --whatprovides "$name" 2>/dev/null || echo "$name"; done ;;
	arch) pacman -T "$@" || true ;;
	esac
}

# need_packages FILE...: for distributions without apt: says which packages of these lists are missing and how to install them. Where the names are not
# known it says what Debian calls them, and goes on: what is built with them says what it lacks.
need_packages() {
	local column command names missing
	column=$(distribution_column)
	case $column in
	fedora) command="dnf install -y" ;;
	rhel) command="dnf install -y --enablerepo=crb epel-release && dnf install -y --enablerepo=crb" ;;
	arch) command="pacman -S --needed --noconfirm" ;;
	opensuse) command="zypper install -y" ;;
	*)
		say "the package names of '$(distribution)' are not known; needed is what Debian calls: $(packages_in "$@" | paste -sd' ')"
		return 0
		;;
	esac
	mapfile -t names < <(packages_here "$@")
	mapfile -t missing < <(missing_here "${names[@]}")
	[ ${#missing[@]} -eq 0 ] || die "packages are missing. As root, run this, then the same command again:
  $command ${missing[*]}"
}
