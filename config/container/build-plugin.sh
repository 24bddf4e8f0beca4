#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# First stage of Containerfile.source, in an image that has Ganesha: builds the
# plugin for that Ganesha, with the libcephfs that is there, and tries it.
#
#   build-plugin.sh FOLDER    FOLDER gets what is copied into the image
#
# Environment: COMPAT, GANESHA_URL, NTIRPC_URL; see Containerfile.source.
#
# Ganesha's config.h decides the layout of structs.  No package has it, so
# Ganesha's cmake writes it, with flags that are read from Ganesha's library.
set -eu

out=$1
beside=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$beside/../.." && pwd)
work=$(mktemp -d)
export DEBIAN_FRONTEND=noninteractive
upstream=https://github.com/nfs-ganesha

# Of Ganesha's flags those that change structs or what the plugin includes; how
# config.h names each; and a text that the library has if it was built so.
FLAGS="USE_NFS3 _USE_NFS3 MNT_Port
USE_NLM _USE_NLM Enable_NLM
USE_RQUOTA _USE_RQUOTA Enable_RQUOTA
USE_NFSACL3 USE_NFSACL3 Enable_NFSACL
USE_NFS_RDMA _USE_NFS_RDMA nfsrdma
USE_9P _USE_9P _9P_TCP_Port
USE_GSS _HAVE_GSSAPI Active_krb5
USE_DBUS USE_DBUS org.ganesha.nfsd
USE_MONITORING USE_MONITORING Monitoring_Port
ENABLE_QOS ENABLE_QOS enable_qos
DEBUG_SAL DEBUG_SAL dump_all_states"

stop()
{
	echo "STOP: $*" >&2
	exit 1
}

# run WHAT COMMAND...: quiet, unless it fails.
run()
{
	what=$1
	shift
	"$@" > "$work/log" 2>&1 || {
		tail -n 40 "$work/log" >&2
		stop "$what failed: $(grep -m 1 -iE 'static.assertion|error' \
			"$work/log" || tail -n 1 "$work/log")"
	}
}

is_deb()
{
	command -v dpkg-query > /dev/null
}

# The version of package $1, without the distribution's revision; or nothing.
version_of()
{
	if is_deb; then
		dpkg-query -W -f '${Version}' "$1" 2> /dev/null | sed 's/[-+].*//'
	elif rpm -q --quiet "$1"; then
		rpm -q --qf '%{version}' "$1"
	fi
}

# The library that file $1 loads, and whose name begins with $2.
loads()
{
	ldd "$1" | awk -v name="$2" 'index($1, name) == 1 { print $3; exit }'
}

built_with()
{
	grep -q -a -F -- "$1" "$library"
}

# --- what BASE has

look_at_ganesha()
{
	daemon=$(command -v ganesha.nfsd) ||
		stop "this image has no Ganesha (ganesha.nfsd): take another BASE"
	ganesha=$("$daemon" -v 2>&1 |
		sed -n 's/.*V\([0-9][0-9.]*\).*/\1/p' | head -n 1)
	case $ganesha in
	5.9 | 9.*) ;;
	*) stop "this image has Ganesha ${ganesha:-(version unknown)}, the" \
		"plugin is for 5.9 and 9.x: take another BASE" ;;
	esac
	library=$(loads "$daemon" libganesha_nfsd.so)
	ntirpc_library=$(loads "$daemon" libntirpc.so)
	[ -e "$library" ] && [ -e "$ntirpc_library" ] ||
		stop "$daemon does not load libganesha_nfsd.so and libntirpc.so"
	ntirpc=${ntirpc_library##*.so.}
	plugins=$(find /usr/lib /usr/lib64 -name 'libfsal*.so' \
		-path '*/ganesha/*' 2> /dev/null | head -n 1)
	[ -n "$plugins" ] || stop "no libfsal*.so below /usr/lib and" \
		"/usr/lib64: where does this Ganesha have its FSALs?"
	plugins=$(dirname "$plugins")
}

