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
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

LIMIT=${LIMIT:-1800}

begin_job slow-backend /tmp/slow_backend.json

do_job "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/slow_backend.py \
	--json /tmp/slow_backend.json "$@"
