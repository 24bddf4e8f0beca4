#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Does a plugin built for one Ganesha fit another?  Compares two source trees
# of Ganesha, with the config.h of their build trees, in the lab container:
#
#   ci/abi.sh TREE [BUILT]
#
# TREE and BUILT are folders with src/ and build/, here or in the lab image.
# BUILT is what the plugin was built for, by default the lab's own Ganesha
# (/usr/src/nfs-ganesha).  ntirpc's headers must be where TREE's CMakeCache.txt
# says, in TREE or in the lab image.
#
# Prints "fits", or each struct member, enum constant, macro, function and
# symbol that the plugin uses and that has moved or changed.  The two tables
# are kept in build/abi/.
#
# Exit status 0: it fits.  1: it does not.  2: a tree cannot be read.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)

case ${1:--}:$# in
-*:* | *:[!12])
	sed -n '4,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
	exit 2 ;;
esac
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

# 1 is an answer.
die()
{
	say "$@" >&2
	exit 2
}

lab=casync-abi-$$
tables=$top/build/abi
tree=$1
built=${2:-/usr/src/nfs-ganesha}

[ ! -d "$tree" ] || tree=$(cd "$tree" && pwd)
[ ! -d "$built" ] || built=$(cd "$built" && pwd)

"$top/ci/image.sh" || exit 2
ensure_engine
trap 'end_lab "$lab"' EXIT
trap 'exit 130' INT TERM

set --
[ ! -d "$tree" ] || set -- "$@" --volume "$tree:$tree:ro"
[ ! -d "$built" ] || [ "$built" = "$tree" ] ||
	set -- "$@" --volume "$built:$built:ro"
start_lab "$lab" "$@"
status=0
"$ENGINE" exec -w /src/fsal-ceph-async "$lab" \
	ci/abi/run.sh "$tree" "$built" /tmp/abi || status=$?
mkdir -p "$tables"
"$ENGINE" cp "$lab:/tmp/abi/." "$tables" > /dev/null 2>&1 || :
[ "$status" -le 1 ] || status=2
exit "$status"