look_at_ceph()
{
	ceph=$(version_of libcephfs2)
	case $ceph in
	19.[2-9]* | [2-9][0-9].*) ;;
	*) stop "this image has libcephfs ${ceph:-(none)}, 19.2 or later is" \
		"needed: take another BASE" ;;
	esac
	cephfs=$(find /usr/lib /usr/lib64 -name libcephfs.so.2 2> /dev/null |
		head -n 1)
}

# What must be the same after the tools were installed.
sums()
{
	cksum "$daemon" "$library" "$ntirpc_library" "$cephfs"
}

# --- sources and tools

# fetch FILE URL
fetch()
{
	if command -v curl > /dev/null; then
		curl -fsSL --connect-timeout 20 -o "$1" "$2"
	elif command -v wget > /dev/null; then
		wget -q -T 20 -t 1 -O "$1" "$2"
	else
		python3 -c 'import sys, urllib.request as r
r.urlretrieve(*reversed(sys.argv[1:]))' "$1" "$2"
	fi 2> "$work/log"
}

# unpack FILE FOLDER: a tarball without its top folder
unpack()
{
	mkdir -p "$2"
	tar -xf "$1" -C "$2" --strip-components=1 ||
		stop "$(basename "$1") is no tarball"
}

get_ganesha()
{
	tarball=$beside/nfs-ganesha-$ganesha.tar.gz
	url=${GANESHA_URL:-$upstream/nfs-ganesha/archive/refs/tags/V$ganesha.tar.gz}
	if [ ! -e "$tarball" ]; then
		tarball=$work/ganesha.tar.gz
		fetch "$tarball" "$url" || stop "no source of Ganesha $ganesha" \
			"from $url: put it beside build-plugin.sh as" \
			"nfs-ganesha-$ganesha.tar.gz, or set GANESHA_URL"
	fi
	unpack "$tarball" "$work/ganesha"
	have=$(sed -n 's/^set(GANESHA_M[A-Z]*_VERSION \([0-9.]*\))$/\1/p' \
		"$work/ganesha/src/CMakeLists.txt" | tr -d '\n')
	[ "$have" = "$ganesha" ] || stop "the source is of Ganesha" \
		"${have:-(unknown)}, this image has $ganesha"
}

# Headers of ntirpc, from a package or upstream's tree, as FindNTIRPC wants them.
get_ntirpc()
{
	headers=
	url=${NTIRPC_URL:-$upstream/ntirpc/archive/refs/tags/v$ntirpc.tar.gz}
	for file in "$beside/libntirpc-dev_$ntirpc"[-_+]*.deb \
		"$beside/libntirpc-devel-$ntirpc"-*.rpm \
		"$beside/ntirpc-$ntirpc.tar.gz"; do
		[ ! -e "$file" ] || headers=$file
	done
	if [ -z "$headers" ] && is_deb; then
		(cd "$work" && apt-get download -q "libntirpc-dev=$ntirpc-*" \
			> log 2>&1) || :
		for file in "$work"/libntirpc-dev_*.deb; do
			[ ! -e "$file" ] || headers=$file
		done
	elif [ -z "$headers" ]; then
		packages "libntirpc-devel-$ntirpc" > "$work/log" 2>&1 &&
			headers=/usr/include/ntirpc
	fi
	if [ -z "$headers" ]; then
		headers=$work/ntirpc.tar.gz
		fetch "$headers" "$url" || stop "no headers of ntirpc $ntirpc" \
			"from a package or $url: put ntirpc-$ntirpc.tar.gz, or" \
			"the package libntirpc-dev (DEB) or libntirpc-devel" \
			"(RPM) of $ntirpc, beside build-plugin.sh"
	fi
	case $headers in
	*.deb) dpkg-deb -x "$headers" "$work/unpacked" ;;
	*.rpm) mkdir "$work/unpacked"
		rpm2cpio "$headers" | (cd "$work/unpacked" && cpio -idm --quiet) ;;
	*.tar.gz) unpack "$headers" "$work/unpacked" ;;
	esac
	tree=$(find "$work/unpacked" "$headers" -path '*ntirpc/rpc/xdr.h' \
		2> /dev/null | head -n 1)
	[ -n "$tree" ] || stop "$headers has no ntirpc/rpc/xdr.h"
	mkdir -p "$work/ntirpc/include" "$work/ntirpc/lib"
	cp -r "${tree%/rpc/xdr.h}" "$work/ntirpc/include/ntirpc"
	version=$work/ntirpc/include/ntirpc/version.h
	[ -e "$version" ] ||
		echo "#define NTIRPC_VERSION \"$ntirpc\"" > "$version"
	grep -q "NTIRPC_VERSION \"$ntirpc\"" "$version" || stop "$headers is" \
		"not of ntirpc $ntirpc: $(grep 'NTIRPC_VERSION "' "$version")"
	for name in ntirpc ntirpcmonitoring; do
		file=$(loads "$daemon" "lib$name.so")
		[ -z "$file" ] || ln -s "$file" "$work/ntirpc/lib/lib$name.so"
	done
}

