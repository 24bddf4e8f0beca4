#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The source tarball, from which both kinds of packages are built:
#
#   ci/dist.sh [FOLDER]      default: build/dist
#
# prints the name of FOLDER/nfs-ganesha-ceph-async-VERSION.tar.gz.  VERSION is
# CMakeLists.txt's; it and the date go into the spec file and debian/, which
# are at the top of the tarball: "rpmbuild -ta" and, unpacked,
# "dpkg-buildpackage -b" take it as it is.  What .gitattributes gives
# export-ignore is not in it: results/.
#
# The same files give the same bytes.  The date is that of the last commit, or
# SOURCE_DATE_EPOCH.  PACKAGE_RELEASE (1) counts packages of one VERSION.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$top/build/dist}
release=${PACKAGE_RELEASE:-1}

# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

version=$(project_version)

# What git has, as it is in the working tree now; all of it where git is not.
files()
{
	if git -C "$top" rev-parse --git-dir > /dev/null 2>&1; then
		git -C "$top" ls-files -z --cached --others \
			--exclude-standard -- . ':(exclude,attr:export-ignore)'
	else
		(cd "$top" && find . -name build -prune -o -name .git -prune \
			-o -name __pycache__ -prune -o -path ./results -prune \
			-o -type f -print0)
	fi
}

date=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct 2> /dev/null ||
	:)}
[ -n "$date" ] || die "no commit to take the date from: set SOURCE_DATE_EPOCH"

name=nfs-ganesha-ceph-async-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/$name
mkdir -p "$tree" "$out"
files | (cd "$top" && tar -c --null --no-recursion --ignore-failed-read \
	--warning=no-failed-read -T -) | tar -x -C "$tree"

# The templates become what the tools read.
fill()
{
	sed -e "s/@VERSION@/$version/g" -e "s/@RELEASE@/$release/g" \
		-e "s/@RPM_DATE@/$(LC_ALL=C date -u -d "@$date" '+%a %b %d %Y')/" \
		-e "s/@DEB_DATE@/$(LC_ALL=C date -u -d "@$date" -R)/" "$1"
}
mv "$tree/packaging/debian" "$tree/debian"
fill "$top/packaging/debian/changelog" > "$tree/debian/changelog"
rm "$tree/packaging/rpm/nfs-ganesha-ceph-async.spec"
fill "$top/packaging/rpm/nfs-ganesha-ceph-async.spec" \
	> "$tree/nfs-ganesha-ceph-async.spec"
chmod -R u=rwX,go=rX "$tree"

tar -c -C "$work" --sort=name --owner=0 --group=0 --numeric-owner \
	--mtime="@$date" --format=gnu "$name" | gzip -n -9 > "$out/$name.tar.gz"
echo "$out/$name.tar.gz"
