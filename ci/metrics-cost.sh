#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# What counting costs: the plugin with and without its metrics:
#
#   ci/metrics-cost.sh [metrics_cost.py's options]
#
# 4 KiB reads and writes, as many as go; the two take turns in one run.  Exit
# status 0 when counting costs less than 1 % of Ganesha's CPU time.  The
# figures are kept as JSON with the logs.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

LIMIT=${LIMIT:-1800}

begin_job metrics-cost /tmp/metrics_cost.json

do_job "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/metrics_cost.py \
	--json /tmp/metrics_cost.json "$@"
