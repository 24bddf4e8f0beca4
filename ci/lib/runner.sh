# shellcheck shell=sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Shared by test.sh and sanitize.sh: parts of a test run in a lab container,
# each with a limit, their logs, and closing lines that say how they went.
# Sourced after lib.sh, with $logs and $lab set.
: "${top:?}" "${logs:?}" "${lab:?}"

failed=0
closing=""

in_lab()
{
	"$ENGINE" exec -w /src/fsal-ceph-async "$lab" "$@"
}

# Runs "$@" in the container for at most $2 s, its output on screen and in
# $logs/$1.log; the status goes to $status.
limited()
{
	part=$1 limit=$2
	shift 2
	{
		in_lab timeout -k 30 "$limit" "$@" 2>&1 && echo 0 > "$logs/.status" ||
			echo $? > "$logs/.status"
	} | tee "$logs/$part.log"
	status=$(cat "$logs/.status")
	rm -f "$logs/.status"
	[ "$status" = 0 ] || failed=1
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		closing="$closing
$part: no end within $limit s, killed"
		hung
	fi
}

# Whoever hangs shows where: every Ganesha's stacks go to the logs.
hung()
{
	say "a hang: taking the stacks of every ganesha.nfsd"
	for name in a b; do
		in_lab timeout 150 lab ganesha stacks --name "$name" || :
	done
}

# Runs the ctest of build tree $2 as part $1; the rest goes to ctest.
unit_of()
{
	part=$1 tree=$2
	shift 2
	limited "$part" "$UNIT_LIMIT" \
		ctest --test-dir "$tree" --output-on-failure \
		--parallel "$(nproc)" "$@"
	in_lab cat "$tree/Testing/Temporary/LastTest.log" \
		> "$logs/$part-cases.log" 2> /dev/null || :
	closing="$closing
$part: $(grep -c '\[ *OK \]' "$logs/$part-cases.log") cases passed, $(
		grep -c '^\[  FAILED  \].*[a-z]$' "$logs/$part-cases.log") failed; $(
		grep -E 'tests passed|tests failed|No tests' "$logs/$part.log" |
		tail -n 1) (status $status)"
}

# Runs pytest with "$@" as part $1.
pytest_as()
{
	part=$1
	shift
	limited "$part" "$INTEGRATION_LIMIT" \
		python3 -m pytest -v \
		"--junitxml=/var/log/casync-lab/$part.xml" "$@"
	closing="$closing
$part: $(tail -n 1 "$logs/$part.log") (status $status)"
}

# Starts the container, and sees to its end.
begin()
{
	"$top/ci/image.sh"
	ensure_engine
	mkdir -p "$logs"
	trap finish EXIT
	trap 'exit 130' INT TERM
	start_lab "$lab"
}

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	result=$?
	trap - EXIT
	keep_logs "$lab" "$logs/daemons"
	end_lab "$lab"
	echo
	say "logs: $logs"
	[ -z "$closing" ] || printf '%s\n' "${closing#?}"
	[ "$result" = 0 ] && result=$failed
	exit "$result"
}

# Builds the plugin and its unit tests with gcc's sanitizers $1, in
# /build/<the first of them>.
build_sanitized()
{
	say "building with -fsanitize=$1"
	tree=/build/${1%%,*}
	limited "build-${1%%,*}" "$UNIT_LIMIT" sh -ec "
		cmake -S . -B $tree -G Ninja -DCASYNC_SANITIZE=$1
		cmake --build $tree" > /dev/null
	[ "$status" = 0 ] && return 0
	tail -n 25 "$logs/build-${1%%,*}.log"
	closing="$closing
build with -fsanitize=$1: failed"
	return 1
}

# The unit tests under each sanitizer; the rest goes to ctest.
unit_sanitized()
{
	for sanitizers in address,undefined thread; do
		build_sanitized "$sanitizers" || continue
		say "unit tests under -fsanitize=$sanitizers"
		unit_of "unit-${sanitizers%%,*}" "/build/${sanitizers%%,*}" "$@"
	done
}
