#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Two test builds of Ganesha that our packages are not for, each with a FSAL of
# its own, MEM, to serve another export:
#
#   wrong-ganesha.sh FOLDER
#
# FOLDER/api: the number of the FSAL API is one higher.
# FOLDER/version: the same API, but another release of Ganesha.
set -eu

out=$1
top=/usr/src/nfs-ganesha

keep()
{
	mkdir -p "$out/$1/bin" "$out/$1/plugins"
	rm -f "$top"/build/MainNFSD/libganesha_nfsd.so*
	ninja -C "$top/build" ganesha.nfsd fsalmem
	cp -a "$top"/build/MainNFSD/libganesha_nfsd.so* "$out/$1/bin/"
	cp "$top/build/MainNFSD/ganesha.nfsd" "$out/$1/bin/" 2> /dev/null ||
		cp "$(find "$top/build" -type f -name ganesha.nfsd)" "$out/$1/bin/"
	find "$top/build" -name 'libganesha_monitoring.so' \
		-exec cp {} "$out/$1/bin/" \;
	cp "$(find "$top/build" -name libfsalmem.so)" "$out/$1/plugins/"
}

cd "$top/src"
api=$(sed -n 's/^#define FSAL_MAJOR_VERSION \([0-9]*\).*/\1/p' \
	include/fsal_api.h)
sed -i 's/^#define FSAL_MAJOR_VERSION .*/#define FSAL_MAJOR_VERSION 99/' \
	include/fsal_api.h
keep api

sed -i "s/^#define FSAL_MAJOR_VERSION .*/#define FSAL_MAJOR_VERSION $api/" \
	include/fsal_api.h
sed -i 's/^set(GANESHA_MINOR_VERSION .*/set(GANESHA_MINOR_VERSION .99)/' \
	CMakeLists.txt
keep version
