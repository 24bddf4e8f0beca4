# shellcheck shell=sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Shared by test.sh, sanitize.sh and fuzz.sh: parts of a test run in a lab
# container, each with a limit, their logs, and closing lines with the results.
# Sourced after lib.sh, with $logs and $lab set.
: "${top:?}" "${logs:?}" "${lab:?}"

failed=0
closing=""

in_lab()
{
	"$ENGINE" exec -w /src/fsal-ceph-async "$lab" "$@"
}

# What a screen shows of output: of the tests that pass one in each 5 %.  The
# hold space has the last percentage.
shown()
{
	sed -u -E '/ (PASSED|SKIPPED) .*%\]$/ {
		/[05]%\]$/!d
		G
		/ ([0-9]+)%\]\n\1$/d
		/\[100%\]\n100$/d
		s/\n.*//
		h
		x
		s/.*[[ ]([0-9]+)%\]$/\1/
		x
	}'
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
	} | tee "$logs/$part.log" | shown
	read_status
	if [ "$status" = 124 ] || [ "$status" = 137 ]; then
		closing="$closing
$part: no end within $limit s, killed"
		hung
	fi
}

# The status of what ended last, from its file; a pipe would hide it.
read_status()
{
	status=$(cat "$logs/.status")
	rm -f "$logs/.status"
	[ "$status" = 0 ] || failed=1
}

# Whoever hangs shows where: every Ganesha's stacks go to the logs.
hung()
{
	say "a hang: taking the stacks of every ganesha.nfsd"
	for name in a b; do
		in_lab timeout 150 lab ganesha stacks --name "$name" || :
	done
}

# Runs the ctest of build tree $2 as part $1; the rest goes to ctest.  What the
# programs that failed have printed is repeated at the end of all output, but
# for cases that passed.
unit_of()
{
	part=$1 tree=$2
	shift 2
	limited "$part" "$UNIT_LIMIT" \
		ctest --test-dir "$tree" --output-on-failure \
		--no-tests=error --parallel 6 "$@"
	in_lab cat "$tree/Testing/Temporary/LastTest.log" \
		> "$logs/$part-cases.log" 2> /dev/null || :
	failures=$(sed -n '/\*\*\*[A-Z]/,/^ *Start \|^[0-9]*% tests/p' "$logs/$part.log" |
		grep -vE '^ *Start |^\[ *(RUN|OK) |% tests|^$' |
		cut -c 1-300 | head -n 150 | sed "s/^/$part: /")
	closing="$closing${failures:+
$failures}
$part: $(grep -c '\[ *OK \]' "$logs/$part-cases.log") cases passed, $(
		grep -c '^\[  FAILED  \].*[a-z]$' "$logs/$part-cases.log") failed; $(
		grep -E 'tests passed|tests failed|No tests' "$logs/$part.log" |
		tail -n 1) (status $status)"
}

# Runs pytest with "$@" as part $1.  With CI set it does not cut the reasons of
# failures short.  They are repeated at the end of all output, with the lines
# that pytest marks by E: its own summary has the first of them alone.
pytest_as()
{
	part=$1
	shift
	limited "$part" "$INTEGRATION_LIMIT" \
		env CI=true python3 -m pytest -v \
		"--junitxml=/var/log/casync-lab/$part.xml" "$@"
	failures=$(grep -E '^((FAILED|ERROR) tests|E   )' "$logs/$part.log" |
		cut -c 1-2000 | tail -n 100 | sed "s/^/$part: /")
	closing="$closing${failures:+
$failures}
$part: $(tail -n 1 "$logs/$part.log") (status $status)"
}

# Sees to the image, and to the end.  IMAGE_READY=1: the image is there and
# fits, it is not looked at again.
begin()
{
	[ -n "${IMAGE_READY-}" ] || "$top/ci/image.sh"
	ensure_engine
	mkdir -p "$logs"
	trap finish EXIT
	trap 'exit 130' INT TERM
}

# And the container, for one that works alone.
begin_lab()
{
	begin
	start_compiling_lab "$lab"
}

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	result=$?
	trap - EXIT
	for one in ${workers-}; do
		kill "$one" 2> /dev/null || :
		wait "$one" || :
	done
	keep_logs "$lab" "$logs/daemons"
	end_lab "$lab"
	echo
	say "logs: $logs"
	printf '%s\n' "${closing#?}" | tee "$logs/closing"
	[ "$result" = 0 ] && result=$failed
	exit "$result"
}

# Builds with gcc's sanitizers $1, in /build/<the first of them>: the targets
# "$2"..., or all.
build_sanitized()
{
	say "building with -fsanitize=$1"
	sanitizers=$1
	tree=/build/${1%%,*}
	shift
	limited "build-${sanitizers%%,*}" "$UNIT_LIMIT" sh -ec "
		cmake -S . -B $tree -G Ninja -DCASYNC_SANITIZE=$sanitizers
		cmake --build $tree --target ${*:-all}" > /dev/null
	[ "$status" = 0 ] && return 0
	tail -n 25 "$logs/build-${sanitizers%%,*}.log"
	closing="$closing
build with -fsanitize=$sanitizers: failed"
	return 1
}

# The unit tests under gcc's sanitizers $1; the rest goes to ctest.  What ctest
# runs is built, and not the plugin, which is a third of a build.
unit_sanitized()
{
	which=$1
	shift
	build_sanitized "$which" tests/unit/all tests/fuzz/all \
		tests/sanitize/all docs/generate/all test_fault_rules ||
		return 0
	say "unit tests under -fsanitize=$which"
	unit_of "unit-${which%%,*}" "/build/${which%%,*}" "$@"
}
