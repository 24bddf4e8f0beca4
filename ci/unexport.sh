#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# An export goes and comes back under load:  ci/unexport.sh [CYCLES [VERS…]]
#
# CYCLES (100) removals by DBus, with a mount of its own and with a shared
# one, over NFS versions VERS (4.2 3); see tests/soak/unexport.py.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

cycles=${1:-100}
[ "$#" = 0 ] || shift
[ "$#" -gt 0 ] || set -- 4.2 3
case $cycles in
'' | *[!0-9]* | 0) die "'$cycles' is not a number of cycles" ;;
esac

begin_job unexport

failed=0
for vers in "$@"; do
	for mount in shared separate; do
		do_job "$((cycles * 60 + 600))" \
			python3 -u /src/fsal-ceph-async/tests/soak/unexport.py \
			--vers "$vers" --mount "$mount" "$cycles" || failed=1
	done
done
exit "$failed"
