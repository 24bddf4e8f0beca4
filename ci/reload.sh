#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The configuration is read again under load:  ci/reload.sh [RELOADS [VERS…]]
#
# RELOADS (200) by SIGHUP while fio verifies on two exports, over NFS versions
# VERS (4.2); see tests/soak/reload.py.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib.sh
. "$top/ci/lib.sh"

reloads=${1:-200}
[ "$#" = 0 ] || shift
[ "$#" -gt 0 ] || set -- 4.2
case $reloads in
'' | *[!0-9]* | 0) die "'$reloads' is not a number of reloads" ;;
esac

"$top/ci/image.sh"
ensure_engine
lab=casync-reload-$$
logs=$top/build/reload-logs/$(date +%Y%m%d-%H%M%S)
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
	"$ENGINE" exec "$lab" timeout -k 60 "$((reloads * 10 + 600))" \
		python3 -u /src/fsal-ceph-async/tests/soak/reload.py \
		--vers "$vers" "$reloads" || failed=1
done
exit "$failed"
