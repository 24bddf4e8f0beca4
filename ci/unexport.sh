#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# An export goes and comes back under load:  ci/unexport.sh [CYCLES [VERS…]]
#
# CYCLES (100) removals by DBus, with a mount of its own and with a shared
# one, over NFS versions VERS (4.2 3); see tests/soak/unexport.py.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

cycles=${1:-100}
[ "$#" = 0 ] || shift
[ "$#" -gt 0 ] || set -- 4.2 3
case $cycles in
'' | *[!0-9]* | 0) die "'$cycles' is not a number of cycles" ;;
esac

"$top/ci/image.sh"
ensure_engine
lab=casync-unexport-$$
logs=$top/build/unexport-logs/$(date +%Y%m%d-%H%M%S)
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

failed=0
for vers in "$@"; do
	for mount in shared separate; do
		"$ENGINE" exec "$lab" timeout -k 60 "$((cycles * 60 + 600))" \
			python3 -u /src/fsal-ceph-async/tests/soak/unexport.py \
			--vers "$vers" --mount "$mount" "$cycles" || failed=1
	done
done
exit "$failed"
