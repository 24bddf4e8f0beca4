#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# FSAL_CEPH beside CEPH_ASYNC on a slow backend:
#
#   ci/slow-backend.sh [slow_backend.py's options]
#
# Every OSD operation is delayed by 0 to 100 ms; the two take turns in one
# run.  Exit status 0 when all bounds hold.  The figures are kept as JSON
# with the logs.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

LIMIT=${LIMIT:-1800}

"$top/ci/image.sh"
ensure_engine
lab=casync-slow-$$
logs=$top/build/slow-backend-logs/$(date +%Y%m%d-%H%M%S)
mkdir -p "$logs"

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	"$ENGINE" cp "$lab:/tmp/slow_backend.json" "$logs" > /dev/null 2>&1 || :
	"$ENGINE" exec "$lab" lab logs --collect /tmp/logs > /dev/null 2>&1 &&
		"$ENGINE" cp "$lab:/tmp/logs/." "$logs" > /dev/null 2>&1 || :
	end_lab "$lab"
	say "figures and logs: $logs"
}
trap finish EXIT
trap 'exit 130' INT TERM
start_lab "$lab"

"$ENGINE" exec "$lab" timeout -k 60 "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/slow_backend.py \
	--json /tmp/slow_backend.json "$@"
