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
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

LIMIT=${LIMIT:-1800}

"$top/ci/image.sh"
ensure_engine
lab=casync-metrics-cost-$$
logs=$top/build/metrics-cost-logs/$(date +%Y%m%d-%H%M%S)
mkdir -p "$logs"

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	"$ENGINE" cp "$lab:/tmp/metrics_cost.json" "$logs" > /dev/null 2>&1 || :
	"$ENGINE" exec "$lab" lab logs --collect /tmp/logs > /dev/null 2>&1 &&
		"$ENGINE" cp "$lab:/tmp/logs/." "$logs" > /dev/null 2>&1 || :
	end_lab "$lab"
	say "figures and logs: $logs"
}
trap finish EXIT
trap 'exit 130' INT TERM
start_lab "$lab"

"$ENGINE" exec "$lab" timeout -k 60 "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/metrics_cost.py \
	--json /tmp/metrics_cost.json "$@"
