#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# From a fresh machine to a mounted export: builds the lab image if need be,
# starts a Ceph cluster and Ganesha in a container of it, mounts the export
# with Linux's own NFS client, checks files, and compares FSAL_CEPH with
# FSAL_CEPH_ASYNC.  The container is gone afterwards.  GANESHA=5.9 runs it with
# that Ganesha (ci/image.sh).
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

"$top/ci/image.sh"
ensure_engine
lab=casync-demo-$$
trap 'end_lab "$lab"' EXIT
trap 'exit 130' INT TERM
start_lab "$lab"
say "lab container $lab is up"
"$ENGINE" exec "$lab" timeout -k 30 900 \
	python3 -u /src/fsal-ceph-async/lab/demo.py || {
	status=$?
	echo "--- Ganesha's logs" >&2
	"$ENGINE" exec "$lab" lab logs >&2 || :
	logs=$top/build/demo-logs/$(date +%Y%m%d-%H%M%S)
	mkdir -p "$logs"
	keep_logs "$lab" "$logs"
	die "the demonstration failed (status $status); logs: $logs"
}
say "done; the container is removed, and the logs in it"
