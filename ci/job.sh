#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The long jobs.  Each is one Python file, run in a lab container of its own:
#
#   ci/job.sh NAME [ARGUMENTS]
#
# chaos [MINUTES] [--seed N] [--no-kernel]
#                               random faults under verified load for MINUTES
#                               (10): daemons and gateways killed and stopped,
#                               sessions evicted, a network cut
# coherence [MINUTES] [--seed N] [--no-kernel]
#                               two gateways with read caches, ceph-fuse and
#                               Linux' CephFS client write and read the same
#                               blocks for MINUTES (10)
# control [OPTIONS]             POSIX cases: CEPH_ASYNC, FSAL_CEPH, controls
# crash [CYCLES [STORAGE [OPTIONS]]]
#                               for each Stable_Write: ganesha.nfsd killed under
#                               load CYCLES (50) times, then STORAGE (20) times
#                               with OSD and MDS
# delays [SEEDS [--first N]]    the unit tests on a machine that has no CPU for
#                               their threads at random: SEEDS (3) times
# failover [ROUNDS [OPTIONS]]   the gateway of a pair of hosts is killed, stopped,
#                               cut off, its host reset, ROUNDS (10) times each,
#                               and moved by hand; Linux clients' pauses.
#                               --ingress: as cephadm moves it, behind haproxy
# fuzz-wire [--minutes N] [--seed S] [OPTIONS]
#                               right and wrong requests of NFSv3 and 4.0 to 4.2,
#                               N (10) minutes to the plugin under each of
#                               AddressSanitizer and ThreadSanitizer
# metadata [OPTIONS]            names made, listed, removed; beside FSAL_CEPH
# model [MINUTES [SEEDS [FIRST]]]
#                               random operations through two exports and another
#                               CephFS client, each compared with a model in
#                               memory: MINUTES (30) over SEEDS (20), from FIRST (1)
# mutate [N] [--seed S] [--file PART]
#                               N (40) small mistakes put into the plugin: which
#                               of them do the unit tests notice
# names [CYCLES [OPTIONS]]      for each Stable_Metadata: gateway, OSD and MDS killed
#                               CYCLES (20) times under changes of names or
#                               attributes, the gateway alone, and the MDS alone;
#                               which acknowledged ones are lost.  --ranks 2: two
#                               active MDSs
# nightly [STEP...]             all that is too long for each change, two side by
#                               side: ci/nightly.sh --list
# reconnect [LOSSES [VERS...]]  the CephFS session is lost 2 * LOSSES (20) times
#                               under verified work, over each of VERS (3 4.0 4.1
#                               4.2), then 200 times in a row; beside FSAL_CEPH
# reload [RELOADS [VERS...]]    RELOADS (200) under verified load, over VERS (4.2)
# slow-backend [OPTIONS]        each OSD op takes 0 to 100 ms; beside FSAL_CEPH
# soak [MINUTES [OPTIONS]]      mixed verified load for MINUTES (30)
#                               --requests N: N from user space beside it, memory
#                               flat within 5 %
# unexport [CYCLES [VERS...]]   an export removed and added CYCLES (100) times
#                               under load, over each of VERS (4.2 3)
#
# The head of the Python file has its OPTIONS and what it checks.  Exit status 0
# when all checks hold.  LIMIT=SECONDS replaces the time limit.  Logs and raw
# figures: build/NAME-logs/<time>.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

# number OF LEAST VALUE: says VALUE when it is a number, at least LEAST.
number()
{
	case $3 in
	'' | *[!0-9]* | 0?*) die "'$3' is not a number of $1" ;;
	esac
	[ "$3" -ge "$2" ] || die "'$3' is not a number of $1"
	echo "$3"
}

job=${1-}
[ "$#" = 0 ] || shift
[ "$job" != nightly ] || exec "$top/ci/nightly.sh" "$@"

# The table: the file and its limit in seconds.  $turns: run it once with each
# line's options; $figures: it writes a JSON file; $store: the OSD's store; $mds:
# the number of MDSs.
turns="" figures="" store="" mds=1
case $job in
chaos | coherence)
	case ${1-} in
	'' | -*) minutes=10 ;;
	*)
		minutes=$(number minutes 1 "$1")
		shift
		;;
	esac
	set -- "$minutes" "$@"
	file=tests/$job/$job.py limit=$((900 + minutes * 90))
	;;
control)
	file=tests/integration/posix_comparison.py limit=3600
	;;
crash)
	cycles=$(number cycles 0 "${1-50}")
	[ "$#" = 0 ] || shift
	storage=$(number cycles 0 "${1-20}")
	[ "$#" = 0 ] || shift
	set -- --cycles "$cycles" --storage "$storage" "$@"
	file=tests/crash/crash.py store=bluestore
	limit=$((600 + 3 * (cycles * 20 + storage * 60)))
	;;
