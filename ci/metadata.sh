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
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

LIMIT=${LIMIT:-5400}

begin_job metadata /tmp/metadata.json

do_job "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/metadata.py \
	--json /tmp/metadata.json "$@"
