#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The POSIX cases with FSAL_CEPH and other controls beside CEPH_ASYNC, in one
# lab:  ci/control.sh [OPTIONS of tests/integration/control.py]
#
# Prints the table of docs/conformance.md.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

"$top/ci/image.sh"
ensure_engine
lab=casync-control-$$
logs=$top/build/control-logs/$(date +%Y%m%d-%H%M%S)
mkdir -p "$logs"

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	"$ENGINE" exec "$lab" lab logs --collect /tmp/logs > /dev/null 2>&1 &&
		"$ENGINE" cp "$lab:/tmp/logs/." "$logs" > /dev/null 2>&1 || :
	end_lab "$lab"
	say "logs: $logs"
}
trap finish EXIT
trap 'exit 130' INT TERM
start_lab "$lab"
"$ENGINE" exec "$lab" timeout -k 60 3600 \
	python3 -B /src/fsal-ceph-async/tests/integration/control.py "$@"
