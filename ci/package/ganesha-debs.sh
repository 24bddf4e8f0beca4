#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# In the lab: Debian packages of a Ganesha that the lab has built from source,
# and the list of them for apt.  Their names and parts are those of Debian's
# own, so dpkg decides about our packages as it does there.  They are for
# tests: one machine, no conffiles, ntirpc's library inside.
#
#   ganesha-debs.sh FOLDER
#
# FOLDER stays empty where Ganesha is the distribution's, or where this is no
# lab.
set -eu

out=$1
mkdir -p "$out"
[ "$(cat /etc/casync-lab/ganesha.from 2> /dev/null)" = source ] || exit 0
. /opt/image/versions.env

version=$GANESHA_VERSION-1
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
plugins=/usr/lib/$triplet/ganesha
work=$(mktemp -d)
# The same files give the same packages, and images on them are kept.
export SOURCE_DATE_EPOCH=1

# What Ganesha's build installs, and what ci/image/ganesha.sh adds.
all=$work/all
DESTDIR=$all ninja -C /usr/src/nfs-ganesha/build install > /dev/null
for file in /usr/share/dbus-1/system.d/nfs-ganesha-dbus.conf \
	/usr/lib/systemd/system/nfs-ganesha.service; do
	install -D -m 0644 "$file" "$all$file"
done
# No suite beside it has this ntirpc.  Ganesha looks for libraries here.
cp -L "/usr/lib/$triplet/libntirpc.so.$NTIRPC_VERSION" "$all/usr/lib/ganesha/"
mkdir -p "$all/etc/default" "$all/var/log/ganesha"
cat > "$all/etc/default/nfs-ganesha" <<'END'
OPTIONS="-L /var/log/ganesha/ganesha.log -f /etc/ganesha/ganesha.conf -N NIV_EVENT"
END
find "$all" -type f \( -name '*.so*' -o -path '*/bin/*' \) \
	-exec strip --strip-unneeded {} +

# part PACKAGE FILE...: these files are of that package, not of nfs-ganesha
part()
{
	to=$work/$1
	shift
	for file; do
		mkdir -p "$to$(dirname "$file")"
		mv "$all$file" "$to$file"
	done
}

# What dpkg-shlibdeps finds out about the programs and libraries in folder $1.
libraries()
{
	mkdir -p "$work/debian"
	printf 'Source: nfs-ganesha\n\nPackage: nfs-ganesha\nArchitecture: any\n' \
		> "$work/debian/control"
	(cd "$work" && find "$1" -type f \( -name '*.so*' -o -path '*/bin/*' \) \
		-exec dpkg-shlibdeps -O "-l$work/nfs-ganesha/usr/lib/ganesha" \
		"-xlibntirpc$NTIRPC_VERSION" --ignore-missing-info {} + \
		2> /dev/null) | sed 's/^shlibs:Depends=/, /'
}

# package NAME DEPENDS
package()
{
	mkdir -p "$work/$1/DEBIAN"
	cat > "$work/$1/DEBIAN/control" <<-END
	Package: $1
	Version: $version
	Architecture: $(dpkg --print-architecture)
	Maintainer: FSAL_CEPH_ASYNC maintainers <maintainers@fsal-ceph-async.example>
	Depends: $2$(libraries "$work/$1")
	Description: NFS-Ganesha $GANESHA_VERSION, for tests
	END
	dpkg-deb --root-owner-group --build "$work/$1" "$out" > /dev/null
}

part nfs-ganesha-ceph "$plugins/libfsalceph.so"
part nfs-ganesha-rados-grace /usr/bin/ganesha-rados-grace
mv "$all" "$work/nfs-ganesha"
package nfs-ganesha "dbus, nfs-common, rpcbind"
package nfs-ganesha-ceph "nfs-ganesha (= $version)"
package nfs-ganesha-rados-grace "nfs-ganesha (= $version)"
(cd "$out" && dpkg-scanpackages --multiversion . > Packages 2> /dev/null)
rm -rf "$work"
