#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# In the container where they were built: the same tarball, built in another
# place, time zone, language and with another umask, gives the same bytes.
#
#   again.sh deb|rpm TARBALL FOLDER
#
# FOLDER is build.sh's of the first build.
set -eu

here=$(dirname "$0")
kind=$1 tarball=$2 first=$3
second=/var/tmp/a.rather.different.folder/$kind

umask 027
export TZ=Pacific/Kiritimati LANG=C LC_ALL=C USER=somebody
sleep 1
sh "$here/build.sh" "$kind" "$tarball" "$second"

# Not .buildinfo and .changes, which say when and where; nor .src.rpm, into
# which rpm writes the folder it was made in.
status=0 count=0
for package in "$first"/out/*.deb "$first"/out/*.dsc "$first"/out/*.tar.* \
	"$first"/out/*.rpm; do
	case $package in
	*.src.rpm | *'*'*) continue ;;
	esac
	name=$(basename "$package")
	if cmp "$package" "$second/out/$name"; then
		echo "the same bytes twice: $name" \
			"$(sha256sum < "$package" | cut -c 1-16)"
		count=$((count + 1))
	else
		status=1
	fi
done
[ "$count" -gt 0 ] || status=1
exit "$status"
