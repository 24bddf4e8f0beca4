#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Does a plugin built for one Ganesha fit another?  Where clang for Python and
# all that the plugin is built with are: in the lab (ci/abi.sh).
#
#   ci/abi/run.sh TREE [BUILT [TABLES]]
#
#   TREE    a source tree of Ganesha and its build tree: src/ and build/
#   BUILT   the one that the plugin was built for (/usr/src/nfs-ganesha)
#   TABLES  folder for the two tables, built.tsv and other.tsv
#
# Exit status 0: it fits.  1: it does not.  2: a tree cannot be read.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

unreadable()
{
	echo "abi.sh: $*" >&2
	exit 2
}

check_tree()
{
	[ -e "$1/src/include/fsal_api.h" ] || unreadable "$1/src is no source" \
		"tree of Ganesha: include/fsal_api.h is missing"
	[ -e "$1/build/include/config.h" ] || unreadable "$1/build/include/" \
		"has no config.h: run Ganesha's cmake there, with the flags" \
		"of the Ganesha that is meant"
}

version_of()
{
	sed -n 's/^#define GANESHA_VERSION "\(.*\)"/\1/p' \
		"$1/build/include/config.h"
}

api_of()
{
	sed -n 's/^#define FSAL_MAJOR_VERSION \([0-9]*\).*/\1/p' \
		"$1/src/include/fsal_api.h"
}

# write_table TREE FILE
write_table()
{
	# No gateway loads this plugin: its compiler flags are all that counts.
	cmake -S "$top" -B "$2.build" -DGANESHA_SRC="$1/src" \
		-DGANESHA_BUILD="$1/build" -DBUILD_TESTING=OFF \
		-DCASYNC_COMPAT=OFF > "$tmp/log" 2>&1 || {
		cat "$tmp/log" >&2
		unreadable "the plugin cannot be configured for $1"
	}
	"$top/ci/abi/table.py" "$2.build" "$1/src" > "$2" ||
		unreadable "no table of $1"
}

case ${1:--} in
-*)
	sed -n '4,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
	exit 2 ;;
esac
[ "$#" -le 3 ] || unreadable "more than TREE, BUILT and TABLES"
tree=$1
built=${2:-/usr/src/nfs-ganesha}
tables=${3:-$tmp}
check_tree "$tree"
check_tree "$built"

other="Ganesha $(version_of "$tree") in $tree"
ours="a plugin built for Ganesha $(version_of "$built") in $built"
if [ "$(api_of "$tree")" != "$(api_of "$built")" ]; then
	echo "does not fit: $other has FSAL API $(api_of "$tree"), and $ours" \
		"has $(api_of "$built")"
	exit 1
fi
mkdir -p "$tables"
write_table "$built" "$tables/built.tsv"
write_table "$tree" "$tables/other.tsv"
rm -rf "$tables/built.tsv.build" "$tables/other.tsv.build"
status=0
"$top/ci/abi/compare.py" "$tables/built.tsv" "$tables/other.tsv" || status=$?
case $status in
0) echo "fits: $other can load $ours" ;;
1) echo "does not fit: $other cannot load $ours" ;;
*) status=2 ;;
esac
exit "$status"