delays)
	seeds=$(number seeds 1 "${1-3}")
	[ "$#" = 0 ] || shift
	set -- "$seeds" "$@"
	file=tests/delays/delays.py limit=$((900 + seeds * 600))
	;;
failover)
	rounds=$(number rounds 1 "${1-10}")
	[ "$#" = 0 ] || shift
	set -- "$@" -- "$rounds"
	file=tests/failover/failover.py figures=yes limit=$((600 + rounds * 300))
	;;
fuzz-wire)
	minutes=10 alone=""
	for word; do
		[ "${before-}" != --minutes ] || minutes=$(number minutes 1 "$word")
		[ "$word" != --sanitizer ] || alone=yes
		before=$word
	done
	[ -n "$alone" ] || turns="
--sanitizer address
--sanitizer thread"
	file=tests/fuzz/wire.py limit=$((1800 + minutes * 60))
	;;
metadata)
	file=tests/bench/studies/metadata.py limit=5400 figures=yes
	;;
model)
	minutes=$(number minutes 1 "${1-30}")
	[ "$#" = 0 ] || shift
	seeds=$(number seeds 1 "${1-20}")
	[ "$#" = 0 ] || shift
	first=$(number seeds 1 "${1-1}")
	[ "$#" = 0 ] || shift
	set -- --seeds "$seeds" --first "$first" "$@" "$minutes"
	file=tests/coherence/model.py limit=$((600 + minutes * 90))
	;;
mutate)
	file=tests/mutations/mutate.py limit=14400 figures=yes
	;;
names)
	cycles=$(number cycles 1 "${1-20}")
	[ "$#" = 0 ] || shift
	for word; do
		[ "${before-}" != --ranks ] || mds=$(number ranks 1 "$word")
		before=$word
	done
	set -- "$@" -- "$cycles"
	file=tests/crash/names.py store=bluestore
	limit=$((600 + cycles * 270))
	;;
reconnect)
	losses=$(number losses 1 "${1-20}")
	[ "$#" = 0 ] || shift
	[ "$#" -gt 0 ] || set -- 3 4.0 4.1 4.2
	for vers; do
		turns="$turns
--vers $vers"
	done
	set -- "$losses"
	file=tests/soak/reconnect.py limit=$((2400 + losses * 60))
	;;
reload)
	reloads=$(number reloads 1 "${1-200}")
	[ "$#" = 0 ] || shift
	[ "$#" -gt 0 ] || set -- 4.2
	for vers; do
		turns="$turns
--vers $vers"
	done
	set -- "$reloads"
	file=tests/soak/reload.py limit=$((600 + reloads * 10))
	;;
slow-backend)
	file=tests/bench/studies/slow_backend.py limit=1800 figures=yes
	;;
soak)
	minutes=$(number minutes 1 "${1-30}")
	[ "$#" = 0 ] || shift
	set -- "$minutes" "$@"
	file=tests/soak/soak.py limit=$((900 + minutes * 60))
	;;
unexport)
	cycles=$(number cycles 1 "${1-100}")
	[ "$#" = 0 ] || shift
	[ "$#" -gt 0 ] || set -- 4.2 3
	for vers; do
		turns="$turns
--vers $vers --mount shared
--vers $vers --mount separate"
	done
	set -- "$cycles"
	file=tests/soak/unexport.py limit=$((600 + cycles * 60))
	;;
'' | -h | --help)
	sed -n '4,/^set -eu/s/^# \{0,1\}//p' "$0"
	exit 0
	;;
*) die "'$job' is no job: ci/job.sh alone lists them" ;;
esac
limit=${LIMIT:-$limit}

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	[ -z "$figures" ] ||
		"$ENGINE" cp "$lab:/tmp/$job.json" "$logs" > /dev/null 2>&1 || :
	keep_logs "$lab" "$logs"
	end_lab "$lab"
	say "logs: $logs"
}

run()
{
	"$ENGINE" exec -w /tmp "$lab" timeout -k 60 "$limit" \
		python3 -B -u "/src/fsal-ceph-async/$file" "$@"
}

"$top/ci/image.sh"
ensure_engine
lab=casync-$job-$$
logs=$top/build/$job-logs/$(date +%Y%m%d-%H%M%S)
mkdir -p "$logs"
trap finish EXIT
trap 'exit 130' INT TERM
start_compiling_lab "$lab"

if [ -n "$store" ]; then
	"$ENGINE" exec -e MDS="$mds" "$lab" lab cluster --"$store"
	"$ENGINE" exec "$lab" lab up
fi
[ -z "$figures" ] || set -- --json "/tmp/$job.json" "$@"
if [ -z "$turns" ]; then
	run "$@"
	exit
fi
failed=0
while read -r turn; do
	# shellcheck disable=SC2086 # a list of options
	[ -z "$turn" ] || run $turn "$@" < /dev/null || failed=1
done << END
$turns
END
exit "$failed"
