#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# In the container for it: one build, from a tarball of ci/dist.sh.
#
#   build.sh deb|rpm TARBALL FOLDER    packages are in FOLDER/out then
set -eu

kind=$1 tarball=$2 work=$3
rm -rf "$work"
mkdir -p "$work/out"
name=$(basename "$tarball" .tar.gz)

deb()
{
	cp "$tarball" "$work/$(echo "$name" | sed 's/-\([^-]*\)$/_\1/').orig.tar.gz"
	tar -x -f "$tarball" -C "$work"
	(cd "$work/$name" && dpkg-buildpackage -us -uc)
	find "$work" -maxdepth 1 -type f -exec mv -t "$work/out" {} +
}

# rpm's own database knows nothing of what dpkg has installed: --nodeps.  The
# rest is what an RPM distribution's configuration of rpm says.
rpm()
{
	rpmbuild -ta --nodeps --define "_topdir $work" \
		--define '_enable_debug_packages 1' \
		--define '_docdir /usr/share/doc' \
		--define '_licensedir /usr/share/licenses' "$tarball"
	find "$work/RPMS" "$work/SRPMS" -name '*.rpm' -exec mv -t "$work/out" {} +
}

"$kind"
rm -rf "$work/BUILD" "${work:?}/$name"
