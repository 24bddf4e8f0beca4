#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The fuzzers, in the lab container:  ci/fuzz.sh [MINUTES [FUZZER…]]
#
# Each of them for MINUTES (10), one after the other, under AddressSanitizer and
# UBSan: filehandle, keys and parts by libFuzzer, and network, which sends
# handles to a ganesha.nfsd that runs the instrumented plugin.
#
# Exit status 0 only when nothing was found.  Logs, what libFuzzer added to
# the corpora and the inputs that failed are kept in build/fuzz-logs/<time>.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

minutes=${1:-10}
[ "$#" = 0 ] || shift
case $minutes in
'' | *[!0-9]* | 0) die "'$minutes' is not a number of minutes" ;;
esac
[ "$#" -gt 0 ] || set -- filehandle keys parts network

UNIT_LIMIT=${UNIT_LIMIT:-600}
INTEGRATION_LIMIT=$((minutes * 60 + 900))

logs=$top/build/fuzz-logs/$(date +%Y%m%d-%H%M%S)
lab=casync-fuzz-$$
# shellcheck source=ci/lib/runner.sh
. "$top/ci/lib/runner.sh"

# One line of libFuzzer's last words, which say how much it did.
fuzz()
{
	say "fuzz_$1 for $minutes minutes"
	limited "fuzz-$1" "$((minutes * 60 + 120))" sh -ec "
		mkdir -p /fuzz/$1 && cd /fuzz/$1 && mkdir -p new
		/build/fuzz/tests/fuzz/fuzz_$1 -max_total_time=$((minutes * 60)) \
			-print_final_stats=1 -timeout=10 -rss_limit_mb=2048 \
			-max_len=512 -verbosity=1 new \
			/src/fsal-ceph-async/tests/fuzz/corpus/$1" \
		> /dev/null
	closing="$closing
fuzz_$1: $(sed -n 's/^stat::number_of_executed_units: */inputs: /p' \
		"$logs/fuzz-$1.log"), $(grep -c '^==.*ERROR\|does not hold' \
		"$logs/fuzz-$1.log" || :) findings (status $status)"
	"$ENGINE" cp "$lab:/fuzz/$1" "$logs/$1" > /dev/null 2>&1 || :
}

build_fuzzers()
{
	say "building the fuzzers"
	limited build-fuzz "$UNIT_LIMIT" sh -ec "
		cmake -S . -B /build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang \
			-DCASYNC_FUZZ=ON
		cmake --build /build/fuzz --target $*" > /dev/null
	[ "$status" = 0 ] && return 0
	tail -n 25 "$logs/build-fuzz.log"
	die "the fuzzers cannot be built, see $logs/build-fuzz.log"
}

network()
{
	build_sanitized address,undefined || return 0
	say "handles over the network for $minutes minutes"
	pytest_as fuzz-network -c tests/pytest.ini --rootdir . \
		tests/fuzz --address-build=/build/address \
		"--minutes=$minutes"
}

targets=""
for name in "$@"; do
	case $name in
	filehandle | keys | parts) targets="$targets fuzz_$name" ;;
	network) ;;
	*) die "'$name': filehandle, keys, parts or network" ;;
	esac
done

begin_lab
# shellcheck disable=SC2086 # $targets is a list
[ -z "$targets" ] || build_fuzzers $targets
for name in "$@"; do
	if [ "$name" = network ]; then
		network
	else
		fuzz "$name"
	fi
done
