#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Second layer: Ganesha's source tree and a build tree beside it, configured
# with the distribution's flags, for its headers and config.h; and the daemon
# itself when packages.sh installed none of the wanted version.
#
# Result: /usr/src/nfs-ganesha/{src,build}, the places CMake looks in.
set -eu

. /opt/image/versions.env
export DEBIAN_FRONTEND=noninteractive

top=/usr/src/nfs-ganesha
ntirpc=/opt/ntirpc
upstream=https://github.com/nfs-ganesha/nfs-ganesha
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)

die()
{
	echo "image: $*" >&2
	exit 1
}

# Other suites of the same mirror: its address is the base image's affair,
# which may have it in one line or, as stock images do, in a paragraph.
mirror()
{
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
		/etc/apt/sources.list.d/*.sources 2>/dev/null |
		awk -v suite="$SUITE" '
			$1 == "deb" {
				gsub(/\[[^]]*\]/, "")
				if ($3 == suite) print $2
			}
			$1 == "URIs:" { uri = $2 }
			$1 == "Suites:" {
				for (i = 2; i <= NF; i++)
					if ($i == suite) print uri
			}' | head -n 1
}

mirror_line()
{
	uri=$(mirror)
	[ -n "$uri" ] || die "no mirror of $SUITE in /etc/apt: the base" \
		"image is of another suite than SUITE in ci/versions.env"
	echo "$1 $uri $2 main"
}

source_of_debian()
{
	mirror_line deb-src "$GANESHA_SOURCE_SUITE" \
		> /etc/apt/sources.list.d/src.list
	apt-get update -q
	status=0
	apt-get source -q --download-only "nfs-ganesha=$GANESHA_SOURCE" ||
		status=$?
	rm /etc/apt/sources.list.d/src.list
	[ "$status" = 0 ] || return 1
	dpkg-source --no-check -x "nfs-ganesha_$GANESHA_SOURCE.dsc" tree
}

# The source, in tree/.
source_tree()
{
	if [ -e /opt/image/source.tar ]; then
		echo "image: Ganesha's source from the tarball"
		mkdir tree
		tar -xf /opt/image/source.tar -C tree --strip-components=1
	elif source_of_debian; then
		echo "image: Ganesha's source from $GANESHA_SOURCE_SUITE"
	elif git clone -q --depth 1 --branch "V$GANESHA_VERSION" \
			"$upstream" tree; then
		echo "image: Ganesha's source from upstream's tag"
		rm -rf tree/.git
	else
		die "no source of Ganesha $GANESHA_VERSION from Debian or" \
			"upstream: GANESHA_TARBALL=FILE gives one"
	fi
}

[ "$GANESHA" = "$GANESHA_VERSION" ] || die "build/ganesha is for" \
	"$GANESHA_VERSION, not $GANESHA: another ci/image.sh was running"

# The distribution's Ganesha makes way for another one.
case $(dpkg-query -W -f '${Version}' nfs-ganesha 2> /dev/null) in
"$GANESHA_VERSION"-*) from=package ;;
*)
	from=source
	apt-get purge -q -y 'nfs-ganesha*'
	echo "$from" > /etc/casync-lab/ganesha.from ;;
esac

mkdir -p "$top" "$ntirpc"
chmod 0777 "$top"
cd "$top"
source_tree
ln -s tree/src src
have=$(sed -n 's/^set(GANESHA_M[A-Z]*_VERSION \([0-9.]*\))$/\1/p' \
	src/CMakeLists.txt | tr -d '\n')
[ "$have" = "$GANESHA_VERSION" ] || die "the source is of Ganesha" \
	"${have:-?}, not $GANESHA_VERSION"

mirror_line deb "$NTIRPC_SUITE" > /etc/apt/sources.list.d/ntirpc.list
printf 'Package: *\nPin: release n=%s\nPin-Priority: 1\n' "$NTIRPC_SUITE" \
	> /etc/apt/preferences.d/ntirpc
apt-get update -q
apt-get download -q "libntirpc-dev=$NTIRPC_PACKAGE" ||
	die "no libntirpc-dev $NTIRPC_PACKAGE in $NTIRPC_SUITE: see" \
	    "NTIRPC_PACKAGE in ci/versions.env"
[ -e "/usr/lib/$triplet/libntirpc.so.$NTIRPC_VERSION" ] ||
	apt-get install -q -y "libntirpc$NTIRPC_VERSION=$NTIRPC_PACKAGE" ||
	die "no libntirpc$NTIRPC_VERSION in $NTIRPC_SUITE"
rm /etc/apt/sources.list.d/ntirpc.list /etc/apt/preferences.d/ntirpc
apt-get update -q

# The development package points at the installed library, not at a copy.
dpkg-deb -x libntirpc-dev_*.deb "$ntirpc"
for lib in ntirpc ntirpcmonitoring; do
	so=/usr/lib/$triplet/lib$lib.so.$NTIRPC_VERSION
	[ ! -e "$so" ] || ln -sf "$so" "$ntirpc/usr/lib/$triplet/lib$lib.so"
done

# shellcheck disable=SC2086 # $GANESHA_CMAKE is a list
# debian/rules' flags, less what adds tools and other back ends: none of the
# differences reaches config.h's struct-changing macros (docs/install.md).
cmake -S src -B build -G Ninja \
	-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	-DDISTNAME_HAS_GIT_DATA=OFF \
	-DLIB_INSTALL_DIR=/usr/lib/ganesha \
	-DFSAL_DESTINATION="/usr/lib/$triplet/ganesha" \
	-DCMAKE_INSTALL_SYSCONFDIR=/etc -DSYSSTATEDIR=/var \
	-DUSE_SYSTEM_NTIRPC=YES -DNTIRPC_PREFIX="$ntirpc/usr" \
	-DUSE_MONITORING=YES -DUSE_DBUS=ON -DUSE_9P=ON -DUSE_9P_RDMA=NO \
	-DUSE_LTTNG=NO -D_MSPAC_SUPPORT=YES -DENABLE_VFS_POSIX_ACL=YES \
	-DUSE_RADOS_RECOV=YES -DRADOS_URLS=YES -DUSE_FSAL_CEPH=YES \
	-DUSE_FSAL_VFS=ON -DUSE_FSAL_NULL=YES -DUSE_FSAL_MEM=YES \
	-DUSE_FSAL_PROXY_V4=ON -DUSE_FSAL_PROXY_V3=OFF \
	-DUSE_FSAL_RGW=NO -DUSE_FSAL_GPFS=NO -DUSE_FSAL_GLUSTER=NO \
	-DUSE_FSAL_XFS=NO -DUSE_FSAL_LUSTRE=NO -DUSE_FSAL_KVSFS=NO \
	-DUSE_FSAL_SAUNAFS=NO \
	-DUSE_ADMIN_TOOLS=NO -DUSE_GUI_ADMIN_TOOLS=NO -DUSE_MAN_PAGE=NO \
	-DSANITIZE_ADDRESS=NO ${GANESHA_CMAKE-} > configure.log 2>&1 ||
	{ tail -n 40 configure.log >&2; die "Ganesha's cmake failed"; }

if [ "$from" = source ]; then
	ninja -C build > build.log 2>&1 ||
		{ tail -n 60 build.log >&2; die "Ganesha's build failed"; }
	ninja -C build install > install.log 2>&1 ||
		{ tail -n 60 install.log >&2; die "Ganesha's install failed"; }
	install -D -m 0644 src/scripts/ganeshactl/org.ganesha.nfsd.conf \
		/usr/share/dbus-1/system.d/nfs-ganesha-dbus.conf
	install -D -m 0644 src/scripts/systemd/nfs-ganesha.service.debian8 \
		/usr/lib/systemd/system/nfs-ganesha.service
	mkdir -p /etc/ganesha /var/log/ganesha
fi
ganesha.nfsd -v 2>&1 | grep -q "V*$GANESHA_VERSION" ||
	die "ganesha.nfsd is not $GANESHA_VERSION: $(ganesha.nfsd -v 2>&1)"
