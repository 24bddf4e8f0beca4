#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# All tests, on real daemons, in the lab container:
#
#   ci/test.sh                             unit tests, also under sanitizers,
#                                          integration tests, and packages
#   ci/test.sh unit [CTEST ARGS]           ctest alone
#   ci/test.sh integration [PYTEST ARGS]   pytest alone
#   ci/test.sh packages                    ci/package.sh short
#
# Exit status 0 only when everything that ran passed.  Logs of the runners
# and of all daemons are kept in build/test-logs/<time>.  ci/sanitize.sh runs
# ganesha.nfsd under the sanitizers too.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

UNIT_LIMIT=${UNIT_LIMIT:-600}
INTEGRATION_LIMIT=${INTEGRATION_LIMIT:-3000}

logs=$top/build/test-logs/$(date +%Y%m%d-%H%M%S)
lab=casync-test-$$
# shellcheck source=ci/lib/runner.sh
. "$top/ci/lib/runner.sh"

unit()
{
	say "unit tests"
	unit_of unit /build/plugin "$@"
}

integration()
{
	say "integration tests"
	# What other FSALs do was recorded, and changes with them only.
	[ "$#" -gt 0 ] || set -- -m "not evidence" tests/integration
	pytest_as integration "$@"
}

packages()
{
	say "packages"
	{
		IMAGE_READY=1 "$top/ci/package.sh" short 2>&1 &&
			echo 0 > "$logs/.status" || echo $? > "$logs/.status"
	} | tee "$logs/packages.log"
	status=$(cat "$logs/.status")
	rm -f "$logs/.status"
	[ "$status" = 0 ] || failed=1
	closing="$closing
packages: $(grep -E '^=+ .* in ' "$logs/packages.log" | tail -n 1) (status $status)"
}

part=all
if [ "$#" -gt 0 ]; then
	part=$1
	shift
fi
case $part in
all | unit | integration | packages) ;;
*) die "'$part': unit, integration, packages or nothing" ;;
esac

begin
case $part in
unit) unit "$@" ;;
integration) integration "$@" ;;
packages) packages ;;
all)
	unit
	# shellcheck disable=SC2119
	unit_sanitized
	integration
	packages
	;;
esac