packages()
{
	if is_deb; then
		apt-get install -q -y --no-install-recommends "$@"
	else
		dnf install -q -y --setopt=install_weak_deps=False $crb "$@"
	fi
}

# libcephfs' headers are those of the library that is there, or none.
install_tools()
{
	crb=
	if is_deb; then
		run "apt-get update" apt-get update -q
		full=$(dpkg-query -W -f '${Version}' libcephfs2)
		set -- "libcephfs-dev=$full" "librados-dev=$full" gcc g++ \
			libc6-dev libkrb5-dev liburcu-dev libacl1-dev \
			libssl-dev libdbus-1-dev \
			uuid-dev libblkid-dev libcap-dev pkgconf
		! built_with Monitoring_Port || [ "$ganesha" = 5.9 ] ||
			set -- "$@" prometheus-cpp-lite
	else
		full=$(rpm -q --qf '%{version}-%{release}' libcephfs2)
		! dnf -q repolist --all 2> /dev/null | grep -q '^crb ' ||
			crb=--enablerepo=crb
		set -- "libcephfs-devel-$full" "librados-devel-$full" gcc \
			gcc-c++ krb5-devel userspace-rcu-devel libacl-devel \
			openssl-devel \
			dbus-devel libuuid-devel libblkid-devel libcap-devel \
			pkgconf-pkg-config cpio
	fi
	run "installing the tools, and the headers of libcephfs $full," \
		packages "$@" binutils make cmake bison flex
}

# --- the build

configure_ganesha()
{
	! built_with nfsvsock || stop "this Ganesha was built with USE_VSOCK," \
		"which nobody has built the plugin for"
	echo "$FLAGS" > "$work/flags"
	set --
	while read -r flag name text; do
		value=NO
		! built_with "$text" || value=YES
		set -- "$@" "-D$flag=$value"
	done < "$work/flags"
	echo "Ganesha's flags, read from $library: $*"
	for name in CEPH RGW VFS NULL MEM PROXY_V4 PROXY_V3 GPFS GLUSTER XFS \
		LUSTRE KVSFS LIZARDFS SAUNAFS; do
		set -- "$@" "-DUSE_FSAL_$name=NO"
	done
	run "Ganesha's cmake" cmake -S "$work/ganesha/src" -B "$work/build" \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
		-DDISTNAME_HAS_GIT_DATA=OFF -DFSAL_DESTINATION="$plugins" \
		-DUSE_SYSTEM_NTIRPC=YES -DNTIRPC_PREFIX="$work/ntirpc" \
		-DUSE_RADOS_RECOV=NO -DRADOS_URLS=NO -D_MSPAC_SUPPORT=NO \
		-DUSE_NFSIDMAP=NO -DUSE_9P_RDMA=NO -DUSE_LTTNG=NO \
		-DUSE_ADMIN_TOOLS=NO -DUSE_GUI_ADMIN_TOOLS=NO \
		-DUSE_MAN_PAGE=NO "$@"
	# cmake leaves out what it finds no library for.
	while read -r flag name text; do
		wanted=no got=no
		! built_with "$text" || wanted=yes
		! grep -q "^#define $name\>" "$work/build/include/config.h" ||
			got=yes
		[ "$wanted" = "$got" ] || stop "this Ganesha was built with" \
			"$flag=$wanted, and its cmake here ends with $flag=$got"
	done < "$work/flags"
}

