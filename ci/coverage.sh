#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Which lines and branches of the plugin the tests reach, by gcc and lcov, in
# the lab container:
#
#   ci/coverage.sh         unit and integration tests together
#   ci/coverage.sh unit    the unit tests
#
# Prints the figure by folder.  HTML goes to build/coverage/html, the lines
# that no test reaches to build/coverage/unreached.txt.  What cannot be reached
# is excluded beside its line, by lcov's markers (LCOV_EXCL_LINE and so on)
# with the reason.  Exit status 0 when all tests passed and neither figure is
# below its floor (ci/coverage/floors.env).
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/coverage/floors.env
. "$top/ci/coverage/floors.env"

lab=casync-coverage-$$
case ${1:-all} in
unit) set -- unit "$UNIT_LINES" "$UNIT_BRANCHES" ;;
all) set -- all "$ALL_LINES" "$ALL_BRANCHES" ;;
*) die "'$1': unit or nothing" ;;
esac

"$top/ci/image.sh"
ensure_engine
trap 'end_lab "$lab"' EXIT
trap 'exit 130' INT TERM
start_compiling_lab "$lab"
status=0
"$ENGINE" exec -w /src/fsal-ceph-async "$lab" timeout -k 60 7200 \
	ci/coverage/run.sh "$@" || status=$?
mkdir -p "$top/build/coverage"
for file in html unreached.txt all.info; do
	rm -rf "$top/build/coverage/$file"
	"$ENGINE" cp "$lab:/build/coverage/$file" "$top/build/coverage/$file" \
		> /dev/null || :
done
say "build/coverage/html/index.html, build/coverage/unreached.txt"
exit "$status"
