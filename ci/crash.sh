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
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

cycles=${1:-50}
[ "$#" = 0 ] || shift
storage=${1:-20}
[ "$#" = 0 ] || shift
for number in "$cycles" "$storage"; do
	case $number in
	'' | *[!0-9]*) die "'$number' is not a number of cycles" ;;
	esac
done

begin_job crash

"$ENGINE" exec "$lab" lab up --store bluestore
do_job "$((600 + 3 * (cycles * 20 + storage * 60)))" \
	python3 -B -u /src/fsal-ceph-async/tests/crash/crash.py \
	--cycles "$cycles" --storage "$storage" "$@"
