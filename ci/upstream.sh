#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Ganesha's core with the patches of docs/upstream/, in the lab container:
#
#   ci/upstream.sh DIR [TREE]    apply them to a copy of TREE, and build
#                                DIR/libganesha_nfsd.so (a minute)
#   ci/upstream.sh -n [TREE]     only see whether they apply, one by one
#
# TREE is the source that the plugin was built for (/usr/src/nfs-ganesha/tree).
# A daemon takes the library by LD_LIBRARY_PATH=DIR (lab ganesha --wrapper).
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
lab=/usr/src/nfs-ganesha
[ "$#" -gt 0 ] || { sed -n '4,12s/^# \{0,1\}//p' "$0"; exit 2; }
dir=$1
tree=${2:-$lab/tree}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -a "$tree" "$work/tree"
# In the order of the table in docs/upstream/README.md.
# shellcheck disable=SC2016 # the backticks are Markdown's
sed -n 's/^| `\(ganesha-[^`]*\.patch\)`.*/\1/p' "$top/docs/upstream/README.md" \
	> "$work/order"
failed=0
while read -r patch; do
	echo "$patch"
	patch -d "$work/tree" -p1 --no-backup-if-mismatch \
		-i "$top/docs/upstream/$patch" > "$work/said" || failed=1
	grep -v '^patching file' "$work/said" || :
done < "$work/order"
[ "$dir" != -n ] || exit "$failed"
[ "$failed" = 0 ] || { echo "upstream: a patch does not apply" >&2; exit 1; }

# The build tree has the paths of its source: the copy is mounted there.
cp -a "$lab/build" "$work/build"
ln -s tree/src "$work/src"
# shellcheck disable=SC2016 # for the inner shell
unshare --mount sh -ec 'mount --bind "$1" "$2"
	ninja -C "$2/build" libganesha_nfsd.so' sh "$work" "$lab" \
	> "$work/build.log" 2>&1 || { tail -n 40 "$work/build.log" >&2; exit 1; }
mkdir -p "$dir"
cp -a "$work"/build/MainNFSD/libganesha_nfsd.so* "$dir"
