#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The configuration is read again under load:  ci/reload.sh [RELOADS [VERS…]]
#
# RELOADS (200) by SIGHUP while fio verifies on two exports, over NFS versions
# VERS (4.2); see tests/soak/reload.py.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

reloads=${1:-200}
[ "$#" = 0 ] || shift
[ "$#" -gt 0 ] || set -- 4.2
case $reloads in
'' | *[!0-9]* | 0) die "'$reloads' is not a number of reloads" ;;
esac

begin_job reload

failed=0
for vers in "$@"; do
	do_job "$((reloads * 10 + 600))" \
		python3 -u /src/fsal-ceph-async/tests/soak/reload.py \
		--vers "$vers" "$reloads" || failed=1
done
exit "$failed"
