#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Crash tests:  ci/crash.sh [CYCLES [STORAGE [crash.py's options]]]
#
# For each mode of Stable_Write: CYCLES (50) times ganesha.nfsd is killed
# under load, then STORAGE (20) times the OSD and the metadata server with
# it, on BlueStore; after each nothing acknowledged may be missing.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

cycles=${1:-50}
[ "$#" = 0 ] || shift
storage=${1:-20}
[ "$#" = 0 ] || shift
for number in "$cycles" "$storage"; do
	case $number in
	'' | *[!0-9]*) die "'$number' is not a number of cycles" ;;
	esac
done

"$top/ci/image.sh"
ensure_engine
lab=casync-crash-$$
logs=$top/build/crash-logs/$(date +%Y%m%d-%H%M%S)
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

"$ENGINE" exec "$lab" lab up --store bluestore
"$ENGINE" exec -w /tmp "$lab" \
	timeout -k 60 "$((600 + 3 * (cycles * 20 + storage * 60)))" \
	python3 -B -u /src/fsal-ceph-async/tests/crash/crash.py \
	--cycles "$cycles" --storage "$storage" "$@"
