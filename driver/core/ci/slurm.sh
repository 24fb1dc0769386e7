# What is above is this matrix; what follows is the same in each such script.

fail() {
	printf '%s: %s\n' "$name" "$*" >&2
	exit 1
}

# Standard input as a file that is whole or not there.
put() { # FILE
	cat >"$1.$$.part"
	mv -f -- "$1.$$.part" "$1"
}

# The job's command as it is now ended well before. `argv` is the job's.
is_done() { # ID
	[ -f "$dir/state/$1" ] && grep -qx 'state done' "$dir/state/$1" && grep -qxF -e "command ${argv[*]}" "$dir/state/$1"
}

note() { # ID STATE [LINE...]
	printf '%s\n' "state $2" "command ${argv[*]}" "task ${SLURM_ARRAY_JOB_ID-}_${SLURM_ARRAY_TASK_ID-}" \
		"node ${SLURMD_NODENAME-}" "attempt $((${SLURM_RESTART_COUNT-0} + 1))" "started $started" "${@:3}" | put "$dir/state/$1"
}

# The program as the submission knew it, else as this node does.
find_ptbuild() {
	local known
	for known in "$ptbuild" "$(command -v ptbuild || true)"; do
		if [ -n "$known" ] && command -v -- "$known" >/dev/null; then
			ptbuild=$known
			return 0
		fi
	done
	printf "ptbuild: error: node '%s' has no '%s': submit with PTBUILD=/path/to/ptbuild, which all nodes have\n" "${SLURMD_NODENAME-}" "$ptbuild"
	return 1
}

# One job, on its node. A requeued one may find that its first run, which nobody could stop, has ended well.
task() { # ID
	local status=0 started
	job "$1"
	exec >>"$dir/log/$1.log" 2>&1
	! is_done "$1" || return 0
	started=$(date +%s)
	if ! find_ptbuild; then
		note "$1" failed 'exit 127' "ended $started"
		return 127
	fi
	note "$1" running
	trap : TERM INT
	"$ptbuild" "${argv[@]}" --cache "${store:-$dir/store}" --out "$dir/out/$1" || status=$?
	if ((status == 0)); then
		note "$1" 'done' "ended $(date +%s)"
	elif ! is_done "$1"; then
		note "$1" failed "exit $status" "ended $(date +%s)"
	fi
	return "$status"
}

