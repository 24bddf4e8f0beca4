#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# All tests, on real daemons, in the lab container:
#
#   ci/test.sh                             unit tests, also under sanitizers,
#                                          and integration tests
#   ci/test.sh unit [CTEST ARGS]           ctest alone
#   ci/test.sh integration [PYTEST ARGS]   pytest alone
#
# Exit status 0 only when everything that ran passed.  Logs of the runners
# and of all daemons are kept in build/test-logs/<time>.  ci/sanitize.sh runs
# ganesha.nfsd under the sanitizers too.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

UNIT_LIMIT=${UNIT_LIMIT:-600}
INTEGRATION_LIMIT=${INTEGRATION_LIMIT:-2400}

logs=$top/build/test-logs/$(date +%Y%m%d-%H%M%S)
lab=casync-test-$$
# shellcheck source=ci/runner.sh
. "$top/ci/runner.sh"

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

part=all
if [ "$#" -gt 0 ]; then
	part=$1
	shift
fi
case $part in
all | unit | integration) ;;
*) die "'$part': unit, integration or nothing" ;;
esac

begin
case $part in
unit) unit "$@" ;;
integration) integration "$@" ;;
all)
	unit
	# shellcheck disable=SC2119
	unit_sanitized
	integration
	;;
esac
