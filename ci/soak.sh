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
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

minutes=${1:-30}
[ "$#" = 0 ] || shift
case $minutes in
'' | *[!0-9]* | 0) die "'$minutes' is not a number of minutes" ;;
esac

begin_job soak

do_job "$((minutes * 60 + 900))" \
	python3 -u /src/fsal-ceph-async/tests/soak/soak.py "$@" "$minutes"
