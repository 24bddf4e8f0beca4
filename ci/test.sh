#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# All tests, on real daemons, in the lab container:
#
#   ci/test.sh                             unit and integration tests
#   ci/test.sh unit [CTEST ARGS]           ctest alone
#   ci/test.sh integration [PYTEST ARGS]   pytest alone
#
# Exit status 0 only when everything that ran passed.  Logs of the runners
# and of all daemons are kept in build/test-logs/<time>.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

UNIT_LIMIT=${UNIT_LIMIT:-600}
INTEGRATION_LIMIT=${INTEGRATION_LIMIT:-2400}

logs=$top/build/test-logs/$(date +%Y%m%d-%H%M%S)
lab=casync-test-$$
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

unit()
{
	say "unit tests"
	limited unit "$UNIT_LIMIT" \
		ctest --test-dir /build/plugin --output-on-failure "$@"
	in_lab cat /build/plugin/Testing/Temporary/LastTest.log \
		> "$logs/unit-cases.log" 2> /dev/null || :
	closing="$closing
unit: $(grep -c '\[ *OK \]' "$logs/unit-cases.log") cases passed, $(
		grep -c '^\[  FAILED  \].*[a-z]$' "$logs/unit-cases.log") failed; $(
		grep -E 'tests passed|tests failed|No tests' "$logs/unit.log" |
		tail -n 1) (status $status)"
}

integration()
{
	say "integration tests"
	[ "$#" -gt 0 ] || set -- tests/integration
	limited integration "$INTEGRATION_LIMIT" \
		python3 -m pytest -v --junitxml=/var/log/casync-lab/integration.xml \
		"$@"
	closing="$closing
integration: $(tail -n 1 "$logs/integration.log") (status $status)"
}

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	result=$?
	trap - EXIT
	if in_lab lab logs --collect /tmp/logs > /dev/null 2>&1; then
		"$ENGINE" cp "$lab:/tmp/logs/." "$logs/daemons" > /dev/null 2>&1 || :
	fi
	end_lab "$lab"
	echo
	say "logs: $logs"
	[ -z "$closing" ] || printf '%s\n' "${closing#?}"
	[ "$result" = 0 ] && result=$failed
	exit "$result"
}

part=all
if [ "$#" -gt 0 ]; then
	part=$1
	shift
fi
case $part in
all | unit | integration) ;;
*) die "'$part': unit, integration or nothing" ;;
esac

"$top/ci/image.sh"
ensure_engine
mkdir -p "$logs"
trap finish EXIT
trap 'exit 130' INT TERM
start_lab "$lab"

case $part in
unit) unit "$@" ;;
integration) integration "$@" ;;
all)
	unit
	integration
	;;
esac
