#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The long mixed load:  ci/soak.sh [MINUTES [soak.py's options]]
#
# fio with verification, a C build and trees made and removed, side by side
# in the kernel client for MINUTES (30), then the checks: no error, no assert
# in a log, nothing left in flight, Ganesha's memory flat.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

minutes=${1:-30}
[ "$#" = 0 ] || shift
case $minutes in
'' | *[!0-9]* | 0) die "'$minutes' is not a number of minutes" ;;
esac

"$top/ci/image.sh"
ensure_engine
lab=casync-soak-$$
logs=$top/build/soak-logs/$(date +%Y%m%d-%H%M%S)
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

"$ENGINE" exec "$lab" timeout -k 60 "$((minutes * 60 + 900))" \
	python3 -u /src/fsal-ceph-async/tests/soak/soak.py "$@" "$minutes"
