#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Which lines and branches of the plugin the tests reach: the part of
# ci/coverage.sh that runs in the lab.
#
#   ci/coverage/run.sh [unit|all] [LINES BRANCHES]
#
# Fails when a test fails, or when less than LINES % of the lines or BRANCHES %
# of the branches are reached.  Leaves HTML in /build/coverage/html, and what
# no test reaches in /build/coverage/unreached.txt.
#
# A ganesha.nfsd writes its counts when it ends or unloads the plugin; one that
# is killed loses them.  Several at once add theirs to the same files.
set -eu

cd "$(dirname "$0")/../.."
part=${1:-all}
build=/build/coverage
failed=0

echo "coverage: building with counters (log: $build.log)"
{
	# A Debug build: what must hold is checked at run time, too.
	cmake -S . -B "$build" -G Ninja -DCASYNC_COVERAGE=ON \
		-DCMAKE_BUILD_TYPE=Debug
	cmake --build "$build"
} > "$build.log" 2>&1 || {
	tail -n 25 "$build.log"
	exit 1
}
find "$build" -name '*.gcda' -delete

# test_memory repeats what other tests do, a million times.
echo "coverage: unit tests"
ctest --test-dir "$build" --exclude-regex test_memory --output-on-failure \
	--parallel "$(nproc)" > "$build.unit.log" 2>&1 || failed=1
grep -E 'tests passed|\*\*\*' "$build.unit.log" || :

if [ "$part" = all ]; then
	echo "coverage: integration tests"
	cmake --install "$build" > /dev/null
	cmake --install "$build" --component faults > /dev/null
	cmake --install "$build" --component lab > /dev/null
	python3 -m pytest -v -m "not evidence" tests/integration \
		tests/tools || failed=1
	lab ganesha stop
	lab down
fi

echo "coverage: counting"
lcov --capture --all --directory "$build" --branch-coverage \
	--include "$(pwd)/FSAL_CEPH_ASYNC/*" --parallel "$(nproc)" --quiet \
	--rc geninfo_unexecuted_blocks=1 --output-file "$build/all.info" \
	> "$build.lcov.log" 2>&1 || {
	tail -n 25 "$build.lcov.log"
	exit 1
}
genhtml "$build/all.info" --branch-coverage --prefix "$(pwd)" --quiet \
	--title "FSAL_CEPH_ASYNC, $part" --output-directory "$build/html" \
	> "$build.html.log" 2>&1 || {
	tail -n 25 "$build.html.log"
	exit 1
}
ci/coverage/figures.py "$build/all.info" --unreached "$build/unreached.txt" \
	${2:+--floor "$2" "$3"} || failed=1
exit "$failed"