build_plugin()
{
	run "the plugin's cmake" cmake -S "$top" -B "$work/plugin" \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=OFF \
		-DGANESHA_SRC="$work/ganesha/src" \
		-DGANESHA_BUILD="$work/build" -DFSAL_DESTINATION="$plugins" \
		-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_SYSCONFDIR=/etc \
		-DCMAKE_INSTALL_DOCDIR=share/doc/nfs-ganesha-ceph-async
	run "the plugin's build" cmake --build "$work/plugin" -j "$(nproc)"
	export DESTDIR="$out"
	run "installing" cmake --install "$work/plugin" --strip
	if [ "${COMPAT:-no}" = yes ]; then
		# As the packages do: FSAL_CEPH's stays beside.
		[ ! -e "$plugins/libfsalceph.so" ] ||
			cp -L "$plugins/libfsalceph.so" \
				"$out$plugins/libfsalceph.so.distrib"
		run "installing" cmake --install "$work/plugin" --strip \
			--component compat
	fi
	unset DESTDIR
	ours=$out$plugins/libfsalceph_async.so
}

# --- does it fit?

# Each symbol that the plugin needs is in Ganesha's or another library.
check_symbols()
{
	nm -D --undefined-only "$ours" | sed -n 's/^ *U //p' |
		sed 's/@.*//' | sort -u > "$work/needed"
	{
		echo "$library"
		ldd "$ours" | awk '$3 ~ "^/" { print $3 } $1 ~ "^/" { print $1 }'
	} | xargs -n 1 nm -D --defined-only | awk '{ print $NF }' |
		sed 's/@.*//' | sort -u > "$work/there"
	missing=$(comm -23 "$work/needed" "$work/there" | tr '\n' ' ')
	[ -z "$missing" ] || stop "this image has not what the plugin needs:" \
		"$missing"
	echo "symbols: all $(wc -l < "$work/needed") are there"
}

# Ganesha itself loads it, for an export that no cluster answers for.
load()
{
	cp "$ours" "$plugins/"
	mkdir -p /run/ganesha "$work/recovery"
	cat > "$work/ganesha.conf" <<-END
	NFS_CORE_PARAM {
	$([ "$ganesha" = 5.9 ] || echo "Allow_Set_Io_Flusher_Fail = true;")
	Protocols = 4;
	}
	NFSv4 { Graceless = true; RecoveryRoot = "$work/recovery"; }
	EXPORT {
	Export_Id = 1; Path = "/"; Pseudo = "/try"; Protocols = 4;
	FSAL { Name = CEPH_ASYNC; User_Id = "nobody"; }
	}
	END
	log=$work/ganesha.log
	timeout -k 1 30 "$daemon" -F -f "$work/ganesha.conf" -L "$log" \
		-p "$work/pid" -N NIV_EVENT > "$work/out" 2>&1 &
	job=$!
	for _ in $(seq 150); do
		! grep -qsE "CEPH_ASYNC (is refused|.* could not be)|$1" \
			"$log" || break
		kill -0 "$job" 2> /dev/null || break
		sleep 0.1
	done
	# A refusal comes right after the line of the start.
	sleep 1
	kill "$job" 2> /dev/null || :
	if ! grep -q "$1" "$log" || grep -q 'CEPH_ASYNC is refused' "$log"
	then
		cat "$work/out" >&2
		tail -n 40 "$log" >&2
		stop "this Ganesha does not take the plugin: $(grep -m 1 -E \
			'CEPH_ASYNC (is refused|.* could not be)|dlopen' "$log" |
			sed 's/.*:: *//' || :)"
	fi
	sed -n "s/.*\($1.*\)/loaded: \1/p" "$log"
}

look_at_ganesha
look_at_ceph
echo "this image: Ganesha $ganesha, ntirpc $ntirpc, libcephfs $ceph, FSALs in" \
	"$plugins"
get_ganesha
before=$(sums)
install_tools
get_ntirpc
[ "$(sums)" = "$before" ] || stop "installing the tools has changed Ganesha" \
	"or libcephfs: BASE's repositories have newer ones, update BASE first"
configure_ganesha
build_plugin
check_symbols
load "FSAL CEPH_ASYNC .*Ganesha $ganesha (built for $ganesha)"
rm -rf "$work"