# The last job: all wheels in one place, an index of them, a page. A job that still says it runs was lost with its node or was killed.
collect() {
	local id file good=0
	exec >>"$dir/log/collect.log" 2>&1
	started=$(date +%s) argv=()
	note collect running
	trap 'status=$?; argv=(); note collect failed "exit $status" "ended $(date +%s)"' EXIT
	find_ptbuild
	for id in "${ids[@]}"; do
		job "$id"
		if is_done "$id"; then
			good=$((good + 1))
			for file in "$dir/out/$id"/*.whl*; do
				if [ ! -f "$file" ] || [ -L "$file" ]; then continue; fi # a shard makes none
				ln -f -- "$file" "$dir/dist/" 2>/dev/null || cp -f -- "$file" "$dir/dist/"
			done
		elif grep -qsx 'state running' "$dir/state/$id"; then
			sed 's/^state running$/state lost/' "$dir/state/$id" | put "$dir/state/$id"
		fi
	done
	((good == 0)) || "$ptbuild" index "$dir/dist"
	"$ptbuild" matrix --status "$dir" --format html >"$dir/matrix.html.part"
	mv -f -- "$dir/matrix.html.part" "$dir/matrix.html"
	"$ptbuild" matrix --status "$dir"
	trap - EXIT
	argv=()
	note collect 'done' "ended $(date +%s)"
	((good == ${#ids[@]}))
}

# Those of an earlier submission that wait or run.
declare -A queued=()
collect_queued=''
find_queued() {
	local live task id
	[ -f "$dir/submitted" ] || return 0
	live=$(squeue --noheader --array --user="$(id -un)" --states=pending,running,suspended,configuring --format='%F_%K')
	while read -r task id; do
		# The job that collects is no array.
		[ "$id" != collect ] || [[ $'\n'$live != *$'\n'"${task%_*}_"* ]] || collect_queued=${task%_*}
		case $'\n'$live$'\n' in
		*$'\n'"$task"$'\n'*) queued[$id]=${task%_*} ;;
		esac
	done <"$dir/submitted"
}

# Jobs of a wave wait for those of the wave before, however they end: they then compile more, and no job needs a wheel of another.
before=() now=() all=() submitted=0
wave() {
	before=("${now[@]}")
	now=()
}

after() { # JOB...: an option that waits for them all; nothing without
	local list
	(($# == 0)) || {
		list=$(printf ':%s\n' "$@" | sort -u | tr -d '\n')
		printf -- '--dependency=afterany%s' "$list"
	}
}

submit() { # OPTION...: prints the number
	local got
	got=$(sbatch --parsable --job-name="$name" --requeue --open-mode=append --output="${dir//%/%%}/log/slurm.log" "$@") || return
	printf '%s' "${got%%;*}"
}

# Jobs that may have the same are one array.
array() { # OPTION... -- ID...
	local options=() todo=() wait id k got
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	for id; do
		job "$id"
		if is_done "$id"; then
			continue
		elif [ -n "${queued[$id]-}" ]; then
			now+=("${queued[$id]}")
		else
			todo+=("$id")
		fi
	done
	if ((${#todo[@]})); then
		wait=$(after "${before[@]}")
		for id in "${todo[@]}"; do
			rm -f -- "$dir/state/$id"
		done
		got=$(submit "${options[@]}" ${wait:+"$wait"} --array="0-$((${#todo[@]} - 1))" "$self" task "$dir" "$PWD" "$ptbuild" "${todo[@]}") ||
			fail "sbatch refuses '${todo[0]}' with ${options[*]}: give its partition, account, qos, mem or minutes with --runner-map"
		for k in "${!todo[@]}"; do
			printf '%s_%d %s\n' "$got" "$k" "${todo[k]}"
		done >>"$dir/submitted"
		now+=("$got")
		submitted=$((submitted + ${#todo[@]}))
	fi
	all+=("${now[@]}")
}

# What the jobs read from the environment must reach them.
check_export() {
	local word
	case ,${SBATCH_EXPORT-ALL}, in *,ALL,*) return ;; esac
	for word in PTBUILD_CCACHE_REMOTE PTBUILD_LOWER_STORE PTBUILD_STORE_URL; do
		[ -z "${!word-}" ] || case ,$SBATCH_EXPORT, in
		*,"$word",* | *,"$word="*) ;;
		*) fail "SBATCH_EXPORT=$SBATCH_EXPORT keeps $word from the jobs: set SBATCH_EXPORT=ALL" ;;
		esac
	done
}

submit_matrix() {
	local wait got
	mkdir -p -- "$dir/state" "$dir/log" "$dir/out" "$dir/dist"
	plan | put "$dir/jobs.json"
	find_queued
	arrays
	if ((submitted)) || [ -z "$collect_queued" ]; then
		wait=$(after "${all[@]}")
		rm -f -- "$dir/state/collect"
		got=$(submit "${collect_options[@]}" ${wait:+"$wait"} "$self" collect "$dir" "$PWD" "$ptbuild") ||
			fail "sbatch refuses the job that collects the wheels, with ${collect_options[*]}: add a row {match: collect, ...} to the runner map"
		printf '%s_collect collect\n' "$got" >>"$dir/submitted"
	fi
	printf '%d of %d jobs submitted, %d wait or run, %d were done before\n' "$submitted" "${#ids[@]}" "${#queued[@]}" \
		"$((${#ids[@]} - submitted - ${#queued[@]}))"
	printf 'look with: ptbuild matrix --status %q\n' "$dir"
}

case ${1-} in
task)
	dir=$2
	cd -- "$3"
	ptbuild=$4
	task "${@:5+SLURM_ARRAY_TASK_ID:1}"
	;;
collect)
	dir=$2
	cd -- "$3"
	ptbuild=$4
	collect
	;;
'' | -*)
	printf 'usage: bash %q DIR\n%s\n' "$0" 'DIR: a directory that all nodes see; the same command again submits what is not done' >&2
	exit 2
	;;
*)
	self=$(realpath -- "$0")
	command -v sbatch >/dev/null || fail 'no sbatch here: this is for a machine that submits jobs to Slurm'
	check_export
	# The jobs get it as a word: SBATCH_EXPORT=NONE keeps variables from them.
	if known=$(command -v -- "$ptbuild"); then ptbuild=$(realpath -s -- "$known"); fi
	mkdir -p -- "$1"
	dir=$(cd -- "$1" && pwd -P)
	submit_matrix
	;;
esac
