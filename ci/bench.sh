#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# CEPH_ASYNC side by side with every peer, in one run on one cluster:
#
#   ci/bench.sh [--quick] [--against RAW.JSON] [SCENARIO...]
#
# --quick takes what the targets are about and ends within 10 minutes once
# the image is there; everything takes hours (--list says what).
# Raw figures and report: results/DATE/.  They are there from the first minute
# on.  A run of everything may be made in parts, some scenarios in each.
#   ci/bench.sh --disk MIB_S,IOPS disk
# holds the disk beneath the container to that, reads and writes each: the
# scenario "disk" is on BlueStore.  It needs docker, and a disk of its own kind
# (not tmpfs) beneath its data.
# Exit status 0 when every measurement was made, whatever came out.  More
# options: --help.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

LIMIT=${LIMIT:-43200}

# The files that are named are the host's: the container gets copies.
against=
disk=
here=
expect=
for word; do
	shift
	case $expect$word in
	against:*) against=${word} word=/tmp/against.json ;;
	disk:*)
		disk=$word expect=
		continue
		;;
	esac
	expect=
	case $word in
	--disk)
		expect=disk:
		continue
		;;
	--disk=*)
		disk=${word#*=}
		continue
		;;
	--against) expect=against: ;;
	--against=*)
		against=${word#*=}
		word=--against=/tmp/against.json
		;;
	--list | --help | -h) here=yes ;;
	--report* | --output* | --no-up)
		die "$word is for tests/bench/peers itself" ;;
	esac
	set -- "$@" "$word"
done
[ -z "$against" ] || [ -r "$against" ] ||
	die "--against $against: no such file"

case ${disk:-60,200} in
*[!0-9,]* | *,*,* | ,* | *,) die "--disk $disk: not MIB_S,IOPS, as 60,200" ;;
*,*) ;;
*) die "--disk $disk: not MIB_S,IOPS, as 60,200" ;;
esac

"$top/ci/image.sh"
ensure_engine
lab=casync-bench-$$
results=$top/results/$(date +%Y-%m-%d)
for number in 2 3 4 5 6 7 8 9; do
	[ -e "$results" ] || break
	results=$top/results/$(date +%Y-%m-%d)-$number
done
logs=$top/build/bench-logs/$(date +%Y%m%d-%H%M%S)
commit=$(git -C "$top" describe --always --dirty 2> /dev/null || echo unknown)

# The options that hold the disk beneath the engine's data to a rate.
disk_limits()
{
	root=$("$ENGINE" info -f '{{.DockerRootDir}}' 2> /dev/null) ||
		die "--disk needs docker"
	device=$(df --output=source "$root" | tail -n 1)
	whole=$(lsblk -no pkname "$device" 2> /dev/null | head -n 1)
	[ -z "$whole" ] || device=/dev/$whole
	[ -b "$device" ] ||
		die "--disk: $root is on $device, which is no disk"
	for way in read write; do
		echo "--device-$way-bps=$device:${disk%,*}mb"
		echo "--device-$way-iops=$device:${disk#*,}"
	done
}

copy_results()
{
	"$ENGINE" cp "$lab:/tmp/results/." "$results" > /dev/null 2>&1 || :
}

# Whatever ends this machine takes a minute of results at most.
copy_each_minute()
{
	while sleep 60; do
		copy_results
	done
}

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	mkdir -p "$results" "$logs"
	[ -z "${copying-}" ] || kill "$copying" 2> /dev/null || :
	copy_results
	keep_logs "$lab" "$logs"
	end_lab "$lab"
	say "figures and report: $results, logs: $logs"
}
[ -n "$here" ] || trap finish EXIT
[ -z "$here" ] || trap 'end_lab "$lab"' EXIT
trap 'exit 130' INT TERM
limits=
if [ -n "$disk" ]; then
	limits=$(disk_limits)
	limits="$limits --env CASYNC_DISK=$disk"
fi
# shellcheck disable=SC2086 # they are several words
start_lab "$lab" --env "CASYNC_COMMIT=$commit" $limits

if [ -z "$here" ]; then
	mkdir -p "$results"
	copy_each_minute &
	copying=$!
fi
[ -z "$against" ] || "$ENGINE" cp "$against" "$lab:/tmp/against.json" \
	> /dev/null
"$ENGINE" exec "$lab" timeout -k 60 "$LIMIT" \
	python3 -u /src/fsal-ceph-async/tests/bench/peers \
	--output /tmp/results "$@"
