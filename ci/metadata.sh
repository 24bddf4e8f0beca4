#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# FSAL_CEPH beside CEPH_ASYNC when names are made, looked at and removed:
#
#   ci/metadata.sh [metadata.py's options]
#
# 10,000 files are made, looked at, listed, renamed and removed, over NFSv3
# and 4.1, by 1 and by 8 clients; the two take turns in one run.  Exit status
# 0 when CEPH_ASYNC is at least as fast in each.  The figures are kept as JSON
# with the logs.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

LIMIT=${LIMIT:-5400}

"$top/ci/image.sh"
ensure_engine
lab=casync-metadata-$$
logs=$top/build/metadata-logs/$(date +%Y%m%d-%H%M%S)
mkdir -p "$logs"

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	"$ENGINE" cp "$lab:/tmp/metadata.json" "$logs" > /dev/null 2>&1 || :
	"$ENGINE" exec "$lab" lab logs --collect /tmp/logs > /dev/null 2>&1 &&
		"$ENGINE" cp "$lab:/tmp/logs/." "$logs" > /dev/null 2>&1 || :
	end_lab "$lab"
	say "figures and logs: $logs"
}
trap finish EXIT
trap 'exit 130' INT TERM
start_lab "$lab"

"$ENGINE" exec "$lab" timeout -k 60 "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/metadata.py \
	--json /tmp/metadata.json "$@"
