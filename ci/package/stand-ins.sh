#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Packages for rpm's database, so that dependencies, conflicts and triggers of
# ours are those that count:
#
#   stand-ins.sh OUR_PACKAGES FOLDER
#
# nfs-ganesha, of the version that we are built for and of another;
# nfs-ganesha-ceph with Debian's libfsalceph.so at the place where RPM
# distributions have it, two releases; libcephfs2, good and too old; and one
# that has all libraries which our packages name.
set -eu

ours=$1 out=$2
work=$(mktemp -d)
mkdir -p "$out"
. /opt/image/versions.env
library=$(find /usr/lib -path '*/ganesha/libfsalceph.so')

# package NAME VERSION RELEASE [LINES OF THE SPEC FILE], its files from stdin
package()
{
	{
		cat <<-END
		Name: $1
		Version: $2
		Release: $3
		Summary: Stand-in
		License: none
		AutoReqProv: no
		${4:-}
		%description
		Stand-in.
		%install
		mkdir -p %{buildroot}/usr/lib64/ganesha
		cp $library %{buildroot}/usr/lib64/ganesha/libfsalceph.so
		printf '$3' >> %{buildroot}/usr/lib64/ganesha/libfsalceph.so
		[ $1 = nfs-ganesha-ceph ] || rm -r %{buildroot}/usr
		%files
		END
		cat
	} > "$work/$1.spec"
	rpmbuild -bb --define "_topdir $work" --define 'debug_package %{nil}' \
		--define '__os_install_post %{nil}' "$work/$1.spec" \
		> "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

package nfs-ganesha "$GANESHA_VERSION" 1 < /dev/null
package nfs-ganesha 99.1 1 < /dev/null
for release in 1 2; do
	echo /usr/lib64/ganesha/libfsalceph.so |
		package nfs-ganesha-ceph "$GANESHA_VERSION" "$release" \
			"Requires: nfs-ganesha = $GANESHA_VERSION"
done
package libcephfs2 "$CEPH_TESTED" 1 'Epoch: 2' < /dev/null
package libcephfs2 18.2.7 1 'Epoch: 2' < /dev/null
package libraries 1 1 "$(rpm -qp --requires "$ours"/*.rpm | sort -u |
	sed -n -e '/^\/\|^coreutils/p' -e '/[.]so[.]/p' -e '/^rtld/p' |
	sed 's/^/Provides: /')" < /dev/null
find "$work/RPMS" -name '*.rpm' -exec mv -t "$out" {} +
rm -rf "$work"
ls "$out"
