#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# First layer of the lab image: everything that comes as a package.
#
# Leaves /etc/casync-lab/ganesha.from saying "package" or "source", so that
# ganesha.sh knows whether the daemon has to be built.
set -eu

. /opt/image/versions.env
export DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1

die()
{
	echo "image: $*" >&2
	exit 1
}

candidate()
{
	apt-cache policy "$1" | sed -n 's/^  Candidate: //p'
}

# A build that the power fails is done again: nobody needs what dpkg syncs.
echo force-unsafe-io > /etc/dpkg/dpkg.cfg.d/unsafe-io

apt-get update -q

ceph=$(candidate ceph-mon)
case "$ceph" in
"$CEPH_TESTED"+* | "$CEPH_TESTED"-*) ;;
"$CEPH_RELEASE".*)
	echo "image: Ceph $ceph instead of the tested $CEPH_TESTED" ;;
*)
	die "Ceph $CEPH_RELEASE is wanted, the distribution has" \
	    "'${ceph:-none}': see CEPH_RELEASE in ci/versions.env" ;;
esac

ganesha=$(candidate nfs-ganesha)
case "${GANESHA_FROM:-auto}:$ganesha" in
auto:"$GANESHA_VERSION"-* | package:"$GANESHA_VERSION"-*)
	from=package
	daemon="nfs-ganesha nfs-ganesha-ceph nfs-ganesha-rados-grace" ;;
package:*)
	die "NFS-Ganesha $GANESHA_VERSION is wanted as a package, the" \
	    "distribution has '${ganesha:-none}'" ;;
auto:* | source:*)
	from=source
	daemon="" ;;
*)
	die "GANESHA_FROM=$GANESHA_FROM: auto, package or source" ;;
esac
echo "image: NFS-Ganesha $GANESHA_VERSION from $from" \
     "(the distribution has '${ganesha:-none}'), Ceph $ceph"

# shellcheck disable=SC2086 # $daemon is a list
apt-get install -q -y --no-install-recommends $daemon \
	ceph-mon ceph-mgr ceph-osd ceph-mds ceph-common ceph-fuse \
	libcephfs-dev librados-dev python3-cephfs \
	build-essential ccache cmake ninja-build bison flex pkgconf dpkg-dev \
	prometheus-cpp-lite libkrb5-dev libnfsidmap-dev libblkid-dev libdbus-1-dev libacl1-dev libssl-dev \
	liburcu-dev uuid-dev libcap-dev libwbclient-dev \
	clang libclang-rt-dev clang-tidy python3-clang clang-format cppcheck lcov libcmocka-dev shellcheck \
	ruff codespell \
	gdb strace linux-perf valgrind \
	user-mode-linux fio libnfs-utils libnfs-dev nfs-common rpcbind \
	krb5-kdc krb5-admin-server krb5-user \
	nfs-kernel-server \
	libhdr-histogram-dev libjson-c-dev libfaketime \
	mandoc dbus iproute2 kmod procps psmisc attr acl keepalived haproxy iputils-arping git jq rsync xz-utils \
	promtool prometheus-node-exporter \
	python3-pytest python3-pytest-timeout python3-dbus python3-jinja2

# `lab nfs-cluster` and `lab ingress` take cephadm's templates of a gateway's and
# of a proxy's configuration.  The package itself would bring cephadm and an ssh
# client.
templates=usr/share/ceph/mgr/cephadm/templates/services
(
	cd /tmp
	apt-get download -q ceph-mgr-cephadm
	dpkg-deb --extract ceph-mgr-cephadm_*.deb cephadm
	install -D -m 644 -t /usr/share/casync-lab \
		cephadm/$templates/nfs/ganesha.conf.j2 \
		cephadm/$templates/ingress/haproxy.cfg.j2
	rm -r cephadm ceph-mgr-cephadm_*.deb
)
apt-get clean

mkdir -p /etc/casync-lab
echo "$from" > /etc/casync-lab/ganesha.from
