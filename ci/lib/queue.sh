# shellcheck shell=sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# One queue of jobs for ci/test.sh, and the workers that take from it.  Sourced
# after runner.sh.  A job is a line of words: a function of ci/test.sh named
# job_WORD, or a file of tests with more arguments of pytest.
#
# Each worker has a lab container, and so a cluster, of its own.  Jobs that
# compile go to the first worker while there are any: beside tests they get a
# quarter of the CPU time.  Others go to whoever is free, longest first; when
# there are no more, all take what is left to compile.  How long a job took is
# kept in build/durations.tsv; ci/durations.tsv has what is known to a fresh
# clone.  Nobody keeps either by hand: cp the one to the other.
: "${top:?}" "${logs:?}" "${lab:?}" "${MARKS:?}"

# Most labs at once: tests use a quarter of a core, and 1 to 2 GiB.
LABS=${LABS:-4}
# Seconds that one job may take.
JOB_LIMIT=${JOB_LIMIT:-1200}

queue=$logs/queue

new_queue()
{
	mkdir -p "$queue"
	for file in builds tests took failed; do
		: > "$queue/$file"
	done
}

# Lines "JOB" become "SECONDS<tab>JOB", longest first; an unknown job is long.
with_durations()
{
	for file in "$top/build/durations.tsv" "$top/ci/durations.tsv"; do
		[ ! -e "$file" ] || cat "$file"
	done | awk -F '\t' '
		known { if (!($2 in took)) took[$2] = $1; next }
		{ print ($0 in took ? took[$0] : 999) "\t" $0 }' \
		known=1 - known=0 "$1" |
		sort -s -k 1,1nr
}

# Takes the first job of list $1 and prints it; nothing when there is none.
take()
{
	(
		flock 9
		sed -n '1s/^[^\t]*\t//p' "$queue/$1"
		sed -i 1d "$queue/$1"
	) 9> "$queue/lock"
}

# Runs job $2... in $lab, with its logs in folder $1, and ends this process.
run_job()
{
	logs=$1
	closing=""
	failed=0
	shift
	mkdir -p "$logs"
	case $1 in
	*.py)
		# shellcheck disable=SC2034 # pytest_as takes it
		INTEGRATION_LIMIT=$JOB_LIMIT
		pytest_as "$(basename "$logs")" -m "$MARKS" "$@" \
			tests/integration/test_logs.py
		;;
	*)
		what=$1
		shift
		"job_$what" "$@"
		;;
	esac
	printf '%s\n' "${closing#?}" > "$logs/closing"
	exit "$failed"
}

# Runs job "$@".  Its output, its logs and its closing lines are in a folder of
# its own; one line goes to the screen.
job()
{
	case $1 in
	*.py) name=$(echo "$*" | sed 's|.*/test_||; s|\.py.*\(v[0-9.]*\).*|-\1|
			s|\.py||') ;;
	*) name=$1${2:+-$2} ;;
	esac
	name=${name%%--*}
	started=$(date +%s)
	status=0
	run_job "$logs/$name" "$@" > "$queue/$name.out" 2>&1 < /dev/null &
	wait "$!" || status=$?
	mv "$queue/$name.out" "$logs/$name/output"
	took=$(($(date +%s) - started))
	# Each is one short write: lines of several workers do not mix.
	printf '%s\t%s\n' "$took" "$*" >> "$queue/took"
	line=$(tail -n 1 "$logs/$name/closing" 2> /dev/null)
	if [ "$status" = 0 ]; then
		say "$line"
	else
		echo "$name" >> "$queue/failed"
		say "FAILED: ${line:-$name} (log: $logs/$name/output)"
	fi
}

# worker K LIST...: takes jobs of these lists, one list after the other.
worker()
{
	lab=$lab-$1
	shift
	trap 'end_lab "$lab"' EXIT
	trap 'exit 130' INT TERM
	for list; do
		first=yes
		while line=$(take "$list"); [ -n "$line" ]; do
			[ -z "$first" ] || {
				end_lab "$lab"
				CPU_SHARES=$([ "$list" = builds ] && echo 256 || :) \
					start_compiling_lab "$lab"
				first=
			}
			eval "job $line"
		done
	done
	keep_logs "$lab" "$logs/daemons-${lab##*-}"
}

# Runs the jobs of $queue/builds and $queue/tests, each a line, to their end.
run_queue()
{
	for list in builds tests; do
		with_durations "$queue/$list" > "$queue/sorted"
		mv "$queue/sorted" "$queue/$list"
	done
	workers=""
	number=0
	while [ "$number" -lt "$LABS" ]; do
		number=$((number + 1))
		if [ "$number" = 1 ]; then
			worker "$number" builds tests &
		else
			worker "$number" tests builds &
		fi
		workers="$workers $!"
	done
	for one in $workers; do
		wait "$one" || failed=1
	done
	workers=""
	[ ! -s "$queue/failed" ] || failed=1
	keep_durations
}

# What this run has measured replaces what was known.
keep_durations()
{
	known=$top/build/durations.tsv
	touch "$known"
	awk -F '\t' '{ took[$2] = $1 } END { for (job in took)
		print took[job] "\t" job }' "$known" "$queue/took" |
		sort -t "$(printf '\t')" -k 1,1nr -k 2 > "$queue/durations"
	mv "$queue/durations" "$known"
}

# Adds what all jobs said to $closing: first what passed, what failed last.
close_queue()
{
	: > "$queue/bad"
	for file in "$logs"/*/closing; do
		name=$(basename "$(dirname "$file")")
		if grep -qx "$name" "$queue/failed"; then
			cat "$file" >> "$queue/bad"
		else
			tail -n 1 "$file"
		fi
	done > "$queue/good"
	closing="$closing
$(cat "$queue/good" "$queue/bad")"
	while read -r name; do
		[ -e "$logs/$name/closing" ] || closing="$closing
$name: did not come to its end, see $logs/$name/output"
	done < "$queue/failed"
	closing="$closing
$(totals)"
}

# The sums of all runners' own last lines, as one line.  A job that passed or
# failed without such figures counts as one.
totals()
{
	for folder in "$logs"/*/; do
		[ -e "$folder/output" ] || continue
		figures=$(tail -n 1 "$folder/closing" 2> /dev/null | grep -oE \
			'[0-9]+ (cases passed|passed|failed|errors?|skipped)') || :
		if ! grep -qx "$(basename "$folder")" "$queue/failed"; then
			echo "${figures:-1 passed}"
		elif echo "$figures" | grep -qE '[1-9][0-9]* (failed|error)'; then
			echo "$figures"
		else
			printf '%s\n1 failed\n' "$figures"
		fi
	done | awk '
		/passed/ { passed += $1 }
		/failed|error/ { failed += $1 }
		/skipped/ { skipped += $1 }
		END {
			printf "all: %d passed, %d failed, %d skipped\n",
				passed, failed, skipped
		}'
}
