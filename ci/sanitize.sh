#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The plugin under gcc's sanitizers, in the lab container:
#
#   ci/sanitize.sh                        all of this
#   ci/sanitize.sh unit [CTEST ARGS]      the unit tests
#   ci/sanitize.sh daemon [PYTEST ARGS]   a real ganesha.nfsd under load,
#                                         unexported and ended in its midst
#
# Each under AddressSanitizer, LeakSanitizer and UBSan, and then under
# ThreadSanitizer.  Only the plugin is instrumented; tests/sanitize/reports.py
# tells which reports count.  The unit tests run once more in a build of type
# Debug, which aborts where a release counts and goes on.
#
# Exit status 0 only when everything that ran passed.  Logs of the runners
# and of all daemons are kept in build/sanitize-logs/<time>.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

UNIT_LIMIT=${UNIT_LIMIT:-600}
INTEGRATION_LIMIT=${INTEGRATION_LIMIT:-2400}

logs=$top/build/sanitize-logs/$(date +%Y%m%d-%H%M%S)
lab=casync-sanitize-$$
# shellcheck source=ci/lib/runner.sh
. "$top/ci/lib/runner.sh"

debug()
{
	say "building for debugging"
	limited build-debug "$UNIT_LIMIT" sh -ec "
		cmake -S . -B /build/debug -G Ninja -DCMAKE_BUILD_TYPE=Debug
		cmake --build /build/debug --target tests/unit/all" > /dev/null
	[ "$status" = 0 ] || {
		tail -n 25 "$logs/build-debug.log"
		closing="$closing
build for debugging: failed"
		return 0
	}
	say "unit tests of the Debug build"
	# test_memory is run without it, for its time.
	unit_of unit-debug /build/debug/tests/unit -E test_memory "$@"
}

unit()
{
	for sanitizers in address,undefined thread; do
		unit_sanitized "$sanitizers" "$@"
	done
	debug "$@"
}

daemon()
{
	set -- -c tests/pytest.ini --rootdir . tests/sanitize "$@"
	for sanitizers in address,undefined thread; do
		build_sanitized "$sanitizers" || continue
		which=${sanitizers%%,*}
		say "ganesha.nfsd under -fsanitize=$sanitizers"
		pytest_as "daemon-$which" "--$which-build=/build/$which" "$@"
	done
}

part=all
if [ "$#" -gt 0 ]; then
	part=$1
	shift
fi
case $part in
all | unit | daemon) ;;
*) die "'$part': unit, daemon or nothing" ;;
esac

begin_lab
case $part in
unit) unit "$@" ;;
daemon) daemon "$@" ;;
all)
	unit
	daemon
	;;
esac
